import type { Clock } from "../../../kernel/clock.ts";
import { SECOND_MS } from "../../../kernel/time/duration.ts";
import { VERSION } from "../../../kernel/version.ts";
import type { WebhookConfig } from "../../config/types.ts";
import { outgoingCall } from "../../http/outgoing/call.ts";
import { answerOf, type ReceiverAnswer } from "./answer.ts";
import { DELIVERY_TIMEOUT_MS } from "./limits.ts";

/** The receiver's answer, or the reason why there is none. */
export type Reply = { kind: "answered"; answer: ReceiverAnswer } | { kind: "failed"; reason: string };

/**
 * Sends one message, signed as Standard Webhooks specify. Only the beginning of the answer's body is read: it may have any length.
 * Redirects are not followed: the config names the address that is meant.
 */
export async function send(
  config: WebhookConfig,
  message: { id: string; body: string },
  { clock, signal }: { clock: Clock; signal: AbortSignal },
): Promise<Reply> {
  const { url, secret, headers = {} } = config;
  const timestamp = String(Math.floor(clock.now() / SECOND_MS));
  const timeout = new AbortController();
  const cancelTimer = clock.after(DELIVERY_TIMEOUT_MS, () => timeout.abort());
  try {
    const answer = await outgoingCall(url, {
      method: "POST",
      headers: {
        "user-agent": `platform/${VERSION}`,
        ...headers,
        "content-type": "application/json",
        "webhook-id": message.id,
        "webhook-timestamp": timestamp,
        "webhook-signature": signatureOf(secret, `${message.id}.${timestamp}.`, message.body),
      },
      body: message.body,
      signal: AbortSignal.any([signal, timeout.signal]),
    });
    return { kind: "answered", answer: await answerOf(answer, config, clock) };
  } catch (cause) {
    if (signal.aborted) throw cause;
    if (timeout.signal.aborted)
      return { kind: "failed", reason: `no answer within ${DELIVERY_TIMEOUT_MS / SECOND_MS} s` };
    return { kind: "failed", reason: reasonOf(cause) };
  } finally {
    cancelTimer();
  }
}

/** Signs with Bun's HMAC: the JavaScript library for this takes half a second for the largest messages. */
function signatureOf(secret: string, prefix: string, body: string): string {
  const key = Buffer.from(secret.replace(/^whsec_/, ""), "base64");
  return `v1,${new Bun.CryptoHasher("sha256", key).update(prefix).update(body).digest("base64")}`;
}

/** Returns the code of the failure: the message may contain the address, which may contain a credential. */
function reasonOf(cause: unknown): string {
  const code = cause instanceof Error && "code" in cause ? cause.code : null;
  return typeof code === "string" ? code : "the connection failed";
}
