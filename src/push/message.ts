import type { Fields } from "../kernel/fields.ts";
import { requireJsonSize } from "../kernel/fields.ts";
import type { JsonObject, JsonValue } from "../kernel/json.ts";
import {
  BADGE_MAX,
  COLLAPSE_ID_LENGTH_MAX,
  IMAGE_LENGTH_MAX,
  MESSAGE_MAX_BYTES,
  OVERRIDES_MAX_BYTES,
  SOUND_LENGTH_MAX,
  TTL_MAX_SECONDS,
} from "./limits.ts";
import type { Message } from "./types.ts";

/** Whom an FCM message goes to: the one thing about it that is not the sender's to write. */
const FCM_ADDRESS_MEMBERS = ["token", "topic", "condition"];

/**
 * Reads the members of a message. `titled`: title and body are wanted in any case, and not only where the message is
 * shown. Call `finish` of the fields afterwards, and then `requireMessageSize`. Spec: Push endpoints; decisions 11.
 */
export function parseMessage(fields: Fields, { titled }: { titled: boolean }): Message {
  const silent = fields.flag("silent") ?? false;
  const shown = (name: "title" | "body"): string | null =>
    titled || !silent
      ? fields.requiredText(name, MESSAGE_MAX_BYTES)
      : (fields.text(name, { maxLength: MESSAGE_MAX_BYTES }) ?? null);
  return {
    title: shown("title"),
    body: shown("body"),
    image: fields.text("image", { maxLength: IMAGE_LENGTH_MAX }) ?? null,
    sound: fields.text("sound", { maxLength: SOUND_LENGTH_MAX }) ?? null,
    badge: wholeNumber(fields, "badge", BADGE_MAX),
    data: asTexts(fields.object("data") ?? {}),
    silent,
    collapseId: fields.text("collapseId", { minLength: 1, maxLength: COLLAPSE_ID_LENGTH_MAX }) ?? null,
    ttl: wholeNumber(fields, "ttl", TTL_MAX_SECONDS),
    fcm: parseOverrides(fields),
  };
}

/** Errors: 413 for what no provider would take. */
export function requireMessageSize({ fcm, ...message }: Message): void {
  requireJsonSize("data", message.data, MESSAGE_MAX_BYTES);
  const parts = Object.entries(message).filter(([, value]) => value !== null && value !== false);
  requireJsonSize("payload", Object.fromEntries(parts), MESSAGE_MAX_BYTES);
  requireJsonSize("fcm", fcm, OVERRIDES_MAX_BYTES);
}

function parseOverrides(fields: Fields): JsonObject {
  const fcm = fields.object("fcm") ?? {};
  for (const name of FCM_ADDRESS_MEMBERS) {
    if (Object.hasOwn(fcm, name)) fields.problem(`fcm.${name}`, "invalid_value", `fcm must not have "${name}"`);
  }
  return fcm;
}

/** Providers carry text alone: everything else travels as JSON. */
function asTexts(data: JsonObject): Record<string, string> {
  const text = (value: JsonValue): string => (typeof value === "string" ? value : JSON.stringify(value));
  return Object.fromEntries(Object.entries(data).map(([name, value]) => [name, text(value)]));
}

/** A whole number from 0, null when absent. */
function wholeNumber(fields: Fields, name: string, max: number): number | null {
  const value = fields.value(name);
  if (value === undefined || value === null) return null;
  if (typeof value !== "number" || !Number.isInteger(value)) {
    fields.problem(name, "invalid_type", `${name} must be a whole number`);
  } else if (value < 0) {
    fields.problem(name, "too_small", `${name} must be at least 0, got ${value}`);
  } else if (value > max) {
    fields.problem(name, "too_large", `${name} must be at most ${max}, got ${value}`);
  } else {
    return value;
  }
  return null;
}
