import type { Runtime } from "../runtime.ts";

const TIME_DIGITS = 12;

/** A UUID of version 7, as the server makes them: the ids of later records are greater. */
export function newRecordId(runtime: Pick<Runtime, "now" | "uuid">): string {
  const time = runtime.now().toString(16).padStart(TIME_DIGITS, "0");
  return `${time.slice(0, 8)}-${time.slice(8)}-7${runtime.uuid().slice(15)}`;
}
