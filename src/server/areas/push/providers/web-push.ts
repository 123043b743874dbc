import type webPush from "web-push";
import type { Clock } from "../../../../kernel/clock.ts";
import type { PushConfig } from "../../../config/types.ts";
import { type OutgoingAnswer, outgoingCall } from "../../../http/outgoing/call.ts";
import type { CallResult, Message, Provider } from "../types.ts";
import { isBusy, retryAfterMs } from "./provider-answer.ts";
import { createSilences, siteOf } from "./silences.ts";
import { parseSubscription, type Subscription, webPushHeaders, webPushPayload } from "./web-push-request.ts";

const ENCODING = "aes128gcm";

export interface WebPushDeps {
  vapidDetails: NonNullable<PushConfig["webPush"]>;
  library: Pick<typeof webPush, "encrypt" | "getVapidHeaders">;
  /** A checked address of the host to connect to. */
  addressOf(hostname: string): Promise<string>;
  clock: Clock;
  /** Certificate authorities instead of the default ones. */
  ca?: string;
}

/**
 * Web Push (RFC 8030, 8188, 8291, 8292), to https URLs only. The connection is made to the checked address, and the certificate
 * is checked against the host name, so that a different answer to a later DNS lookup has no effect. [PU25] [PU26]
 */
export function createWebPush(deps: WebPushDeps): Provider {
  const { library, clock } = deps;
  const { subject, publicKey, privateKey } = deps.vapidDetails;
  const silences = createSilences(clock);

  const post = async ({ url, keys }: Subscription, message: Message, signal: AbortSignal): Promise<OutgoingAnswer> => {
    const address = await deps.addressOf(url.hostname);
    const { cipherText } = library.encrypt(keys.p256dh, keys.auth, webPushPayload(message), ENCODING);
    const { Authorization } = library.getVapidHeaders(url.origin, subject, publicKey, privateKey, ENCODING);
    const answer = await outgoingCall(addressed(url, address).href, {
      method: "POST",
      headers: {
        Host: url.host,
        Authorization,
        "Content-Encoding": ENCODING,
        "Content-Type": "application/octet-stream",
        ...webPushHeaders(message),
      },
      body: new Uint8Array(cipherText),
      tls: { ...nameToCheck(url.hostname), ...(deps.ca === undefined ? {} : { ca: deps.ca }) },
      signal,
    });
    // The body is not needed, and an endpoint could send one without end.
    answer.drop();
    return answer;
  };

  return {
    siteOf(target) {
      try {
        return siteOf(parseSubscription(target.token).url.hostname);
      } catch {
        // `send` refuses it before anything is sent.
        return "";
      }
    },
    async send(target, message, signal) {
      const subscription = parseSubscription(target.token);
      const { hostname } = subscription.url;
      if (silences.isResting(hostname)) return { kind: "unreachable", error: `${hostname} has not answered recently` };
      const noteSilence = (): void => silences.silent(hostname);
      signal.addEventListener("abort", noteSilence);
      try {
        const response = await post(subscription, message, signal);
        silences.answered(hostname);
        return resultOf(response, clock.now());
      } finally {
        signal.removeEventListener("abort", noteSilence);
      }
    },
  };
}

/** The URL with an address as its host. */
function addressed(url: URL, address: string): URL {
  const direct = new URL(url);
  direct.hostname = address.includes(":") ? `[${address}]` : address;
  return direct;
}

/** If the host in the URL is an address, the certificate must name the address. */
const nameToCheck = (hostname: string): { serverName?: string } =>
  /^\[|^[\d.]+$/.test(hostname) ? {} : { serverName: hostname };

function resultOf({ status, ok, headers }: OutgoingAnswer, nowMs: number): CallResult {
  if (ok) return { kind: "sent" };
  const error = `The push service answered ${status}`;
  if (status === 404 || status === 410) return { kind: "unregistered", error };
  if (isBusy(status)) return { kind: "busy", error, retryAfterMs: retryAfterMs(headers, nowMs) };
  return { kind: "failed", error };
}
