import { join } from "node:path";
import { compare } from "../support/compare.ts";
import { CONNECTIONS, type Load, runLoad } from "../support/load.ts";
import { type Running, SERVICE_KEY, startFloor, startPlatform } from "../support/processes.ts";
import type { Bench, Result, Section } from "../support/section.ts";
import { median, milliseconds, perSecond } from "../support/statistics.ts";

/** Number of distinct requests, sent in random order. */
const VARIED = 1_000;
const RECORDS = 10_000;
const PAGES = 2_000;
const PAGE = 20;
const BATCH_RECORDS = 100;
const CATEGORIES = ["news", "sport", "film", "music", "science"];
const READERS_BESIDE_WRITERS = 8;
const ROUNDS = 3;
const ROUND_S = 3;
const BATCH_PER_SECOND_MIN = 40_000;
const READ_P99_MAX_MS = 10;

const SCHEMA = `{
  title: { type: "string", required: true, max: 200 },
  body: { type: "text" },
  category: { type: "string" },
  score: { type: "number" },
}`;
/** Config with rules that allow everyone. They are still evaluated, as functions of the user are. */
const CONFIG = `import { defineConfig } from "platform";

const schema = ${SCHEMA} as const;
const indexes = [{ fields: ["category", "score"] }];
export default defineConfig({
  databases: {
    shared: {
      tables: {
        posts: { schema, indexes, access: { read: true, insert: true, upsert: "matching" } },
        members: { schema, indexes, access: { read: (auth) => auth !== null } },
        written: { schema, access: { read: true, insert: true, upsert: "matching" } },
      },
    },
  },
});
`;

interface Post {
  id?: string;
  title: string;
  body: string;
  category: string;
  score: number;
}

function postAt(index: number): Post {
  return {
    title: `Post ${index}: what happened on the day`,
    body: "A paragraph of text that says what happened, to whom, and what came of it in the end. ".repeat(3),
    category: CATEGORIES[index % CATEGORIES.length] ?? "news",
    score: (index * 7919) % 100,
  };
}

const idAt = (index: number): string => `post-${String(index).padStart(6, "0")}`;

async function post(url: string, body: unknown): Promise<Response> {
  const headers = { "content-type": "application/json", "x-platform-service-key": SERVICE_KEY };
  const response = await fetch(url, { method: "POST", headers, body: JSON.stringify(body) });
  if (!response.ok) throw new Error(`${url} answered ${response.status}: ${await response.text()}`);
  return response;
}

async function fill(tables: string): Promise<void> {
  const requestMax = 500;
  for (const table of ["posts", "members"]) {
    for (let index = 0; index < RECORDS; index += requestMax) {
      const inserts = Array.from({ length: requestMax }, (_, offset) => ({
        id: idAt(index + offset),
        ...postAt(index + offset),
      }));
      await post(`${tables}/${table}/batch`, { inserts });
    }
  }
}

async function signUp(url: string): Promise<string> {
  const credentials = { email: "reader@example.com", password: "correct horse battery" };
  const response = await post(`${url}/api/auth/signup`, credentials);
  const { accessToken } = (await response.json()) as { accessToken: string };
  return accessToken;
}

async function reads(bench: Bench, platform: Running, floor: Running): Promise<Result[]> {
  const tables = `${platform.url}/api/db/shared/tables`;
  const suffixes = Array.from({ length: 1_000 }, (_, index) => `/${idAt((index * 7919) % RECORDS)}`);
  const authorization = { authorization: `Bearer ${await signUp(platform.url)}` };
  // Every request is different, as the text of repeated lists is cached.
  const pages = Array.from({ length: PAGES }, (_, index) => `&after=${idAt((index * 7919) % (RECORDS - PAGE))}`);
  const filters = Array.from({ length: VARIED }, (_, index) => filterOf(50 - index / VARIED));
  const one: Load = { url: `${floor.url}/posts`, suffixes };
  const list: Load = { url: `${floor.url}/posts` };
  return [
    await compare(bench, {
      ...{ name: "GET one record, public rule", platform: { url: `${tables}/posts`, suffixes } },
      ...{ floor: one, targetRatio: 0.75 },
    }),
    await compare(bench, {
      name: "GET one record, bearer token",
      platform: { url: `${tables}/members`, suffixes, headers: authorization },
      ...{ floor: one, targetRatio: 0.65 },
    }),
    await compare(bench, {
      ...{ name: "list of 20, another page each", platform: { url: `${tables}/posts?limit=20`, suffixes: pages } },
      ...{ floor: { url: `${floor.url}/pages?limit=20`, suffixes: pages }, targetRatio: 0.8 },
    }),
    await compare(bench, {
      ...{ name: "list of 20, the same again: a kept answer", platform: { url: `${tables}/posts?limit=20` } },
      ...{ floor: list, targetRatio: 0.8 },
    }),
    await compare(bench, {
      name: "list of 20, filtered and sorted, another filter each",
      platform: { url: `${tables}/posts?sort=score:desc&limit=20`, suffixes: filters },
      ...{ floor: { url: `${floor.url}/filtered` }, targetRatio: 0.8 },
    }),
  ];
}

const filterOf = (score: number): string =>
  `&filter=${encodeURIComponent(
    JSON.stringify([
      ["category", "==", "news"],
      ["score", ">=", score],
    ]),
  )}`;

async function batches(bench: Bench, tables: string): Promise<Result> {
  bench.note(`batch of ${BATCH_RECORDS}`);
  const inserts = Array.from({ length: BATCH_RECORDS }, (_, index) => postAt(index));
  const load: Load = { url: `${tables}/written/batch`, method: "POST", body: JSON.stringify({ inserts }) };
  const rounds = [];
  for (let round = 0; round < ROUNDS; round++) {
    rounds.push(await runLoad(load, { seconds: ROUND_S, directory: bench.directory("load") }));
  }
  const records = median(rounds.map(({ requestsPerSecond }) => requestsPerSecond)) * BATCH_RECORDS;
  return {
    ...{ name: `POST batch of ${BATCH_RECORDS} inserts, durable`, measured: perSecond(records, "records") },
    p50: milliseconds(median(rounds.map(({ p50Ms }) => p50Ms))),
    p99: milliseconds(median(rounds.map(({ p99Ms }) => p99Ms))),
    ...{ floor: null, ratio: null, target: `≥ ${perSecond(BATCH_PER_SECOND_MIN, "records")}` },
    isMet: records >= BATCH_PER_SECOND_MIN,
  };
}

async function readsBesideWrites(bench: Bench, tables: string, write: Load): Promise<Result> {
  bench.note("point reads beside writing clients");
  const suffixes = Array.from({ length: 1_000 }, (_, index) => `/${idAt((index * 7919) % RECORDS)}`);
  const read: Load = { url: `${tables}/posts`, suffixes, connections: READERS_BESIDE_WRITERS };
  const options = { seconds: ROUND_S, directory: bench.directory("load") };
  const rounds = [];
  for (let round = 0; round < ROUNDS; round++) {
    const [reading] = await Promise.all([runLoad(read, options), runLoad(write, options)]);
    rounds.push(reading);
  }
  const p99Ms = median(rounds.map((round) => round.p99Ms));
  return {
    name: `GET one record, ${READERS_BESIDE_WRITERS} clients beside ${CONNECTIONS} that write`,
    measured: perSecond(median(rounds.map(({ requestsPerSecond }) => requestsPerSecond))),
    p50: milliseconds(median(rounds.map(({ p50Ms }) => p50Ms))),
    p99: milliseconds(p99Ms),
    ...{ floor: null, ratio: null, target: `p99 < ${READ_P99_MAX_MS} ms`, isMet: p99Ms < READ_P99_MAX_MS },
  };
}

export const tables: Section = {
  name: "tables",
  title: "Tables",
  about: `${CONNECTIONS} connections of wrk, ${RECORDS.toLocaleString("en")} records of some 400 bytes. The floor reads the same database
file with the same statements in a bare \`Bun.serve\` (\`bench/floor.ts\`), without rules, checks or error bodies; it writes each record in a
transaction of its own with \`synchronous=FULL\`. Both run in turns, five rounds of three seconds each; medians.`,
  async run(bench) {
    const directory = bench.directory("tables");
    const platform = await startPlatform(bench.executable, directory, CONFIG);
    try {
      const own = `${platform.url}/api/db/shared/tables`;
      await fill(own);
      const floor = await startFloor(join(directory, "data", "databases", "shared.db"), directory);
      try {
        const body = JSON.stringify(postAt(1));
        const write: Load = { url: `${own}/written`, method: "POST", body };
        return [
          ...(await reads(bench, platform, floor)),
          await compare(bench, {
            ...{ name: "POST one record, durable", platform: write, targetRatio: 3 },
            floor: { url: `${floor.url}/posts`, method: "POST", body },
          }),
          await batches(bench, own),
          await readsBesideWrites(bench, own, write),
        ];
      } finally {
        await floor.stop();
      }
    } finally {
      await platform.stop();
    }
  },
};
