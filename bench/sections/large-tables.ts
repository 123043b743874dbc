import { resolve } from "node:path";
import { runLoad } from "../support/load.ts";
import { SERVICE_KEY, startPlatform } from "../support/processes.ts";
import type { Bench, Result, Section } from "../support/section.ts";
import { median, milliseconds, perSecond } from "../support/statistics.ts";

const DOCUMENTS = 100_000;
/** Owners of as many documents each, of which the rule shows one's. */
const OWNERS = 100;
const ROWS = 1_000_000;
const REQUEST_RECORDS = 500;
const WARM_UP = 20;
const REPEATS = 200;
const REQUESTS = WARM_UP + REPEATS;
const SCANNERS = 4;
const LOAD_S = 8;
const PAGE_RECORDS = 100;
const FAR_PAGE = 1_000;
/** Realistic searches in this text: rare and common words, pairs, a prefix. */
const QUERIES = [
  "websocket",
  "sqlite database",
  "hot reload",
  "environment variable",
  "monorepo",
  "typescript conf",
  "stream",
];

const CONFIG = `{ databases: { shared: { tables: {
  documents: { schema: { title: { type: "string" }, body: { type: "text" }, ownerId: { type: "string" } }, fts: ["title", "body"],
    indexes: [{ fields: ["ownerId"] }], access: { read: () => [["ownerId", "==", "owner-7"]] } },
  rows: { schema: { n: { type: "integer", required: true }, text: { type: "string" } }, indexes: [{ fields: ["n"] }], access: { read: true } },
} } } }`;

/** Returns paragraphs of prose, from the documentation of the runtime's types. */
async function paragraphs(): Promise<string[]> {
  const directory = resolve(import.meta.dir, "../../node_modules/bun-types/docs");
  const found: string[] = [];
  for (const path of [...new Bun.Glob("**/*.mdx").scanSync(directory)].sort()) {
    const text = await Bun.file(resolve(directory, path)).text();
    found.push(...text.split(/\n{2,}/).filter((one) => one.length > 80 && one.length < 2_000));
  }
  return found;
}

async function fill(table: string, count: number, recordAt: (index: number) => unknown): Promise<number> {
  const startedAt = performance.now();
  const headers = { "content-type": "application/json", "x-platform-service-key": SERVICE_KEY };
  for (let index = 0; index < count; index += REQUEST_RECORDS) {
    const inserts = Array.from({ length: REQUEST_RECORDS }, (_, offset) => recordAt(index + offset));
    const response = await fetch(`${table}/batch`, { method: "POST", headers, body: JSON.stringify({ inserts }) });
    if (!response.ok) throw new Error(`${table} answered ${response.status}: ${await response.text()}`);
    await response.arrayBuffer();
  }
  return (count / (performance.now() - startedAt)) * 1_000;
}

/** Measures sequential requests, without the first few. */
async function times(
  urls: readonly string[],
  headers: Record<string, string> = {},
): Promise<{ p50Ms: number; p99Ms: number }> {
  const taken: number[] = [];
  for (let index = 0; index < REQUESTS; index++) {
    const startedAt = performance.now();
    const response = await fetch(urls[index % urls.length] ?? "", { headers });
    await response.arrayBuffer();
    if (!response.ok) throw new Error(`${response.url} answered ${response.status}`);
    if (index >= WARM_UP) taken.push(performance.now() - startedAt);
  }
  taken.sort((a, b) => a - b);
  return { p50Ms: median(taken), p99Ms: taken[Math.floor(taken.length * 0.99)] ?? 0 };
}

const line = (
  name: string,
  one: { p50Ms: number; p99Ms: number },
  target: string | null,
  isMet: boolean | null,
): Result => ({
  ...{ name, measured: milliseconds(one.p50Ms), p50: milliseconds(one.p50Ms), p99: milliseconds(one.p99Ms) },
  ...{ floor: null, ratio: null, target, isMet },
});

/** Returns the addresses of that page and later ones: distinct requests, as the response to a repeated one is cached. */
async function pagesFrom(rows: string, page: number): Promise<string[]> {
  const one = `${rows}?sort=n&limit=${PAGE_RECORDS}`;
  let url = one;
  const urls: string[] = [];
  for (let walked = 1; walked < page + REQUESTS; walked++) {
    if (walked >= page) urls.push(url);
    const { cursor } = (await (await fetch(url)).json()) as { cursor: string };
    url = `${one}&after=${encodeURIComponent(cursor)}`;
  }
  return urls;
}

async function pages(rows: string): Promise<Result[]> {
  const [first, far] = [await times(await pagesFrom(rows, 2)), await times(await pagesFrom(rows, FAR_PAGE))];
  const pageRatio = far.p50Ms / first.p50Ms;
  const each = (query: (index: number) => string) => Array.from({ length: REQUESTS }, (_, n) => `${rows}?${query(n)}`);
  const plain = await times(each((index) => `limit=20&offset=${index}&total=false`));
  const total = await times(each((index) => `limit=20&offset=${index}`));
  const totalRatio = total.p50Ms / plain.p50Ms;
  return [
    line(`cursor pages from 2 on, of ${PAGE_RECORDS}, sorted by an indexed field`, first, null, null),
    {
      ...line("cursor pages from 1,000 on", far, "≤ 1.5 × those from 2 on", pageRatio <= 1.5),
      floor: milliseconds(first.p50Ms),
      ratio: pageRatio,
    },
    line("list of 20 without a total", plain, null, null),
    {
      ...line("list of 20 with the total", total, "≤ 1.2 × without", totalRatio <= 1.2),
      floor: milliseconds(plain.p50Ms),
      ratio: totalRatio,
    },
  ];
}

/** Measures readers of one record, concurrent with clients that repeatedly scan the million records without an index. */
async function besideScans(bench: Bench, tables: string): Promise<Result[]> {
  const scanFor = (text: string) =>
    `${tables}/rows?filter=${encodeURIComponent(JSON.stringify([["text", "contains", text]]))}`;
  let isOver = false;
  let begun = 0;
  const scans: number[] = [];
  const scanner = async () => {
    while (!isOver) {
      const startedAt = performance.now();
      const response = await fetch(scanFor(`nowhere ${++begun}`));
      await response.arrayBuffer();
      if (!response.ok) throw new Error(`a scan answered ${response.status}`);
      scans.push(performance.now() - startedAt);
    }
  };
  const scanners = Array.from({ length: SCANNERS }, scanner);
  const load = { url: `${tables}/documents/doc-0000007`, connections: 4 };
  const reading = await runLoad(load, { seconds: LOAD_S, directory: bench.directory("load") });
  isOver = true;
  await Promise.all(scanners);
  return [
    {
      ...{
        name: `GET one record beside ${SCANNERS} clients that scan 1,000,000`,
        measured: perSecond(reading.requestsPerSecond),
      },
      ...{ p50: milliseconds(reading.p50Ms), p99: milliseconds(reading.p99Ms), floor: null, ratio: null },
      ...{ target: "p99 < 20 ms", isMet: reading.p99Ms < 20 },
    },
    line("a scan meanwhile, with its count", { p50Ms: median(scans), p99Ms: Math.max(...scans) }, null, null),
  ];
}

export const largeTables: Section = {
  name: "large-tables",
  title: "Large tables",
  about: `100,000 paragraphs of documentation with full-text search over title and body, and 1,000,000 rows; one client at a time, ${REPEATS}
requests each, over HTTP. The searches go round ${QUERIES.length} queries of one and two words (${QUERIES.map((one) => `"${one}"`).join(", ")}).`,
  async run(bench) {
    const platform = await startPlatform(
      bench.executable,
      bench.directory("large-tables"),
      `import { defineConfig } from "platform";\n\nexport default defineConfig(${CONFIG});\n`,
    );
    try {
      const tables = `${platform.url}/api/db/shared/tables`;
      const texts = await paragraphs();
      bench.note(`filling ${DOCUMENTS} documents and ${ROWS} rows`);
      const id = (name: string, index: number) => `${name}-${String(index).padStart(7, "0")}`;
      await fill(`${tables}/documents`, DOCUMENTS, (index) => {
        const body = texts[index % texts.length] ?? "";
        return { id: id("doc", index), title: body.slice(0, 40), body, ownerId: `owner-${index % OWNERS}` };
      });
      const filled = await fill(`${tables}/rows`, ROWS, (index) => ({
        id: id("row", index),
        n: (index * 7_919) % 1_000_003,
        text: `text ${index % 1_000}`,
      }));
      bench.note("searches, pages, scans");
      const searches = QUERIES.map((q) => `${tables}/documents/search?limit=20&q=${encodeURIComponent(q)}`);
      const searched = await times(searches, { "x-platform-service-key": SERVICE_KEY });
      const visible = await times(searches);
      return [
        line("search in 100,000 documents", searched, "p50 < 10 ms", searched.p50Ms < 10),
        line(
          "ranked search under a rule that shows 1,000 of 100,000 documents",
          visible,
          "p50 ≤ 15 ms",
          visible.p50Ms <= 15,
        ),
        ...(await pages(`${tables}/rows`)),
        ...(await besideScans(bench, tables)),
        {
          ...line("", { p50Ms: 0, p99Ms: 0 }, null, null),
          name: `filling the rows, ${REQUEST_RECORDS} a request, one client`,
          measured: perSecond(filled, "records"),
          p50: null,
          p99: null,
        },
      ];
    } finally {
      await platform.stop();
    }
  },
};
