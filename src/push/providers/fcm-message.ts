import { SECOND_MS } from "../../kernel/duration.ts";
import { isJsonObject, type JsonObject, type JsonValue } from "../../kernel/json.ts";
import type { Message, Target } from "../types.ts";

/**
 * The `message` of an FCM HTTP v1 request for one device: with the members of the device's platform alone, and the
 * sender's raw overrides over all of it. `nowMs`: APNs wants to know when a message expires, not how long it lives.
 */
export function fcmMessage(target: Target, message: Message, nowMs: number): JsonObject {
  const { title, body, image, data } = message;
  const built: JsonObject = {
    ...(message.silent ? {} : { notification: present({ title, body, image }) }),
    ...(Object.keys(data).length === 0 ? {} : { data }),
    ...PLATFORM_MEMBERS[target.platform](message, nowMs),
  };
  return { ...merge(built, message.fcm), token: target.token };
}

const PLATFORM_MEMBERS = {
  android: androidMembers,
  ios: apnsMembers,
  web: webMembers,
} as const;

function androidMembers({ silent, sound, collapseId, ttl }: Message): JsonObject {
  return {
    android: present({
      // A message that nobody sees does not wake a sleeping phone.
      priority: silent ? "normal" : "high",
      collapse_key: collapseId,
      ttl: ttl === null ? null : `${ttl}s`,
      notification: silent || sound === null ? null : { sound },
    }),
  };
}

function apnsMembers(message: Message, nowMs: number): JsonObject {
  const { silent, sound, badge, image, collapseId, ttl } = message;
  const expiresAt = ttl === null ? null : ttl === 0 ? "0" : String(Math.floor(nowMs / SECOND_MS) + ttl);
  return {
    apns: present({
      headers: present({
        "apns-push-type": silent ? "background" : "alert",
        // APNs refuses silent messages of any other priority.
        "apns-priority": silent ? "5" : "10",
        "apns-collapse-id": collapseId,
        "apns-expiration": expiresAt,
      }),
      payload: {
        aps: present({
          "content-available": silent ? 1 : null,
          // Lets the app's extension fetch the picture before the notification is shown.
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

/** A push service takes 32 characters of base64url at most: whatever the text, the same text gives the same ones. */
export function webPushTopic(collapseId: string): string {
  return new Bun.CryptoHasher("sha256").update(collapseId).digest("base64url").slice(0, 32);
}

/** Without the members that are null. */
export function present(members: { readonly [name: string]: JsonValue }): JsonObject {
  return Object.fromEntries(Object.entries(members).filter(([, value]) => value !== null));
}

/** Objects member by member, everything else replaced. `__proto__` is a name like any other. */
function merge(base: JsonObject, over: JsonObject): JsonObject {
  const merged = Object.entries(over).map(([name, value]): [string, JsonValue] => {
    const before = Object.hasOwn(base, name) ? base[name] : undefined;
    return [name, isJsonObject(before) && isJsonObject(value) ? merge(before, value) : value];
  });
  return Object.fromEntries([...Object.entries(base), ...merged]);
}
