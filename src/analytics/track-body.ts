import type { Principal } from "../access/principal.ts";
import { badField, type FieldProblems } from "../kernel/errors.ts";
import { Fields, throwProblems } from "../kernel/fields.ts";
import { isJsonObject, type JsonObject, type JsonValue } from "../kernel/json.ts";
import {
  EVENT_NAME_LENGTH_MAX,
  PROPERTIES_MAX,
  PROPERTIES_MAX_BYTES,
  RETENTION_MS,
  TIMESTAMP_AHEAD_MAX_MS,
  TRACK_EVENTS_MAX,
  USER_ID_LENGTH_MAX,
} from "./limits.ts";
import type { TrackedEvent } from "./types.ts";

/** Characters of an event's name in an error's message. */
const LABEL_LENGTH_MAX = 50;

/**
 * The events of a track request, by default of now and of whoever asks. Errors: 400 that names every event and member at
 * fault (`events.3.properties.tags`); nothing of the request is taken then. Spec: Limits / Analytics; decisions 11.
 */
export function parseTrackBody(body: JsonObject, principal: Principal, now: number): TrackedEvent[] {
  const events = body["events"];
  for (const name of Object.keys(body)) {
    if (name !== "events") throw badField(name, "unknown_field", `${name} is not a field of this request`);
  }
  if (events === undefined) throw badField("events", "required", "events is required");
  if (!Array.isArray(events)) throw badField("events", "invalid_type", "events must be an array");
  if (events.length === 0) throw badField("events", "too_short", "events must hold at least one event");
  if (events.length > TRACK_EVENTS_MAX) {
    const message = `events must hold at most ${TRACK_EVENTS_MAX} events, got ${events.length}`;
    throw badField("events", "too_long", message);
  }
  const problems: FieldProblems = {};
  const parsed = events.map((event, index) => parseEvent(event, { index, principal, now, problems }));
  throwProblems(problems);
  return parsed;
}

interface EventContext {
  index: number;
  principal: Principal;
  now: number;
  problems: FieldProblems;
}

/** Keeps its problems in `context.problems`: what it gives counts only when there are none. */
function parseEvent(event: JsonValue, { index, principal, now, problems }: EventContext): TrackedEvent {
  if (!isJsonObject(event)) {
    problems[`events.${index}`] = { code: "invalid_type", message: `events.${index} must be an object` };
    return { name: "", timestamp: now, userId: null, properties: "{}" };
  }
  const fields = new Fields(event, { prefix: `events.${index}.` });
  const name = parseName(fields);
  const timestamp = parseTimestamp(fields, now);
  const properties = fields.object("properties") ?? {};
  checkProperties(fields, properties);
  const userId = parseUserId(fields, principal);
  fields.refuseUnknown();
  // Each message stands for itself, so it says which event it is about.
  const label = name === "" ? `events.${index}` : `events.${index} ("${name.slice(0, LABEL_LENGTH_MAX)}")`;
  for (const [field, { code, message }] of Object.entries(fields.problems)) {
    problems[field] = { code, message: `${label}: ${message}` };
  }
  return { name, timestamp, userId, properties: JSON.stringify(properties) };
}

function parseName(fields: Fields): string {
  const name = fields.requiredText("name", EVENT_NAME_LENGTH_MAX);
  if (name !== "" && name.trim() === "") fields.problem("name", "required", "name must not be blank");
  if (!name.isWellFormed()) fields.problem("name", "invalid_value", "name is not valid Unicode");
  return name;
}

function checkProperties(fields: Fields, properties: JsonObject): void {
  const entries = Object.entries(properties);
  if (entries.length > PROPERTIES_MAX) {
    const message = `properties must have at most ${PROPERTIES_MAX} keys, got ${entries.length}`;
    fields.problem("properties", "too_long", message);
    return;
  }
  for (const [key, value] of entries) {
    if (["string", "number", "boolean"].includes(typeof value)) continue;
    const kind = value === null ? "null" : Array.isArray(value) ? "an array" : "an object";
    const message = `property "${key}" must be a string, a number or a boolean, got ${kind}`;
    fields.problem(`properties.${key}`, "invalid_type", message);
  }
  const sizeBytes = Buffer.byteLength(JSON.stringify(properties));
  if (sizeBytes <= PROPERTIES_MAX_BYTES) return;
  const message = `properties must be at most ${PROPERTIES_MAX_BYTES} bytes of JSON, got ${sizeBytes}`;
  fields.problem("properties", "too_large", message);
}

/** Single events are kept for 90 days: an older one could only be added to sums that are made already. */
function parseTimestamp(fields: Fields, now: number): number {
  const timestamp = fields.value("timestamp");
  if (timestamp === undefined || timestamp === null) return now;
  if (typeof timestamp !== "number" || !Number.isInteger(timestamp)) {
    fields.problem("timestamp", "invalid_type", "timestamp must be a whole number of milliseconds since 1970");
    return now;
  }
  if (timestamp < now - RETENTION_MS) {
    fields.problem("timestamp", "too_small", "timestamp must be within the last 90 days");
  } else if (timestamp > now + TIMESTAMP_AHEAD_MAX_MS) {
    fields.problem("timestamp", "too_large", "timestamp must not be more than a day ahead");
  }
  return timestamp;
}

/** A user is who they are: only a service key says on whose behalf an event is sent. */
function parseUserId(fields: Fields, principal: Principal): string | null {
  const userId = fields.text("userId", { minLength: 1, maxLength: USER_ID_LENGTH_MAX });
  if (principal.kind === "serviceKey") return userId ?? null;
  if (userId !== undefined) fields.problem("userId", "invalid_value", "userId needs a service key");
  return principal.kind === "user" ? principal.auth.id : null;
}
