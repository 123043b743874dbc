import { createForwarding } from "../../http/workers/forwarding.ts";
import { type ClusterSecrets, nodeCredentials } from "./credentials.ts";
import { ASK_MAX_MS } from "./limits.ts";
import { nodeTls, originOf } from "./owner-link.ts";

/** Asks the owner for something, as a node does. Returns null, or why it was refused. Errors: it does not answer. */
export async function askOwner(owner: string, secrets: ClusterSecrets, path: string): Promise<string | null> {
  const credentials = nodeCredentials(secrets);
  const at = { origin: originOf(owner), tls: nodeTls(credentials) };
  const asking = createForwarding({ at, secret: credentials.secret, worker: 0 }, AbortSignal.timeout(ASK_MAX_MS));
  const answer = await asking.tell(path, { method: "POST" });
  return answer.ok ? null : `the owner refuses: ${await answer.text()}`;
}
