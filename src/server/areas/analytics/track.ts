import { type Static, Type } from "typebox";
import { type FieldProblems, noProblems } from "../../../kernel/errors.ts";
import { throwProblems } from "../../../kernel/fields.ts";
import { optional, refine } from "../../../kernel/schema/types.ts";
import type { Principal } from "../../access/principal.ts";
import {
  EVENT_NAME_LENGTH_MAX,
  PROPERTIES_MAX_BYTES,
  RETENTION_MS,
  TIMESTAMP_AHEAD_MAX_MS,
  TRACK_EVENTS_MAX,
  USER_ID_LENGTH_MAX,
} from "./limits.ts";
import { Properties, type TrackedEvent } from "./model.ts";

const EventName = refine(
  Type.String({ minLength: 1, maxLength: EVENT_NAME_LENGTH_MAX, description: "Not blank" }),
  (name) => name.trim() !== "",
  (field) => ({ code: "required", message: `${field} must not be blank` }),
);

const Event = Type.Object({
  name: EventName,
  properties: Type.Optional(Properties),
  timestamp: optional(
    Type.Integer({ description: "Milliseconds since 1970, within the last 90 days; the current time by default" }),
  ),
  userId: optional(Type.String({ minLength: 1, maxLength: USER_ID_LENGTH_MAX, description: "Service keys only" })),
});

export const TrackBody = Type.Object({
  events: Type.Array(Event, { minItems: 1, maxItems: TRACK_EVENTS_MAX }),
});
export type TrackBody = Static<typeof TrackBody>;

/**
 * Returns the events to store, by default with the current time and the caller; yields after each, as a large request takes some
 * milliseconds.
 * Errors: 400 naming every event and member at fault (`events.3.timestamp`).
 */
export function* prepareEvents(
  { events }: TrackBody,
  principal: Principal,
  now: number,
): Generator<void, TrackedEvent[]> {
  const problems = noProblems();
  const prepared: TrackedEvent[] = [];
  for (const [index, event] of events.entries()) {
    const properties = JSON.stringify(event.properties ?? {});
    const field = `events.${index}`;
    checkSize(`${field}.properties`, properties, problems);
    const timestamp = event.timestamp ?? now;
    checkTime(`${field}.timestamp`, timestamp, now, problems);
    const userId = event.userId ?? null;
    if (userId !== null && principal.kind !== "serviceKey") {
      const name = `${field}.userId`;
      problems[name] = { code: "invalid_value", message: `${name} requires a service key` };
    }
    prepared.push({
      name: event.name,
      timestamp,
      userId: principal.kind === "user" ? principal.auth.id : userId,
      properties,
    });
    yield;
  }
  throwProblems(problems);
  return prepared;
}

function checkSize(field: string, properties: string, problems: FieldProblems): void {
  const sizeBytes = Buffer.byteLength(properties);
  if (sizeBytes <= PROPERTIES_MAX_BYTES) return;
  const message = `${field} must be at most ${PROPERTIES_MAX_BYTES} bytes of JSON, got ${sizeBytes}`;
  problems[field] = { code: "too_large", message };
}

/** Checks an event's time. Older events would belong to days that are summarised and no longer have rows. [AN3] */
function checkTime(field: string, timestamp: number, now: number, problems: FieldProblems): void {
  if (timestamp < now - RETENTION_MS) {
    problems[field] = { code: "too_small", message: `${field} must be within the last 90 days` };
  } else if (timestamp > now + TIMESTAMP_AHEAD_MAX_MS) {
    problems[field] = { code: "too_large", message: `${field} must be at most one day in the future` };
  }
}
