import type { WebhookConfig } from "../config/types.ts";
import type { Clock } from "../kernel/clock.ts";
import { VERSION } from "../kernel/version.ts";
import { DELIVERY_TIMEOUT_MS } from "./limits.ts";

/** What the receiver answered, or why there is no answer. */
export type Reply = { kind: "answered"; status: number } | { kind: "failed"; reason: string };

/**
 * Sends one message, signed as Standard Webhooks say. Of the answer only the status is read: its body may have any length.
 * Redirects are not followed: the address that the config names is the one that is meant.
 */
export async function send(
  { url, secret, headers = {} }: WebhookConfig,
  message: { id: string; body: string },
  { clock, signal }: { clock: Clock; signal: AbortSignal },
): Promise<Reply> {
  // Loaded for the first delivery, since most servers have none.
  const { Webhook } = await import("standardwebhooks");
  const sentAt = new Date(clock.now());
  const timeout = new AbortController();
  const cancelTimer = clock.after(DELIVERY_TIMEOUT_MS, () => timeout.abort());
  try {
    const response = await fetch(url, {
      method: "POST",
      headers: {
        "user-agent": `platform/${VERSION}`,
        ...headers,
        "content-type": "application/json",
        "webhook-id": message.id,
        "webhook-timestamp": String(Math.floor(sentAt.getTime() / 1_000)),
        "webhook-signature": new Webhook(secret).sign(message.id, sentAt, message.body),
      },
      body: message.body,
      redirect: "manual",
      signal: AbortSignal.any([signal, timeout.signal]),
    });
    await response.body?.cancel().catch(() => {});
    return { kind: "answered", status: response.status };
  } catch (cause) {
    if (signal.aborted) throw cause;
    if (timeout.signal.aborted) return { kind: "failed", reason: `no answer within ${DELIVERY_TIMEOUT_MS / 1_000} s` };
    return { kind: "failed", reason: reasonOf(cause) };
  } finally {
    cancelTimer();
  }
}

/** The code of the failure: the message may contain the address, which may contain a credential. */
function reasonOf(cause: unknown): string {
  const code = cause instanceof Error && "code" in cause ? cause.code : null;
  return typeof code === "string" ? code : "the connection failed";
}
