import { Database } from "bun:sqlite";
import { expect, test } from "bun:test";
import { type Random, random, testSeed } from "../../../../../tests/support/random.ts";
import { EMBEDDINGS_TABLE, embeddedName, quoteIdentifier, unembeddedName } from "../../../db/index.ts";
import { applyEmbeddings, dropEmbeddingTriggers } from "../../../db/schema/embeddings.ts";
import { EMBED_TRIES_MAX } from "../limits.ts";
import {
  type EmbeddedModel,
  hasSetAside,
  isBehind,
  noteFailure,
  putVectors,
  type Statements,
  stateOf,
  takeWaiting,
  textOf,
  tryAgain,
  type Waiting,
} from "./machine.ts";

// Simulates records that change while their vectors are made, by a function that fails at random, in a process that ends at random
// between two transactions. Then everything has to settle: each record has the vector of its text, and nothing else has one.

const SEED = testSeed(20_950);
const SEEDS = 60 * Number(process.env["PLATFORM_FUZZ_ROUNDS"] ?? 1);
const STEPS = 250;

const MODEL: EmbeddedModel = {
  name: "notes",
  sql: `"notes"`,
  embed: {
    fields: ["title", "body"],
    with: () => [],
    key: "first",
    batch: 8,
    vectors: quoteIdentifier(embeddedName("notes")),
    waiting: quoteIdentifier(unembeddedName("notes")),
  },
};

/** The steps as they are, of which a planted mistake replaces one. */
const STEPS_OF = { takeWaiting, putVectors, noteFailure };
type Steps = typeof STEPS_OF;

const declared = (key: string) => ({
  name: "notes",
  kind: "schema",
  columnKinds: {},
  columns: [],
  indexes: [],
  fts: null,
  embed: { fields: ["title", "body"], key },
  migrations: [],
});

function openFile(): Database {
  const sqlite = new Database(":memory:");
  sqlite.run("PRAGMA foreign_keys = ON");
  sqlite.run(`CREATE TABLE "parents" ("id" TEXT PRIMARY KEY) STRICT`);
  sqlite.run(
    `CREATE TABLE "notes" ("id" TEXT PRIMARY KEY NOT NULL, "title" TEXT, "body" TEXT, "n" INTEGER,
     "parent" TEXT REFERENCES "parents" ON DELETE CASCADE) STRICT`,
  );
  return sqlite;
}

/** A vector that names its text. */
const vectorOf = (text: string): Uint8Array => {
  const digest = new Uint8Array(new Bun.CryptoHasher("sha256").update(text).digest());
  return new Uint8Array(Float32Array.from(digest.subarray(0, 4)).buffer);
};

function change(sqlite: Database, { below, chance, pick }: Random): void {
  const id = `r${below(30)}`;
  const title = pick([null, "", "one", "two", `word ${below(50)}`, "refused text"]);
  switch (below(10)) {
    case 0:
    case 1:
    case 2:
      sqlite.run(
        `INSERT INTO "notes" ("id", "title", "body", "n") VALUES (?1, ?2, ?3, 0) ON CONFLICT ("id") DO UPDATE SET "title" = ?2`,
        [id, title, chance(0.5) ? "body" : null],
      );
      break;
    case 3:
      if (!chance(0.1)) break;
      // What a migration may do fires no trigger for the record that it replaces.
      sqlite.run(`INSERT OR REPLACE INTO "notes" ("id", "title", "n") VALUES (?, ?, 0)`, [id, title]);
      applyEmbeddings(sqlite, declared(MODEL.embed.key), { isStale: true });
      break;
    case 4:
      sqlite.run(`UPDATE OR IGNORE "notes" SET "title" = ? WHERE "id" = ?`, [title, id]);
      break;
    case 5:
      sqlite.run(`UPDATE "notes" SET "n" = "n" + 1`);
      break;
    case 6:
      sqlite.run(`DELETE FROM "notes" WHERE "id" = ?`, [id]);
      break;
    case 7:
      sqlite.run(`INSERT OR IGNORE INTO "parents" VALUES ('p')`);
      sqlite.run(`UPDATE "notes" SET "parent" = 'p' WHERE "id" = ?`, [id]);
      if (chance(0.3)) sqlite.run(`DELETE FROM "parents" WHERE "id" = 'p'`);
      break;
    case 8:
      if (!chance(0.1)) break;
      // The server drops the triggers before it runs migrations.
      dropEmbeddingTriggers(sqlite, "notes");
      sqlite.run(`UPDATE "notes" SET "title" = ?, "body" = NULL WHERE "id" = ? OR "n" % 7 = ?`, [title, id, below(7)]);
      applyEmbeddings(sqlite, declared(MODEL.embed.key), { isStale: true });
      break;
    default:
      if (!chance(0.1)) break;
      // A migration, and then one that changes which vectors there are.
      applyEmbeddings(sqlite, declared(MODEL.embed.key), { isStale: true });
      if (chance(0.2)) applyEmbeddings(sqlite, declared(chance(0.5) ? "second" : "first"), { isStale: false });
  }
}

/** A call of the config's function. A process that ends leaves nothing of it. */
interface Call {
  waiting: Waiting[];
  isWorking: boolean;
}

function runSteps(seed: number, steps: Steps): { sqlite: Database; calls: number } {
  const r = random(seed);
  const sqlite = openFile();
  for (let at = 0; at < r.below(20); at++)
    sqlite.run(`INSERT INTO "notes" ("id", "title", "n") VALUES (?, 'old', 0)`, [`r${at}`]);
  applyEmbeddings(sqlite, declared("first"), { isStale: false });
  const tx: Statements = sqlite;
  let call: Call | null = null;
  let calls = 0;
  const step = (failing: number): boolean => {
    if (call === null) {
      const waiting = steps.takeWaiting(tx, MODEL, "next") ?? steps.takeWaiting(tx, MODEL, "late");
      if (waiting === null) return false;
      if (waiting.length > 0) call = { waiting, isWorking: !r.chance(failing) };
      calls++;
      return true;
    }
    const { waiting, isWorking } = call;
    call = null;
    const isRefused = waiting.some(({ text }) => text.includes("refused"));
    if (isWorking && !isRefused)
      steps.putVectors(
        tx,
        MODEL,
        waiting,
        waiting.map(({ text }) => vectorOf(text)),
      );
    else steps.noteFailure(tx, MODEL, waiting);
    return true;
  };
  for (let at = 0; at < STEPS; at++) {
    if (r.chance(0.4)) change(sqlite, r);
    else if (r.chance(0.1)) call = null;
    else step(0.2);
  }
  // The function works again, and nothing changes any more.
  call = null;
  tryAgain(tx, MODEL);
  for (let at = 0; step(0); at++) if (at > 30_000) throw new Error("it does not settle");
  return { sqlite, calls };
}

/** Describes what is wrong with a file where nothing waits; null: nothing. */
function fault(sqlite: Database): string | null {
  if (isBehind(sqlite, MODEL, "next") || isBehind(sqlite, MODEL, "late")) return "records wait";
  const records = sqlite.query<{ row: number; title: string | null; body: string | null }, []>(
    `SELECT rowid AS "row", "title", "body" FROM "notes" ORDER BY rowid`,
  );
  const wanted = records
    .all()
    .map(({ row, title, body }) => ({ row, text: textOf([title, body]) }))
    .filter(({ text }) => text !== "" && !text.includes("refused"))
    .map(({ row, text }) => `${row} ${Buffer.from(vectorOf(text)).toString("hex")}`);
  const stored = sqlite
    .query<{ row: number; vector: Uint8Array }, []>(`SELECT "row", "vector" FROM ${MODEL.embed.vectors} ORDER BY "row"`)
    .all()
    .map(({ row, vector }) => `${row} ${Buffer.from(vector).toString("hex")}`);
  if (stored.join() !== wanted.join()) return "the vectors are not those of the records";
  if (stateOf(sqlite, MODEL)?.vectors !== stored.length) return "the number of vectors is wrong";
  return null;
}

test(`[TB951] vectors follow records through failures and crashes (seed ${SEED})`, () => {
  let calls = 0;
  for (let seed = SEED; seed < SEED + SEEDS; seed++) {
    const run = runSteps(seed, STEPS_OF);
    expect({ seed, fault: fault(run.sqlite) }).toEqual({ seed, fault: null });
    calls += run.calls;
    run.sqlite.close();
  }
  expect(calls).toBeGreaterThan(SEEDS * 10);
});

/** Mistakes that the simulation has to find. */
const MISTAKES: [name: string, steps: Partial<Steps>, prepare?: (sqlite: Database) => void][] = [
  [
    "a vector is stored although its record has changed since",
    {
      putVectors(tx, model, waiting, vectors) {
        const now = tx.query<{ token: number }>(`SELECT "token" FROM ${model.embed.waiting} WHERE "row" = ?`);
        const fresh = waiting.map((one) => ({ ...one, token: now.get(one.row)?.token ?? one.token }));
        putVectors(tx, model, fresh, vectors);
      },
    },
  ],
  [
    "records leave the list before they have a vector",
    {
      takeWaiting(tx, model, which) {
        const waiting = takeWaiting(tx, model, which);
        for (const { row } of waiting ?? []) tx.query(`DELETE FROM ${model.embed.waiting} WHERE "row" = ?`).run(row);
        return waiting;
      },
    },
  ],
  [
    "a failure takes records from the list",
    {
      noteFailure(tx, model, waiting) {
        for (const { row } of waiting) tx.query(`DELETE FROM ${model.embed.waiting} WHERE "row" = ?`).run(row);
        return 0;
      },
    },
  ],
  [
    "a record whose text a migration has emptied keeps its vector",
    {
      takeWaiting(tx, model, which) {
        const all = `SELECT "row", "digest", "vector" FROM ${model.embed.vectors}`;
        const before = tx.query<{ row: number; digest: Uint8Array; vector: Uint8Array }>(all).all();
        const waiting = takeWaiting(tx, model, which);
        const put = tx.query(`INSERT OR IGNORE INTO ${model.embed.vectors} VALUES (?, ?, ?)`);
        for (const { row, digest, vector } of before)
          if (waiting?.every((one) => one.row !== row)) put.run(row, digest, vector);
        return waiting;
      },
    },
  ],
  [
    "the walk over all records ends too early",
    {
      takeWaiting(tx, model, which) {
        tx.query(`UPDATE "${EMBEDDINGS_TABLE}" SET "walk" = NULL`).run();
        return takeWaiting(tx, model, which);
      },
    },
  ],
];

test.each(MISTAKES)("[TB951] the simulation finds a planted mistake: %s", (_, mistake) => {
  let found = 0;
  for (let seed = SEED; seed < SEED + SEEDS && found === 0; seed++) {
    const { sqlite } = runSteps(seed, { ...STEPS_OF, ...mistake });
    if (fault(sqlite) !== null) found++;
    sqlite.close();
  }
  expect(found).toBe(1);
});

test("[TB952] a record whose text is refused ends up alone, is set aside after its tries, and gets new ones", () => {
  const sqlite = openFile();
  applyEmbeddings(sqlite, declared("first"), { isStale: false });
  for (let at = 0; at < 20; at++) {
    sqlite.run(`INSERT INTO "notes" ("id", "title") VALUES (?, ?)`, [`r${at}`, at === 7 ? "refused" : `text ${at}`]);
  }
  let failures = 0;
  const settle = (): void => {
    const take = () => takeWaiting(sqlite, MODEL, "next") ?? takeWaiting(sqlite, MODEL, "late");
    for (let waiting = take(); waiting !== null; waiting = take()) {
      if (!waiting.some(({ text }) => text === "refused")) {
        putVectors(
          sqlite,
          MODEL,
          waiting,
          waiting.map(({ text }) => vectorOf(text)),
        );
        continue;
      }
      failures++;
      expect(noteFailure(sqlite, MODEL, waiting)).toBe(failures === EMBED_TRIES_MAX ? 1 : 0);
    }
  };
  settle();
  expect({ failures, vectors: stateOf(sqlite, MODEL)?.vectors }).toEqual({ failures: EMBED_TRIES_MAX, vectors: 19 });
  expect(hasSetAside(sqlite, MODEL)).toBe(true);
  sqlite.run(`UPDATE "notes" SET "title" = 'taken now' WHERE "id" = 'r7'`);
  settle();
  expect({ failures, vectors: stateOf(sqlite, MODEL)?.vectors }).toEqual({ failures: EMBED_TRIES_MAX, vectors: 20 });
  expect(hasSetAside(sqlite, MODEL)).toBe(false);
});

test("[TB953] vectors of another length than the stored ones are refused", () => {
  const sqlite = openFile();
  applyEmbeddings(sqlite, declared("first"), { isStale: false });
  sqlite.run(`INSERT INTO "notes" ("id", "title") VALUES ('a', 'one')`);
  const first = takeWaiting(sqlite, MODEL, "next") ?? [];
  putVectors(sqlite, MODEL, first, [new Uint8Array(8)]);
  sqlite.run(`INSERT INTO "notes" ("id", "title") VALUES ('b', 'two')`);
  const second = takeWaiting(sqlite, MODEL, "next") ?? [];
  expect(() => putVectors(sqlite, MODEL, second, [new Uint8Array(12)])).toThrow(
    "vectors have 3 numbers, and those of notes have 2; another embed.model makes all of them again",
  );
  expect(isBehind(sqlite, MODEL, "next")).toBe(true);
});

test("[TB954] a record's text is cut, and a call gets about a mebibyte of texts", () => {
  const sqlite = openFile();
  applyEmbeddings(sqlite, declared("first"), { isStale: false });
  for (let at = 0; at < 8; at++) {
    sqlite.run(`INSERT INTO "notes" ("id", "title", "body") VALUES (?, ?, ?)`, [`r${at}`, "é".repeat(200_000), "end"]);
  }
  const waiting = takeWaiting(sqlite, MODEL, "next") ?? [];
  expect(waiting.map(({ text }) => text.length)).toEqual([32_768, 32_768]);
});
