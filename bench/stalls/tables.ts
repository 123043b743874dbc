import { SERVICE_KEY } from "../support/processes.ts";
import { fill, JSON_HEADERS, MIB, SERVICE_HEADERS, type StallArea, send, words } from "./area.ts";
import type { OperationRequest } from "./measure.ts";

const P = "/api/db/shared/tables";
const FIELD_CHARACTERS_MAX = 100_000;
const RECORD_BYTES = MIB - 2_000;
const BATCH_BYTES = 10 * MIB - 20_000;
const NEEDLE = "a".repeat(1_000);
const FILTERS_MAX = 50;
const VALUES_MAX = 1_000;
/** The number of words that a search may have. */
const LETTERS = Array.from({ length: 32 }, (_, n) => n.toString(36)).join(" ");

const CONFIG = `import { defineConfig } from "platform";

const anyone = { read: true, insert: true, update: true, delete: true, upsert: "matching" } as const;
const fields = Object.fromEntries(Array.from({ length: 10 }, (_, n) => [\`text\${n}\`, { type: "text" }])) as Record<string, { type: "text" }>;
export default defineConfig({
  databases: {
    shared: {
      tables: {
        notes: { schema: { body: { type: "text" } }, fts: ["body"], access: anyone },
        ranked: { schema: { body: { type: "text" }, n: { type: "integer" } }, fts: ["body"],
          access: { ...anyone, read: () => [["n", "in", Array.from({ length: 1_000 }, (_, n) => n)]] } },
        trigrams: { schema: { body: { type: "text" } }, fts: { fields: ["body"], tokenize: "trigram" }, access: anyone },
        written: { schema: { body: { type: "text" } }, fts: { fields: ["body"], tokenize: "trigram" }, access: anyone },
        wide: { schema: fields, fts: { fields: Object.keys(fields), tokenize: "trigram" }, access: anyone },
        large: { schema: { text: { type: "text" }, n: { type: "integer" } }, access: anyone },
        rows: { schema: { text: { type: "text" }, n: { type: "integer" } }, access: anyone },
        cased: { schema: { text: { type: "text" }, n: { type: "integer" } }, access: anyone },
        short: { schema: { text: { type: "text" }, n: { type: "integer" } }, access: anyone },
        free: { access: anyone },
        dropped: { access: { insert: true, update: true } },
        parents: { schema: { name: { type: "string" } }, access: anyone },
        children: { schema: { parent: { type: "string", references: { table: "parents", onDelete: "cascade" } } }, access: anyone },
      },
    },
  },
});
`;

const filterOf = (filter: unknown): string => `filter=${encodeURIComponent(JSON.stringify(filter))}`;

const post = (path: string, body: unknown): OperationRequest => ({
  ...{ method: "POST", path, headers: JSON_HEADERS, body: typeof body === "string" ? body : JSON.stringify(body) },
});

/** Returns 500 inserts that fill a body, each with a text of that many characters. */
function fullBatch(): unknown {
  const count = 500;
  const length = Math.floor(BATCH_BYTES / count) - 40;
  return { inserts: Array.from({ length: count }, (_, index) => ({ body: words(length, index + 1) })) };
}

function fullFields(): unknown {
  const inserts = Array.from({ length: 95 }, (_, index) => ({ body: words(FIELD_CHARACTERS_MAX, index + 1) }));
  return { inserts };
}

const manyFilters = JSON.stringify(
  Array.from({ length: FILTERS_MAX }, (_, index) => [
    "text",
    "not in",
    Array.from({ length: VALUES_MAX }, (__, value) => `value ${index} ${value}`),
  ]),
);

/** Returns 500 operations that fill a body. */
function fullTransaction(): unknown {
  const text = "a".repeat(Math.floor(BATCH_BYTES / 500) - 100);
  return { operations: Array.from({ length: 500 }, () => ({ table: "rows", action: "insert", data: { text } })) };
}

/** Returns conditions that search 8 MiB of almost matching text, in a record that does not change. */
const searching = (): unknown => {
  const condition = ["text", "contains", `${"ab".repeat(250)}ba${"ab".repeat(248)}`];
  const operation = { table: "large", action: "update", id: "nearly", data: {}, if: Array(8).fill(condition) };
  return { operations: [operation] };
};

/** Returns inserts whose response of just under 1 MiB is cached whole. */
const keptWhole = (): unknown => ({ inserts: Array.from({ length: 450 }, () => ({ text: "a".repeat(2_100) })) });

const deepBody = `${"[".repeat(5 * MIB)}${"]".repeat(5 * MIB - 10_000)}`;
const manyMembers = (count: number): string =>
  JSON.stringify(Object.fromEntries(Array.from({ length: count }, (_, index) => [`member${index}`, 1])));

/** Creates a request of a service key, whose values are not counted. */
const byServiceKey = (path: string, body: unknown): OperationRequest => ({
  ...post(path, body),
  headers: SERVICE_HEADERS,
});
const manyDocuments = () => ({
  inserts: Array.from({ length: 500 }, () => JSON.parse(manyMembers(900))),
});
const largeDocuments = () => ({ inserts: Array.from({ length: 10 }, () => JSON.parse(manyMembers(45_000))) });
const sameDocument = () => ({ updates: Array.from({ length: 500 }, (_, n) => ({ id: "d", data: { member1: n } })) });

const incremented = { action: "update", data: { n: { $op: "increment", value: 1 } } };
const lastOfList = ["text", "in", [...Array.from({ length: VALUES_MAX - 1 }, (_, index) => `v${index}`), "last"]];

async function prepare(server: Parameters<StallArea["prepare"]>[0]) {
  const inTurn = `${LETTERS} `.repeat(Math.floor(FIELD_CHARACTERS_MAX / (LETTERS.length + 1)));
  const hits = "a ".repeat(FIELD_CHARACTERS_MAX / 2);
  await fill(server, `${P}/notes`, 60, (index) => ({ body: index < 30 ? hits : words(FIELD_CHARACTERS_MAX, index) }));
  await fill(server, `${P}/ranked`, 300, (index) => ({ body: inTurn, n: index }));
  await fill(server, `${P}/trigrams`, 30, (index) => ({ body: words(FIELD_CHARACTERS_MAX, index + 1) }));
  await fill(server, `${P}/large`, 60, (index) => ({ text: "a".repeat(RECORD_BYTES), n: index }));
  await fill(server, `${P}/rows`, 2_000, (index) => ({ text: `${index} ${"a".repeat(100_000)}`, n: index }));
  const parents = 5_000;
  await fill(server, `${P}/parents`, parents, (index) => ({ id: `p${index}`, name: "n" }));
  await fill(server, `${P}/children`, parents * 5, (index) => ({ parent: `p${index % parents}` }));
  await fill(server, `${P}/cased`, 8, (index) => ({ text: "aB".repeat(RECORD_BYTES / 2), n: index }));
  await fill(server, `${P}/short`, 2_000, (index) => ({ text: "last", n: index }));
  await fill(server, `${P}/dropped`, 1, () => ({ id: "d" }));
  await send(server, "POST", `${P}/free`, { id: "d", ...JSON.parse(manyMembers(49_000)) });
  const nearly = { id: "nearly", text: "ab".repeat(RECORD_BYTES / 2), n: 0 };
  await fill(server, `${P}/large`, 1, () => nearly);
  const replay: OperationRequest = post(`${P}/rows/batch`, keptWhole());
  replay.headers = { ...replay.headers, "idempotency-key": "replayed", "x-platform-service-key": SERVICE_KEY };
  const long = words(1_000, 3);
  const deletesMax = 450;
  const deletes = Array.from({ length: parents / 500 }, (_, turn) => ({
    deletes: Array.from({ length: deletesMax }, (__, index) => `p${turn * 500 + index}`),
  }));
  const worst: OperationRequest[] = [
    { path: `${P}/notes/search?q=e&limit=1000` },
    { path: `${P}/rows?limit=1&${filterOf([["text", "contains", NEEDLE]])}` },
    { path: `${P}/large?limit=1000` },
    post(`${P}/written/batch`, fullFields()),
  ];
  return [
    {
      name: "GET one record beside searches, filters, lists and batches in turn",
      requests: worst,
      probedPath: `${P}/parents/p1`,
    },
    { name: "search, 50,000 hits a record", requests: [{ path: `${P}/notes/search?q=a&limit=1000` }] },
    { name: "search, a prefix of most words", requests: [{ path: `${P}/notes/search?q=e&limit=1000` }] },
    {
      name: "search, 32 words",
      requests: [{ path: `${P}/notes/search?limit=1000&q=${encodeURIComponent("a ".repeat(32).trim())}` }],
    },
    {
      name: "ranked search, 32 words in 300 × 100 KB",
      requests: [{ path: `${P}/ranked/search?limit=1000&q=${encodeURIComponent(LETTERS)}` }],
    },
    {
      name: "trigram search of 1,000 characters",
      requests: [{ path: `${P}/trigrams/search?limit=1000&q=${encodeURIComponent(long)}` }],
    },
    { name: "trigram search of one character", requests: [{ path: `${P}/trigrams/search?limit=1000&q=e` }] },
    { name: "list, 60 records of 1 MiB", requests: [{ path: `${P}/large?limit=1000` }] },
    { name: "one record of 1 MiB", requests: [{ path: `${P}/large?limit=1` }] },
    {
      name: "filter: contains 1,000 characters in 2,000 × 100 KB",
      requests: [{ path: `${P}/rows?limit=1&${filterOf([["text", "contains", NEEDLE]])}` }],
    },
    {
      name: "count: contains, nothing found, in 2,000 × 100 KB",
      requests: [{ path: `${P}/rows/count?${filterOf([["text", "contains", `${NEEDLE.slice(1)}b`]])}` }],
    },
    { name: "list sorted by 100 KB texts", requests: [{ path: `${P}/rows?limit=1&sort=text:desc&offset=1900` }] },
    {
      name: "batch-by-filter, 50 filters of 1,000 values",
      requests: [
        post(
          `${P}/rows/batch-by-filter`,
          `{"action":"update","filter":${manyFilters},"data":{"n":{"$op":"increment","value":1}}}`,
        ),
      ],
      clients: 2,
    },
    {
      name: "batch-by-filter, contains on large texts",
      requests: [
        post(`${P}/rows/batch-by-filter`, {
          action: "delete",
          filter: [["text", "contains", `${NEEDLE.slice(1)}b`]],
        }),
      ],
    },
    {
      name: "batch-by-filter, 500 short records, 50 lists of 1,000 values",
      requests: [post(`${P}/short/batch-by-filter`, { ...incremented, filter: Array(FILTERS_MAX).fill(lastOfList) })],
    },
    {
      name: "batch-by-filter, 50 searches in long texts of any case",
      requests: [
        post(`${P}/cased/batch-by-filter`, {
          ...incremented,
          filter: Array(FILTERS_MAX).fill(["text", "icontains", "ab"]),
        }),
      ],
    },
    {
      name: "list, one field named 20,000 times",
      requests: [{ path: `${P}/short?limit=1000&fields=${"n,".repeat(20_000)}n` }],
    },
    {
      name: "PATCH of 49,000 fields that may not be read",
      requests: [{ ...post(`${P}/dropped/d`, manyMembers(49_000)), method: "PATCH" }],
    },
    {
      name: "batch, 500 inserts of 20 KB, trigram index",
      requests: [post(`${P}/written/batch`, fullBatch())],
      clients: 2,
    },
    {
      name: "batch, 95 inserts of 100,000 characters, trigram",
      requests: [post(`${P}/written/batch`, fullFields())],
      clients: 2,
    },
    {
      name: "insert, 10 full fields with trigram",
      requests: [
        post(
          `${P}/wide`,
          Object.fromEntries(Array.from({ length: 10 }, (_, n) => [`text${n}`, words(FIELD_CHARACTERS_MAX, n + 9)])),
        ),
      ],
      clients: 2,
    },
    {
      name: "batch, 500 documents of 900 members, by a service key",
      requests: [byServiceKey(`${P}/free/batch`, manyDocuments())],
      clients: 2,
    },
    {
      name: "batch, 10 documents of 45,000 members, by a service key",
      requests: [byServiceKey(`${P}/free/batch`, largeDocuments())],
      clients: 2,
    },
    {
      name: "batch, 500 updates of a document of 49,000 members",
      requests: [byServiceKey(`${P}/free/batch`, sameDocument())],
      clients: 1,
    },
    {
      name: "batch deletes, 450 × 5 records by cascade",
      requests: deletes.map((body) => post(`${P}/parents/batch`, body)),
      clients: 1,
    },
    {
      name: "transaction, 500 inserts of 20 KB",
      requests: [post("/api/db/shared/transaction", fullTransaction())],
      clients: 2,
    },
    { name: "if: contains 1,000 characters, 8 × 1 MB", requests: [post("/api/db/shared/transaction", searching())] },
    { name: "replay of an answer of 1 MiB", requests: [replay] },
    { name: "insert, 10 MiB of nested arrays", requests: [post(`${P}/rows`, deepBody)] },
    { name: "insert, 600,000 unknown members", requests: [post(`${P}/rows`, manyMembers(600_000))] },
    {
      name: "insert, one string of 10 MiB",
      requests: [post(`${P}/rows`, JSON.stringify({ text: "a".repeat(BATCH_BYTES) }))],
    },
  ];
}

export const tableStalls: StallArea = { name: "tables", config: CONFIG, prepare };
