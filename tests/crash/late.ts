import { Database } from "bun:sqlite";
import { join } from "node:path";
import { until } from "../http/storage/storage-support.ts";
import type { TestPlatform } from "../support/index.ts";

/** On a machine that does much else. */
export const PATIENCE_MS = 30_000;

/** Counts of work that is answered before it is on disk. */
export interface LateThing {
  answered: number;
  asked: number;
  /** On disk when the server was killed. */
  saved: number;
}

export interface LateThings {
  /** Saved at an interval. */
  room: LateThing;
  /** Written within a second. */
  events: LateThing;
}

export const nothingLate = (): LateThings => ({
  room: { answered: 0, asked: 0, saved: 0 },
  events: { answered: 0, asked: 0, saved: 0 },
});

function firstValue(path: string, sql: string): unknown {
  const sqlite = new Database(path, { readonly: true });
  try {
    return sqlite.query(sql).values()[0]?.[0] ?? null;
  } finally {
    sqlite.close();
  }
}

function savedNow(platform: TestPlatform, thing: keyof LateThings): number {
  if (thing === "events") {
    return Number(firstValue(join(platform.dataDirectory, "analytics.db"), "SELECT count(*) FROM events"));
  }
  const shared = firstValue(join(platform.dataDirectory, "rooms.db"), "SELECT shared FROM rooms");
  return shared === null ? 0 : Number(JSON.parse(String(shared))["count"] ?? 0);
}

/** Notes what is on disk; `isPatient`: once everything is that has been answered, whatever the load. */
export async function noteSaved(platform: TestPlatform, late: LateThings, isPatient: boolean): Promise<void> {
  for (const name of ["room", "events"] as const) {
    const { answered } = late[name];
    if (isPatient) await until(`${name} are saved`, () => savedNow(platform, name) >= answered, PATIENCE_MS);
    late[name].saved = savedNow(platform, name);
  }
}
