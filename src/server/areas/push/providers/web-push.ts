import type webPush from "web-push";
import { BoundedMap } from "../../../../kernel/bounded-map.ts";
import type { Clock, Millis } from "../../../../kernel/clock.ts";
import { isJsonObject, type JsonObject, jsonObjectOf } from "../../../../kernel/json/json.ts";
import { TTL_MAX_SECONDS } from "../../../config/shapes/push.ts";
import type { PushConfig } from "../../../config/types.ts";
import { type OutgoingAnswer, outgoingCall } from "../../../http/outgoing/call.ts";
import { SILENCE_REST_MS, SILENCES_BEFORE_REST, SILENT_SITES_MAX } from "../limits.ts";
import type { CallResult, Message, Provider } from "../message.ts";
import { present, webPushTopic } from "./fcm-message.ts";
import { isBusy, retryAfterMs } from "./provider-answer.ts";

const ENCODING = "aes128gcm";

export interface WebPushDeps {
  vapidDetails: NonNullable<PushConfig["webPush"]>;
  library: Pick<typeof webPush, "encrypt" | "getVapidHeaders">;
  /** Returns a checked address of the host to connect to. */
  addressOf(hostname: string): Promise<string>;
  clock: Clock;
  /** Certificate authorities instead of the default ones. */
  ca?: string;
}

/**
 * Creates the provider for Web Push (RFC 8030, 8188, 8291, 8292), to https URLs only. The connection is made to the checked address,
 * and the certificate is checked against the host name, so that a different answer to a later DNS lookup has no effect. [PU25] [PU26]
 */
export function createWebPush(deps: WebPushDeps): Provider {
  const { library, clock } = deps;
  const { subject, publicKey, privateKey } = deps.vapidDetails;
  const silences = new Silences(clock);

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

/** Returns the URL with an address as its host. */
function addressed(url: URL, address: string): URL {
  const direct = new URL(url);
  direct.hostname = address.includes(":") ? `[${address}]` : address;
  return direct;
}

/** Returns the name that the certificate must have; none for a host that is an address, which the certificate must then name. */
const nameToCheck = (hostname: string): { serverName?: string } =>
  /^\[|^[\d.]+$/.test(hostname) ? {} : { serverName: hostname };

function resultOf({ status, ok, headers }: OutgoingAnswer, nowMs: number): CallResult {
  if (ok) return { kind: "sent" };
  const error = `The push service answered ${status}`;
  if (status === 404 || status === 410) return { kind: "unregistered", error };
  if (isBusy(status)) return { kind: "busy", error, retryAfterMs: retryAfterMs(headers, nowMs) };
  return { kind: "failed", error };
}

interface Subscription {
  url: URL;
  keys: { p256dh: string; auth: string };
}

/** Whether a token is a Web Push subscription in JSON; all other tokens are for FCM. */
export const isSubscription = (token: string): boolean => parsed(token) !== null;

/** Parses a token as a subscription. Errors: the reason why nothing can be sent to it. */
function parseSubscription(token: string): Subscription {
  const members = parsed(token) ?? {};
  const { endpoint, keys } = members;
  if (typeof endpoint !== "string" || !URL.canParse(endpoint)) throw new Error("The endpoint is not a URL");
  const url = new URL(endpoint);
  if (url.protocol !== "https:") throw new Error("The endpoint must be https");
  if (url.username !== "" || url.password !== "") throw new Error("The endpoint must not have credentials");
  const { p256dh, auth } = isJsonObject(keys) ? keys : {};
  if (typeof p256dh !== "string" || typeof auth !== "string") throw new Error("The subscription has no keys");
  return { url, keys: { p256dh, auth } };
}

function parsed(token: string): JsonObject | null {
  const value = token.trimStart().startsWith("{") ? jsonObjectOf(token) : null;
  return value !== null && Object.hasOwn(value, "endpoint") ? value : null;
}

/** Returns the JSON that the service worker receives as `event.data.json()`. */
function webPushPayload(message: Message): string {
  const { title, body, image, sound, badge, data, silent, collapseId } = message;
  const shown = silent ? { silent } : { title, body, image, sound, badge };
  return JSON.stringify(present({ ...shown, collapseId, data: { ...data } }));
}

/** Returns the headers for the push service, which requires a `TTL`. */
function webPushHeaders({ silent, ttl, collapseId }: Message): Record<string, string> {
  return {
    TTL: String(ttl ?? TTL_MAX_SECONDS),
    Urgency: silent ? "normal" : "high",
    ...(collapseId === null ? {} : { Topic: webPushTopic(collapseId) }),
  };
}

/**
 * Push services that do not answer. Users can register subscriptions of a host that never answers, under any number of names:
 * without this, each of them would delay a broadcast by the whole timeout. [PU35]
 */
class Silences {
  readonly #clock: Clock;
  readonly #sites = new BoundedMap<string, { count: number; restsUntil: Millis }>(SILENT_SITES_MAX);

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Whether calls to the host's site are suspended. */
  isResting(hostname: string): boolean {
    return this.#clock.now() < (this.#sites.get(siteOf(hostname))?.restsUntil ?? 0);
  }

  /** Notes that the host has answered. */
  answered(hostname: string): void {
    this.#sites.delete(siteOf(hostname));
  }

  /** Notes that a call has timed out. */
  silent(hostname: string): void {
    const site = siteOf(hostname);
    const count = (this.#sites.get(site)?.count ?? 0) + 1;
    const restsUntil = count < SILENCES_BEFORE_REST ? 0 : this.#clock.now() + SILENCE_REST_MS;
    this.#sites.set(site, { count, restsUntil });
  }
}

/** Returns the site of a host: the last two labels of the name, as subdomains are free to create; an address is its own site. */
function siteOf(hostname: string): string {
  return /^\[|^[\d.]+$/.test(hostname) ? hostname : hostname.replace(/\.$/, "").split(".").slice(-2).join(".");
}
