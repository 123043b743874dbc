import { isJsonObject, type JsonObject, type JsonValue } from "../../../../kernel/json/json.ts";
import { SECOND_MS } from "../../../../kernel/time/duration.ts";
import type { Message, Target } from "../message.ts";

/**
 * Creates a function that returns the body of an FCM HTTP v1 request for one device. It keeps the last serialised message, so that
 * consecutive devices of one platform differ in the token only. `nowMs`: APNs takes the time at which a message expires instead of
 * its lifetime.
 */
export function createFcmBodies(): (target: Target, message: Message, nowMs: number) => string {
  let last: { message: Message; platform: Target["platform"]; nowSeconds: number; start: string } | null = null;
  return ({ platform, token }, message, nowMs) => {
    const nowSeconds = Math.floor(nowMs / SECOND_MS);
    if (last?.message !== message || last.platform !== platform || last.nowSeconds !== nowSeconds) {
      // Never "{}": there is at least the member of the platform.
      const members = JSON.stringify(membersFor(platform, message, nowSeconds));
      last = { message, platform, nowSeconds, start: `{"message":${members.slice(0, -1)},"token":` };
    }
    return `${last.start}${JSON.stringify(token)}}}`;
  };
}

/** Returns the members common to all platforms and those of this platform, overridden by `fcm`; without the token. */
function membersFor(platform: Target["platform"], message: Message, nowSeconds: number): JsonObject {
  const { title, body, image, data } = message;
  const built: JsonObject = {
    ...(message.silent ? {} : { notification: present({ title, body, image }) }),
    ...(Object.keys(data).length === 0 ? {} : { data }),
    ...PLATFORM_MEMBERS[platform](message, nowSeconds),
  };
  const { token: _, ...members } = merge(built, message.fcm);
  return members;
}

const PLATFORM_MEMBERS = {
  android: androidMembers,
  ios: apnsMembers,
  web: webMembers,
} as const;

function androidMembers({ silent, sound, collapseId, ttl }: Message): JsonObject {
  return {
    android: present({
      // A silent message does not wake a sleeping phone.
      priority: silent ? "normal" : "high",
      collapse_key: collapseId,
      ttl: ttl === null ? null : `${ttl}s`,
      notification: silent || sound === null ? null : { sound },
    }),
  };
}

function apnsMembers(message: Message, nowSeconds: number): JsonObject {
  const { silent, sound, badge, image, collapseId, ttl } = message;
  const expiresAt = ttl === null ? null : ttl === 0 ? "0" : String(nowSeconds + ttl);
  return {
    apns: present({
      headers: present({
        "apns-push-type": silent ? "background" : "alert",
        // APNs refuses silent messages with any other priority.
        "apns-priority": silent ? "5" : "10",
        "apns-collapse-id": collapseId,
        "apns-expiration": expiresAt,
      }),
      payload: {
        aps: present({
          "content-available": silent ? 1 : null,
          // Lets the app's extension load the image before the notification is shown.
          "mutable-content": silent || image === null ? null : 1,
          sound: silent ? null : sound,
          badge,
        }),
      },
      fcm_options: silent || image === null ? null : { image },
    }),
  };
}

function webMembers({ silent, collapseId, ttl }: Message): JsonObject {
  return {
    webpush: {
      headers: present({
        Urgency: silent ? "normal" : "high",
        TTL: ttl === null ? null : String(ttl),
        Topic: collapseId === null ? null : webPushTopic(collapseId),
      }),
    },
  };
}

/** Returns the Web Push topic of a collapse id: a hash, as push services accept at most 32 characters of base64url. */
export function webPushTopic(collapseId: string): string {
  return new Bun.CryptoHasher("sha256").update(collapseId).digest("base64url").slice(0, 32);
}

/** Returns the members that are not null. */
export function present(members: { readonly [name: string]: JsonValue }): JsonObject {
  return Object.fromEntries(Object.entries(members).filter(([, value]) => value !== null));
}

/** Merges objects recursively and replaces all other values. `__proto__` is an ordinary name. */
function merge(base: JsonObject, over: JsonObject): JsonObject {
  const merged = Object.entries(over).map(([name, value]): [string, JsonValue] => {
    const before = Object.hasOwn(base, name) ? base[name] : undefined;
    return [name, isJsonObject(before) && isJsonObject(value) ? merge(before, value) : value];
  });
  return Object.fromEntries([...Object.entries(base), ...merged]);
}
