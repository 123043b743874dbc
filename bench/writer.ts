/**
 * Compares inserts per second with many concurrent writers: the writer of src/server/db against one commit per request. Run: bun
 * bench/writer.ts [writers] [seconds]
 */
import { Database } from "bun:sqlite";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { tablesLayout } from "../schema/migrations/index.ts";
import { systemClock } from "../src/kernel/clock.ts";
import { createStorageEngine, layOut } from "../src/server/db/index.ts";

const writers = Number(process.argv[2] ?? 32);
const durationMs = Number(process.argv[3] ?? 3) * 1000;
const directory = mkdtempSync(join(tmpdir(), "writer-bench-"));
const CREATE = "CREATE TABLE IF NOT EXISTS items (id TEXT PRIMARY KEY NOT NULL, title TEXT, n INTEGER) STRICT";
const INSERT = "INSERT INTO items VALUES (?, ?, ?)";

type Insert = (n: number) => Promise<unknown>;

/** Runs writers that each send the next insert after the previous response, as clients do. */
async function measure(name: string, insert: Insert): Promise<void> {
  const latenciesMs: number[] = [];
  const endAt = performance.now() + durationMs;
  let count = 0;
  await Promise.all(
    Array.from({ length: writers }, async () => {
      while (performance.now() < endAt) {
        const startedAt = performance.now();
        count += 1;
        await insert(count);
        latenciesMs.push(performance.now() - startedAt);
      }
    }),
  );
  latenciesMs.sort((a, b) => a - b);
  const at = (share: number) => (latenciesMs[Math.floor(latenciesMs.length * share)] ?? 0).toFixed(2);
  const perSecond = Math.round((latenciesMs.length / durationMs) * 1000);
  console.log(`${name.padEnd(34)} ${String(perSecond).padStart(7)} inserts/s   p50 ${at(0.5)} ms   p99 ${at(0.99)} ms`);
}

function commitEach(mode: "FULL" | "NORMAL"): { insert: Insert; close: () => void } {
  const sqlite = new Database(join(directory, `${mode}.db`));
  sqlite.run("PRAGMA journal_mode = WAL");
  sqlite.run(`PRAGMA synchronous = ${mode}`);
  sqlite.run(CREATE);
  const statement = sqlite.query(INSERT);
  return {
    // A separate request, which arrives in a turn of the event loop.
    insert: (n) =>
      new Promise((resolve) => {
        setImmediate(() => resolve(statement.run(Bun.randomUUIDv7(), `title ${n}`, n)));
      }),
    close: () => sqlite.close(),
  };
}

const engine = createStorageEngine({ clock: systemClock, onFailure: (path, cause) => console.error(path, cause) });
try {
  for (const mode of ["FULL", "NORMAL"] as const) {
    const { insert, close } = commitEach(mode);
    await measure(`one commit per request, ${mode}`, insert);
    close();
  }
  const file = engine.open(join(directory, "ours.db"), {
    migrate(sqlite) {
      layOut(tablesLayout)(sqlite);
      sqlite.run(CREATE);
    },
  });
  await measure("group commit, synced", (n) =>
    file.write((tx) => {
      const id = Bun.randomUUIDv7();
      tx.query(INSERT).run(id, `title ${n}`, n);
      tx.change({ table: "items", id, before: null, after: {} });
    }),
  );
  if (file.rowCount("items") !== file.query<{ n: number }>("SELECT count(*) AS n FROM items").get()?.n) {
    throw new Error("the row count is wrong");
  }
} finally {
  await engine.stop();
  rmSync(directory, { recursive: true });
}
