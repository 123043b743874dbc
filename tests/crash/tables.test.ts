import { Database } from "bun:sqlite";
import { expect, test } from "bun:test";
import { readdirSync } from "node:fs";
import { join } from "node:path";
import type { JsonObject } from "../../src/kernel/json.ts";
import { type ListAnswer, type TestPlatform, testPlatform } from "../support/index.ts";

const ROUNDS = Number(process.env["PLATFORM_CRASH_ROUNDS"] ?? 3);
const SEED = Number(process.env["PLATFORM_TEST_SEED"] ?? 4_711);
const WRITERS = 16;

const CONFIG = `{ databases: {
  shared: { tables: {
    notes: { schema: { writer: { type: "integer" }, n: { type: "integer" }, text: { type: "text" } }, fts: ["text"] },
    tallies: { schema: { sum: { type: "integer" } } },
  } },
  rooms: { instance: true, tables: { lines: { schema: { n: { type: "integer" } } } } },
} }`;
const notes = "/api/db/shared/tables/notes";
const tallies = "/api/db/shared/tables/tallies";
const lines = (instance: number) => `/api/db/rooms/r${instance}/tables/lines`;

/** What the server has said yes to. */
interface Acknowledged {
  notes: Set<string>;
  batches: string[][];
  lines: Set<string>;
  increments: number;
}

test(`[TB66] a killed process loses nothing that it acknowledged, and keeps nothing by halves (seed ${SEED})`, async () => {
  const platform = await testPlatform({ config: CONFIG });
  await platform.service.post(tallies, { id: "all", sum: 0 });
  const done: Acknowledged = { notes: new Set(), batches: [], lines: new Set(), increments: 0 };
  let attemptedIncrements = 0;
  for (let round = 0; round < ROUNDS; round++) {
    let isKilled = false;
    const writer = async (index: number) => {
      for (let n = 0; !isKilled; n++) {
        const id = `r${round}w${index}n${n}`;
        const kind = (index + n) % 4;
        try {
          if (kind === 0) {
            const answer = await platform.service.post(notes, { id, writer: index, n, text: `note ${id}` });
            if (answer.status === 201) done.notes.add(id);
          } else if (kind === 1) {
            const ids = Array.from({ length: 5 }, (_, part) => `${id}p${part}`);
            const answer = await platform.service.post(`${notes}/batch`, {
              inserts: ids.map((one) => ({ id: one, writer: index, n, text: "in a batch" })),
            });
            if (answer.status === 200) done.batches.push(ids);
          } else if (kind === 2) {
            const answer = await platform.service.post(lines(index % 5), { id, n });
            if (answer.status === 201) done.lines.add(`${index % 5}/${id}`);
          } else {
            attemptedIncrements++;
            const answer = await platform.service.patch(`${tallies}/all`, { sum: { $op: "increment", value: 1 } });
            if (answer.status === 200) done.increments++;
          }
        } catch {
          // The connection broke off: nothing was acknowledged.
        }
      }
    };
    const writers = Array.from({ length: WRITERS }, (_, index) => writer(index));
    await Bun.sleep(200 + ((SEED * (round + 1)) % 400));
    await platform.kill("SIGKILL");
    isKilled = true;
    await Promise.all(writers);
    await platform.restart();
    await compare(platform, done, attemptedIncrements);
  }
  expect(done.notes.size).toBeGreaterThan(ROUNDS);
  await platform.kill("SIGTERM");
  const files = readdirSync(join(platform.dataDirectory, "databases"), { recursive: true })
    .map(String)
    .filter((name) => name.endsWith(".db"));
  expect(files.length).toBeGreaterThan(1);
  for (const name of files) {
    const sqlite = new Database(join(platform.dataDirectory, "databases", name), { readonly: true });
    expect(sqlite.query("PRAGMA integrity_check").values()).toEqual([["ok"]]);
    sqlite.close();
  }
}, 120_000);

async function all(platform: TestPlatform, path: string): Promise<JsonObject[]> {
  const items: JsonObject[] = [];
  for (let after: string | null = ""; after !== null; ) {
    const query: Record<string, string | number> = after === "" ? { limit: 1000 } : { limit: 1000, after };
    const { body }: { body: ListAnswer } = await platform.service.get<ListAnswer>(path, { query });
    items.push(...body.items);
    after = body.cursor;
  }
  return items;
}

async function compare(platform: TestPlatform, done: Acknowledged, attemptedIncrements: number): Promise<void> {
  const stored = await all(platform, notes);
  const ids = new Set(stored.map((record) => String(record["id"])));
  expect(ids.size).toBe(stored.length);
  for (const id of done.notes) expect(ids.has(id)).toBe(true);
  for (const batch of done.batches) for (const id of batch) expect(ids.has(id)).toBe(true);
  // A batch is there whole or not at all, acknowledged or not.
  const parts = new Map<string, number>();
  for (const id of ids) {
    const [whole, part] = id.split("p");
    if (whole !== undefined && part !== undefined) parts.set(whole, (parts.get(whole) ?? 0) + 1);
  }
  for (const count of parts.values()) expect(count).toBe(5);
  const { body } = await platform.service.get<{ total: number }>(`${notes}/count`);
  expect(body.total).toBe(stored.length);
  const found = await platform.service.get<ListAnswer>(`${notes}/search`, { query: { q: "batch", limit: 1 } });
  expect(found.body.total).toBe([...parts.values()].reduce((sum, count) => sum + count, 0));
  for (let instance = 0; instance < 5; instance++) {
    const inside = new Set((await all(platform, lines(instance))).map((record) => String(record["id"])));
    for (const one of done.lines) {
      const [where, id = ""] = one.split("/");
      if (where === String(instance)) expect(inside.has(id)).toBe(true);
    }
  }
  const sum = Number((await platform.service.get(`${tallies}/all`)).body["sum"]);
  expect(sum).toBeGreaterThanOrEqual(done.increments);
  expect(sum).toBeLessThanOrEqual(attemptedIncrements);
}
