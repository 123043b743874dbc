import { Database } from "bun:sqlite";
import { expect } from "bun:test";
import { cpSync, existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { COMMIT_TABLE } from "../../../../src/server/db/writer/commit-gate.ts";
import { temporaryDirectory } from "../../platform.ts";
import { DrillClient } from "./asking.ts";
import { type DrillCluster, type DrillNode, eventually } from "./drill-cluster.ts";
import type { Feed } from "./feed.ts";
import { type History, type Load, NAMES, NOTES } from "./load.ts";
import { isLinearizable } from "./registers.ts";

const PAGE = 500;

/** Returns all records of a table, as the owner has them. */
async function recordsOf(
  node: DrillNode,
  path: string,
  history: History,
): Promise<{ id: string; [field: string]: string }[]> {
  const records: { id: string }[] = [];
  const client = new DrillClient(history.tally);
  for (let cursor: string | null = null; ; ) {
    const query = new URLSearchParams({ limit: String(PAGE), ...(cursor === null ? {} : { after: cursor }) });
    const { status, body } = await client.ask(node, `${path}?${query}`, { isLatest: true });
    if (status !== 200) throw new Error(`a list is answered ${status} ${JSON.stringify(body)}`);
    records.push(...body.items);
    cursor = body.cursor;
    if (cursor === null) return records;
  }
}

/** Returns what is wrong with the feeds, beside each other and beside what the table has in the end. */
export function feedProblems(
  feeds: readonly Pick<Feed, "name" | "segments">[],
  present: ReadonlySet<string>,
): string[] {
  const problems: string[] = [];
  const all = new Map<number, string>();
  for (const { name, segments } of feeds) {
    for (const { from, events } of segments) {
      let last = from;
      for (const { seq, id } of events) {
        if (seq <= last) problems.push(`${name} has ${seq} after ${last}`);
        last = seq;
        if ((all.get(seq) ?? id) !== id) problems.push(`${name} has another change ${seq} than others`);
        all.set(seq, id);
        if (!present.has(id)) problems.push(`${name} has shown the note ${id}, which is not there`);
      }
    }
  }
  for (const { name, segments } of feeds) {
    for (const { from, events } of segments) {
      const until = events.at(-1)?.seq ?? from;
      const has = new Set(events.map(({ seq }) => seq));
      const missing = [...all.keys()].filter((seq) => seq > from && seq < until && !has.has(seq));
      if (missing.length > 0) problems.push(`${name} lacks ${missing.length} changes between ${from} and ${until}`);
    }
  }
  return problems.slice(0, 20);
}

/** Returns the state of each database of a stopped node, by path: number of its last commit, and hash of the file without a WAL. */
function filesOf({ dataDirectory }: DrillNode): Map<string, { number: number; hash: string }> {
  const copy = join(temporaryDirectory(), "data");
  cpSync(dataDirectory, copy, { recursive: true, filter: (path) => !path.endsWith("-shm") });
  const states = new Map<string, { number: number; hash: string }>();
  for (const path of new Bun.Glob("**/*.db").scanSync({ cwd: copy })) {
    // Locks, and what a node keeps for itself: its own state, and restores that are compared.
    if (/\.lock|^(?:cluster|continuous)\//.test(path)) continue;
    const file = join(copy, path);
    const sqlite = new Database(file);
    if (sqlite.query("SELECT 1 FROM sqlite_schema WHERE name = ?").get(COMMIT_TABLE) === null)
      throw new Error(`${path} of ${dataDirectory} has no commit row`);
    const row = sqlite.query<{ number: number }, []>(`SELECT "number" FROM "${COMMIT_TABLE}"`).get();
    expect(sqlite.query("PRAGMA integrity_check").all()).toEqual([{ integrity_check: "ok" }]);
    sqlite.run("PRAGMA wal_checkpoint(TRUNCATE)");
    sqlite.close();
    states.set(path, { number: row?.number ?? -1, hash: Bun.hash(readFileSync(file)).toString(36) });
  }
  return states;
}

/** Compares the files of all nodes, which it kills. Files with the same last commit have to have the same bytes. */
async function expectSameCopies(cluster: DrillCluster): Promise<void> {
  await cluster.settled();
  await Promise.all(cluster.nodes.map((node) => node.kill("SIGKILL")));
  const [first, ...others] = cluster.nodes.filter(({ dataDirectory }) => existsSync(dataDirectory)).map(filesOf);
  let compared = 0;
  for (const other of others) {
    for (const [path, state] of other) {
      const there = first?.get(path);
      if (there === undefined || there.number !== state.number) continue;
      compared += 1;
      expect([path, state.hash]).toEqual([path, there.hash]);
    }
  }
  expect(compared).toBeGreaterThanOrEqual(others.length);
}

/** Ends the load, and checks everything that its clients were told. The nodes are killed in the end. */
export async function judge(
  cluster: DrillCluster,
  load: Load,
  { resyncsMax = 0 }: { resyncsMax?: number } = {},
): Promise<void> {
  await load.end();
  const { history } = load;
  const { node } = await cluster.owner();
  const notes = await recordsOf(node, NOTES, history);
  const present = new Set(notes.map(({ id }) => id));
  const titles = notes.map(({ title = "" }) => title);
  expect(history.violations).toEqual([]);
  // Once, whether it was answered or not.
  expect(titles.length - new Set(titles).size).toBe(0);
  expect([...history.acknowledged].filter(([, id]) => !present.has(id))).toEqual([]);
  expect([...history.shown].filter(([id]) => !present.has(id))).toEqual([]);

  const names = await recordsOf(node, NAMES, history);
  expect(names.length - new Set(names.map(({ name }) => name)).size).toBe(0);
  const named = new Map(names.map(({ id, name = "" }) => [name, id]));
  expect([...history.named].filter(([name, ids]) => ids.length > 1 || named.get(name) !== ids[0])).toEqual([]);

  for (const [key, operations] of history.registers) {
    expect(operations.length).toBeGreaterThan(0);
    if (!isLinearizable(operations, 0))
      throw new Error(`no order explains the register ${key}: ${JSON.stringify(operations)}`);
  }

  const [newest] = await lastNote(node, history);
  const lacks = ({ segments }: Feed): boolean => segments.at(-1)?.events.every(({ id }) => id !== newest) ?? true;
  await eventually("every feed has the last note", () => !history.feeds.some(lacks)).catch((cause: unknown) => {
    const states = history.feeds.map(({ name, connections, resyncs, last }) => ({ name, connections, resyncs, last }));
    throw new Error(JSON.stringify(states), { cause });
  });
  for (const feed of history.feeds) feed.stop();
  expect(feedProblems(history.feeds, present.add(newest))).toEqual([]);
  expect(history.feeds.reduce((sum, { resyncs }) => sum + resyncs, 0)).toBeLessThanOrEqual(resyncsMax);
  await expectSameCopies(cluster);
}

/** Writes one more note, behind everything. */
async function lastNote(node: DrillNode, { tally }: History): Promise<[id: string]> {
  const written = await new DrillClient(tally).ask(node, NOTES, { method: "POST", body: { title: "the last one" } });
  expect(written.status).toBe(201);
  return [written.body.id];
}
