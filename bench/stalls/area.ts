import { type Running, SERVICE_KEY } from "../support/processes.ts";
import type { Operation } from "./measure.ts";

/** Operations of one area, with the server that they need. */
export interface StallArea {
  name: string;
  /** Source text of a platform.config.ts. */
  config: string;
  /** Fills the server, and returns the operations that its clients then perform in sequence. */
  prepare(server: Running): Promise<readonly Operation[]>;
}

export const MIB = 1024 * 1024;

export const SERVICE_HEADERS = { "content-type": "application/json", "x-platform-service-key": SERVICE_KEY };
export const JSON_HEADERS = { "content-type": "application/json" };

/** Sends one request of the preparation, with all rights. Throws on any status outside 2xx. */
export async function send(server: Running, method: string, path: string, body?: unknown): Promise<unknown> {
  const init = body === undefined ? {} : { body: JSON.stringify(body) };
  const response = await fetch(server.url + path, { method, headers: SERVICE_HEADERS, ...init });
  const text = await response.text();
  if (!response.ok) throw new Error(`${method} ${path} answered ${response.status}: ${text.slice(0, 500)}`);
  return text === "" ? null : JSON.parse(text);
}

/** Fills a table with `count` records, as many per request as its body allows. */
export async function fill(
  server: Running,
  table: string,
  count: number,
  recordAt: (index: number) => Record<string, unknown>,
): Promise<void> {
  const requestBytesMax = 8 * MIB;
  const requestRecordsMax = 500;
  let inserts: Record<string, unknown>[] = [];
  let bytes = 0;
  for (let index = 0; index < count; index++) {
    const record = recordAt(index);
    const size = JSON.stringify(record).length;
    if (inserts.length > 0 && (bytes + size > requestBytesMax || inserts.length === requestRecordsMax)) {
      await send(server, "POST", `${table}/batch`, { inserts });
      inserts = [];
      bytes = 0;
    }
    inserts.push(record);
    bytes += size;
  }
  if (inserts.length > 0) await send(server, "POST", `${table}/batch`, { inserts });
}

/** Returns reproducible random words: `length` characters of text for an index to tokenize. */
export function words(length: number, seed = 1): string {
  let state = seed;
  const parts: string[] = [];
  for (let size = 0; size < length; size += 7) {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    parts.push(state.toString(36).slice(0, 6).padEnd(6, "e"));
  }
  return parts.join(" ").slice(0, length);
}
