import { Command } from "@commander-js/extra-typings";
import { isJsonObject } from "../../kernel/json/json.ts";
import { HOST_DEFAULT, PORT_DEFAULT } from "../http/listening/listener.ts";
import { outgoingFetch } from "../http/outgoing/call.ts";
import { noAnswer, UsageError } from "./errors.ts";
import { HEALTH_ANSWER_MAX_BYTES, HEALTH_TIMEOUT_MS } from "./limits.ts";
import { isHttpUrl, option } from "./options.ts";
import { printAnswer } from "./output.ts";

/** Checks the server's health. For images without a shell, whose health check can run only this executable. */
export const healthCommand = new Command("health")
  .description("Asks a running server whether it serves: exit code 0 if so, 1 if not")
  .addOption(option("--url <URL>", "The server").default(`http://${HOST_DEFAULT}:${PORT_DEFAULT}`))
  .action(async ({ url }) => {
    if (!isHttpUrl(url)) throw new UsageError(`--url must be an http or https URL, got "${url}"`);
    const { status, text } = await ask(new URL("/api/health", url));
    await printAnswer(text);
    if (status !== 200) process.exitCode = 1;
  });

/** Requests the health. Errors: CommandError if there is no answer in time. */
async function ask(url: URL): Promise<{ status: number; text: string }> {
  try {
    const answer = await outgoingFetch(url.href, {
      signal: AbortSignal.timeout(HEALTH_TIMEOUT_MS),
      maxBytes: HEALTH_ANSWER_MAX_BYTES,
      // The question is whether it serves; within a machine its name differs from the certificate's.
      tls: { rejectUnauthorized: false },
    });
    const body: unknown = await answer.json();
    return { status: answer.status, text: isJsonObject(body) ? String(body["status"] ?? answer.status) : "unknown" };
  } catch (cause) {
    throw noAnswer(url.origin, cause);
  }
}
