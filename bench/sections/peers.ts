import { join, resolve } from "node:path";
import { compare } from "../support/compare.ts";
import { type Load, type LoadResult, runLoad } from "../support/load.ts";
import { type Running, SERVICE_KEY, startFloor, startPlatform } from "../support/processes.ts";
import type { Bench, Result, Section } from "../support/section.ts";
import { median, milliseconds, perSecond } from "../support/statistics.ts";

const FLOOR = resolve(import.meta.dir, "../peers-floor.ts");
const RECORDS = 10_000;
const BATCH = 500;
const VARIED = 1_000;
const LIST_TARGET = 0.85;
const SIGN_IN_TARGET = 0.9;
const SIGN_IN_CLIENTS = 4;
const COUNTING_CLIENTS = 4;
const ROUNDS = 3;
const ROUND_S = 3;
const INSERT_P99_MAX_MS = 10;
const UPDATE_P99_MAX_MS = 15;
const UPDATE_TARGET = 0.9;
const USER = { email: "peer@example.com", password: "correct horse battery" };

const CONFIG = `import { defineConfig } from "platform";

const schema = {
  title: { type: "string", required: true },
  rating: { type: "number" },
  done: { type: "boolean" },
  note: { type: "text" },
} as const;
const UNLIMITED = { requests: 1_000_000_000, window: 60 };
const table = { schema, indexes: [{ fields: ["rating"] }], access: { read: true, insert: true, update: true, upsert: "matching" } } as const;
export default defineConfig({
  server: { workers: "auto" },
  rateLimits: { auth: UNLIMITED, signup: UNLIMITED, signin: UNLIMITED },
  databases: { shared: { tables: { items: table, written: table } } },
});
`;

const itemAt = (index: number) => ({
  title: `Item ${index}`,
  rating: ((index * 7_919) % 1_000) / 10,
  done: index % 2 === 0,
  note: "A paragraph of text that says what happened, to whom, and what came of it in the end. ".repeat(3),
});
const idAt = (index: number): string => `item-${String(index).padStart(6, "0")}`;

async function post(url: string, body: unknown): Promise<void> {
  const headers = { "content-type": "application/json", "x-platform-service-key": SERVICE_KEY };
  const response = await fetch(url, { method: "POST", headers, body: JSON.stringify(body) });
  if (!response.ok) throw new Error(`${url} answered ${response.status}: ${await response.text()}`);
}

async function fill(items: string): Promise<void> {
  for (let start = 0; start < RECORDS; start += BATCH) {
    const inserts = Array.from({ length: BATCH }, (_, n) => ({ id: idAt(start + n), ...itemAt(start + n) }));
    await post(`${items}/batch`, { inserts });
  }
}

const queryOf = (above: number, more: string): string => {
  const filter = JSON.stringify([
    ["rating", ">", above],
    ["done", "==", true],
  ]);
  return `?filter=${encodeURIComponent(filter)}&sort=rating:desc&limit=20${more}`;
};

async function lists(bench: Bench, items: string, floor: Running): Promise<Result[]> {
  const abovesOf = Array.from({ length: VARIED }, (_, index) => 40 + index / 100);
  const varied = abovesOf.map((above) => queryOf(above, "&total=false"));
  return [
    await compare(bench, {
      ...{
        name: "list of 20, two conditions, without a total: a kept answer",
        platform: { url: items + queryOf(50, "&total=false") },
      },
      ...{ floor: { url: `${floor.url}/list?above=50` }, targetRatio: LIST_TARGET },
    }),
    await compare(bench, {
      ...{ name: "the same, another bound each time", platform: { url: items, suffixes: varied } },
      floor: { url: `${floor.url}/list`, suffixes: abovesOf.map((above) => `?above=${above}`) },
      targetRatio: LIST_TARGET,
    }),
    await compare(bench, {
      name: `list of 20, two conditions, with the total, ${COUNTING_CLIENTS} clients: a kept answer`,
      platform: { url: items + queryOf(50, ""), connections: COUNTING_CLIENTS },
      floor: { url: `${floor.url}/counted?above=50`, connections: COUNTING_CLIENTS },
      targetRatio: LIST_TARGET,
    }),
  ];
}

async function signIns(bench: Bench, platform: Running, floor: Running): Promise<Result> {
  await post(`${platform.url}/api/auth/signup`, USER);
  const signIn: Load = { url: `${platform.url}/api/auth/signin`, method: "POST", body: JSON.stringify(USER) };
  const connections = SIGN_IN_CLIENTS;
  return compare(bench, {
    ...{ name: `sign-in, ${SIGN_IN_CLIENTS} clients`, platform: { ...signIn, connections } },
    ...{ floor: { url: `${floor.url}/signin`, connections }, targetRatio: SIGN_IN_TARGET },
  });
}

async function writes(bench: Bench, tables: string): Promise<Result[]> {
  bench.note("inserts and updates");
  const insert: Load = { url: `${tables}/written`, method: "POST", body: JSON.stringify(itemAt(1)) };
  const body = JSON.stringify({ rating: 5, title: "Changed" });
  const suffixes = Array.from({ length: VARIED }, (_, index) => `/${idAt((index * 7_919) % RECORDS)}`);
  const update: Load = { url: `${tables}/items`, method: "PATCH", body, suffixes };
  const options = { seconds: ROUND_S, directory: bench.directory("load") };
  const rounds: Record<"insert" | "update", LoadResult>[] = [];
  for (let round = 0; round < ROUNDS; round++) {
    rounds.push({ insert: await runLoad(insert, options), update: await runLoad(update, options) });
  }
  const figures = (kind: "insert" | "update") => ({
    rate: median(rounds.map((round) => round[kind].requestsPerSecond)),
    p50: median(rounds.map((round) => round[kind].p50Ms)),
    p99: median(rounds.map((round) => round[kind].p99Ms)),
  });
  const [inserts, updates] = [figures("insert"), figures("update")];
  const ratio = updates.rate / inserts.rate;
  return [
    {
      ...{ name: "insert, 32 clients, durable", measured: perSecond(inserts.rate), floor: null, ratio: null },
      ...{ p50: milliseconds(inserts.p50), p99: milliseconds(inserts.p99), target: `p99 ≤ ${INSERT_P99_MAX_MS} ms` },
      isMet: inserts.p99 <= INSERT_P99_MAX_MS,
    },
    {
      ...{ name: "update, 32 clients, durable; the floor is the insert", measured: perSecond(updates.rate) },
      ...{ p50: milliseconds(updates.p50), p99: milliseconds(updates.p99), floor: perSecond(inserts.rate), ratio },
      target: `≥ ${UPDATE_TARGET} of the insert, p99 ≤ ${UPDATE_P99_MAX_MS} ms`,
      isMet: ratio >= UPDATE_TARGET && updates.p99 <= UPDATE_P99_MAX_MS,
    },
  ];
}

export const peers: Section = {
  name: "peers",
  title: "What others are measured by",
  about: `The requests by which backends of this kind are compared: ${RECORDS.toLocaleString("en")} records, a list of 20 with \`rating > x\` and \`done = true\` sorted by
\`rating\`, which has an index; sign-ins with argon2id (19 MiB, two passes); inserts, and updates of single records. The floor is a bare
\`Bun.serve\` with the same statements on the same file, and with the bare hash (\`bench/peers-floor.ts\`). In turns, medians.`,
  async run(bench) {
    const directory = bench.directory("peers");
    const platform = await startPlatform(bench.executable, directory, CONFIG);
    try {
      const tables = `${platform.url}/api/db/shared/tables`;
      await fill(`${tables}/items`);
      const floor = await startFloor(join(directory, "data", "databases", "shared.db"), directory, FLOOR);
      try {
        return [
          ...(await lists(bench, `${tables}/items`, floor)),
          await signIns(bench, platform, floor),
          ...(await writes(bench, tables)),
        ];
      } finally {
        await floor.stop();
      }
    } finally {
      await platform.stop();
    }
  },
};
