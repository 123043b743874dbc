import { compare } from "../support/compare.ts";
import { CONNECTIONS, type Load } from "../support/load.ts";
import { SERVICE_KEY, startPlatform } from "../support/processes.ts";
import type { Section } from "../support/section.ts";

const AT_ONCE = 100;
const ROWS = 100_000;
const FILLED_AT_ONCE = 500;
const BOUNDS = 2_000;
/** Minimum rate of inserts with a key, relative to those without one. */
const KEYED_RATIO_MIN = 0.5;
const TRANSACTION_RATIO_MIN = 0.85;
const UNCOUNTED_RATIO_MIN = 1.5;

const CONFIG = `export default { databases: { shared: { tables: {
  written: { schema: { title: { type: "string", required: true }, body: { type: "text" }, score: { type: "number" } } },
  rows: { schema: { n: { type: "integer" }, group: { type: "integer" } }, indexes: [{ fields: ["group", "n"] }] },
} } } };
`;

const record = (index: number) => ({
  title: `Record ${index}: what happened on the day`,
  body: "A paragraph of text that says what happened, to whom, and what came of it in the end. ".repeat(3),
  score: index,
});
const headers = { "x-platform-service-key": SERVICE_KEY };

async function fill(rows: string): Promise<void> {
  for (let index = 0; index < ROWS; index += FILLED_AT_ONCE) {
    const inserts = Array.from({ length: FILLED_AT_ONCE }, (_, offset) => ({
      n: index + offset,
      group: (index + offset) % 3,
    }));
    const init = {
      method: "POST",
      headers: { ...headers, "content-type": "application/json" },
      body: JSON.stringify({ inserts }),
    };
    const response = await fetch(`${rows}/batch`, init);
    if (!response.ok) throw new Error(`${rows} answered ${response.status}: ${await response.text()}`);
  }
}

export const safeWrites: Section = {
  name: "safe-writes",
  title: "Tables: keys, transactions, lists without a total",
  about: `${CONNECTIONS} connections of wrk with a service key. The floor is the server itself: inserts of one record without an
\`Idempotency-Key\` (each request has a header of its own all the same), a batch of ${AT_ONCE} inserts, and the first page of a filtered list with its total, of a
third of ${ROWS.toLocaleString("en")} rows by an index, with another bound each time. Both run in turns, five rounds of three seconds each; medians.`,
  async run(bench) {
    const platform = await startPlatform(bench.executable, bench.directory("safe-writes"), CONFIG);
    try {
      const shared = `${platform.url}/api/db/shared`;
      const written = `${shared}/tables/written`;
      await fill(`${shared}/tables/rows`);
      const one: Load = { url: written, method: "POST", headers, body: JSON.stringify(record(1)) };
      const records = Array.from({ length: AT_ONCE }, (_, index) => record(index));
      const operations = records.map((data) => ({ table: "written", action: "insert", data }));
      const page = `${shared}/tables/rows?sort=n:desc&limit=20`;
      // A different bound each time, as the response to a repeated request is cached.
      const filters = Array.from({ length: BOUNDS }, (_, bound) => {
        const filter = [
          ["group", "==", 1],
          ["n", "<", ROWS - bound],
        ];
        return `&filter=${encodeURIComponent(JSON.stringify(filter))}`;
      });
      return [
        await compare(bench, {
          name: "POST one record with an Idempotency-Key",
          platform: { ...one, freshHeader: "Idempotency-Key" },
          floor: { ...one, freshHeader: "X-Request-Name" },
          targetRatio: KEYED_RATIO_MIN,
        }),
        await compare(bench, {
          name: `transaction of ${AT_ONCE} inserts`,
          platform: { url: `${shared}/transaction`, method: "POST", headers, body: JSON.stringify({ operations }) },
          floor: { url: `${written}/batch`, method: "POST", headers, body: JSON.stringify({ inserts: records }) },
          targetRatio: TRANSACTION_RATIO_MIN,
        }),
        await compare(bench, {
          name: "first page of a filtered list, total=false",
          platform: { url: `${page}&total=false`, headers, suffixes: filters },
          floor: { url: page, headers, suffixes: filters },
          targetRatio: UNCOUNTED_RATIO_MIN,
        }),
      ];
    } finally {
      await platform.stop();
    }
  },
};
