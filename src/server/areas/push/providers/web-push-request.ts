import { isJsonObject } from "../../../../kernel/json/json.ts";
import { TTL_MAX_SECONDS } from "../limits.ts";
import type { Message } from "../types.ts";
import { present, webPushTopic } from "./fcm-message.ts";

export interface Subscription {
  url: URL;
  keys: { p256dh: string; auth: string };
}

/** Whether a token is a Web Push subscription in JSON; all other tokens are for FCM. */
export const isSubscription = (token: string): boolean => parsed(token) !== null;

/** Errors: why nothing can be sent to it. */
export function parseSubscription(token: string): Subscription {
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

function parsed(token: string): Record<string, unknown> | null {
  if (!token.trimStart().startsWith("{")) return null;
  try {
    const value: unknown = JSON.parse(token);
    return isJsonObject(value) && Object.hasOwn(value, "endpoint") ? value : null;
  } catch {
    return null;
  }
}

/** What the service worker receives as `event.data.json()`. */
export function webPushPayload(message: Message): string {
  const { title, body, image, sound, badge, data, silent, collapseId } = message;
  const shown = silent ? { silent } : { title, body, image, sound, badge };
  return JSON.stringify(present({ ...shown, collapseId, data: { ...data } }));
}

/** Headers for the push service, which requires a `TTL`. */
export function webPushHeaders({ silent, ttl, collapseId }: Message): Record<string, string> {
  return {
    TTL: String(ttl ?? TTL_MAX_SECONDS),
    Urgency: silent ? "normal" : "high",
    ...(collapseId === null ? {} : { Topic: webPushTopic(collapseId) }),
  };
}
