import { afterAll, beforeAll, expect, test } from "bun:test";
import type { JsonObject, JsonValue } from "../../src/kernel/json/json.ts";
import { type ListAnswer, type SignedIn, signIn, type TestPlatform, testPlatform } from "../support/index.ts";
import { mutated, ODD_TEXTS, oddValue } from "../support/mutations.ts";
import { type Random, random, testSeed } from "../support/random.ts";

// Any query, filter or search is answered 200 or 400, without a server error, without data of others' records, and
// without changing any. tests/fuzz/tables-properties.test.ts checks the results of valid queries.

const SEED = testSeed(20_266);
const ROUNDS = 900 * Number(process.env["PLATFORM_FUZZ_ROUNDS"] ?? 1);
const AT_ONCE = 8;
const CANARY = "the-secret-of-bob";
const TABLES = ["words", "grams", "stems", "free"] as const;
const OWN_RECORDS = 6;

let platform: TestPlatform;
let ann: SignedIn;
let bob: SignedIn;
let before: string;
const path = (table: string): string => `/api/db/shared/tables/${table}`;

beforeAll(async () => {
  const fields = `owner: { type: "string" }, title: { type: "text" }, n: { type: "number" }, i: { type: "integer" }, b: { type: "boolean" }, at: { type: "datetime" }, on: { type: "date" }, place: { type: "geo" }, refs: { type: "references", references: "kinds" }, j: { type: "json" }, slug: { type: "string", unique: true }`;
  const access = `read: (auth) => auth === null ? false : [["owner", "==", auth.id]], update: true, delete: (auth) => [["owner", "==", auth.id]]`;
  const table = (name: string, tokenize: string) =>
    `${name}: { schema: { ${fields} }, fts: { fields: ["title"], tokenize: "${tokenize}" }, access: { ${access} } }`;
  platform = await testPlatform({
    config: `{ databases: { shared: { tables: { ${table("words", "unicode61")}, ${table("grams", "trigram")}, ${table("stems", "porter")},
      free: { access: { ${access} } }, kinds: { schema: { owner: { type: "string" } }, access: { ${access} } } } } } }`,
  });
  const kinds = await platform.service.post(`${path("kinds")}/batch`, { inserts: [{ id: "x" }, { id: "y" }] });
  expect(kinds.status).toBe(200);
  ann = await signIn(platform);
  bob = await signIn(platform);
  for (const name of TABLES) {
    const record = (owner: string, index: number): JsonObject => ({
      ...{ id: `${owner === ann.id ? "a" : "b"}${index}`, owner, n: index / 2, i: index, b: index % 2 === 0 },
      ...{
        at: "2026-01-01T00:00:00Z",
        on: "2026-01-01",
        place: { lat: index, lng: 180 - index },
        refs: ["y", "x"].slice(index % 3),
        j: { tags: ["x"], deep: { k: index } },
        slug: `${owner}-${index}`,
      },
      title: owner === ann.id ? `running words e\u0301 ${index}` : `${CANARY} running words ${index}`,
    });
    const inserts = [ann, bob].flatMap(({ id }) =>
      Array.from({ length: OWN_RECORDS }, (_, index) => record(id, index)),
    );
    expect((await platform.service.post(`${path(name)}/batch`, { inserts })).status).toBe(200);
  }
  before = await recordsOfBob();
});
afterAll(() => platform.stop());

const recordsOfBob = async (): Promise<string> => {
  const lists = await Promise.all(TABLES.map((name) => bob.get<ListAnswer>(path(name))));
  return JSON.stringify(lists.map(({ body }) => body.items));
};

const FIELDS = [
  "id",
  "owner",
  "title",
  "n",
  "i",
  "b",
  "at",
  "on",
  "place",
  "refs",
  "createdAt",
  "slug",
  "nothing",
].concat(["j", "j.tags", "j.deep.k"]);
const OPERATORS = ["==", "!=", ">", ">=", "<", "<=", "contains", "icontains", "startsWith", "istartsWith"].concat([
  "in",
  "not in",
  "within",
  "inBox",
  "has",
  "hasAny",
  "hasAll",
  "LIKE",
  "=",
  "is",
  "",
]);

function condition(r: Random): JsonValue {
  if (r.chance(0.15)) return oddValue(r);
  const field = r.chance(0.15)
    ? `${r.pick(FIELDS)}${r.pick([".", "..", ".a", ". ", "[0]", '"', "' OR 1=1"])}`
    : r.pick(FIELDS);
  const value = r.chance(0.4)
    ? oddValue(r)
    : r.pick<JsonValue>([
        "running",
        1,
        true,
        null,
        ["x", 1, null],
        ["x", "y"],
        { k: 1 },
        { lat: 1, lng: 180, meters: 5e6 },
        { south: -9, west: 9, north: 9, east: -9 },
      ]);
  const tuple: JsonValue[] = [r.chance(0.1) ? r.pick(ODD_TEXTS) : field, r.pick(OPERATORS), value];
  if (r.chance(0.1)) return tuple.slice(0, r.below(3));
  return r.chance(0.05) ? [...tuple, 1] : tuple;
}

/** A relation or a group, sometimes one that is not valid. */
function grouped(r: Random, levels: number): JsonValue {
  const within = (): JsonValue => (levels > 0 && r.chance(0.4) ? grouped(r, levels - 1) : condition(r));
  const entering = [
    r.pick(["slug", "id", "owner"]),
    "==",
    r.chance(0.5) ? { field: r.pick(["slug", "id", "n", "j"]) } : r.pick(["a1", "b1"]),
  ];
  const related = {
    table: r.pick([...TABLES, "kinds", "none"]),
    where: r.chance(0.1) ? oddValue(r) : [entering, within()],
  };
  return { [r.pick(["some", "none", "or", "not"])]: r.chance(0.8) ? (related as JsonValue) : [[within()], [within()]] };
}

const conditions = (r: Random): JsonValue =>
  r.chance(0.08)
    ? oddValue(r)
    : Array.from({ length: r.below(r.chance(0.1) ? 60 : 4) }, () => (r.chance(0.15) ? grouped(r, 2) : condition(r)));

/** Text with the syntax of full-text search: operators, columns, quotes, wildcards, unpaired surrogates. */
function words(r: Random): string {
  const pieces = [
    ...[
      "running",
      "words",
      "r",
      "ru",
      "e\u0301",
      "é",
      CANARY,
      "AND",
      "OR",
      "NOT",
      "NEAR(",
      "NEAR(a b, 2)",
      '"',
      '""',
      "'",
    ],
    ...[
      "*",
      "run*",
      "^run",
      "title:",
      "{title} :",
      "-",
      "+",
      "(",
      ")",
      "col:*",
      "\\",
      "%",
      "_",
      "\0",
      ".",
      "<mark>",
      "日本語",
      "😀",
    ],
    ...["\u200d", "\ufeff", "\ue000", "\uffff", "\u0000running", ...ODD_TEXTS.slice(0, 28)],
  ];
  const chosen = Array.from({ length: 1 + r.below(5) }, () => r.pick(pieces));
  return chosen.join(r.pick([" ", "", "\t", "\u00a0", '"']));
}

function tampered(r: Random, cursor: string): string {
  const at = r.below(cursor.length);
  switch (r.below(5)) {
    case 0:
      return cursor.slice(0, at);
    case 1:
      return cursor.slice(0, at) + r.pick(["A", "_", "=", "~", "\0", "é"]) + cursor.slice(at + 1);
    case 2:
      return `c1~${Buffer.from(JSON.stringify(oddValue(r))).toString("base64url")}`;
    case 3:
      return `c1~${Buffer.from(JSON.stringify(["id:asc", oddValue(r)])).toString("base64url")}`;
    default:
      return r.pick(ODD_TEXTS);
  }
}

type Request = [method: "GET" | "POST", path: string, query: Record<string, string>, body?: JsonObject];

function request(r: Random, cursors: readonly string[]): Request {
  const table = path(r.pick(TABLES));
  const query: Record<string, string> = {};
  const maybe = (name: string, value: () => string, probability = 0.3): void => {
    if (r.chance(probability)) query[name] = value();
  };
  const kind = r.below(5);
  if (kind === 4) {
    const body: JsonObject = { action: r.pick(["update", "delete"]), filter: conditions(r), data: { n: oddValue(r) } };
    // ann must not delete records that the test needs.
    const own: JsonObject = { ...body, orFilter: [["owner", "==", bob.id]] };
    return ["POST", `${table}/batch-by-filter`, {}, r.chance(0.5) ? mutated(r, own) : own];
  }
  maybe("filter", () => (r.chance(0.1) ? words(r) : JSON.stringify(conditions(r))), 0.6);
  maybe("orFilter", () => JSON.stringify(conditions(r)));
  if (kind === 3) return ["GET", `${table}/count`, query];
  const sort = () => `${r.pick(FIELDS)}${r.pick(["", ":asc", ":desc", ":", ":ASC", " asc", ",", ",id", ":asc; --"])}`;
  maybe("sort", () => [sort(), ...(r.chance(0.3) ? [sort()] : [])].join(","));
  if (r.chance(0.3))
    maybe(
      "near",
      () => `${r.pick(["place", ...FIELDS])}:${r.pick(["1", "-90", "1e9", "x", ""])}:${r.pick(["2", "180", "NaN"])}`,
    );
  maybe("fields", () => [r.pick(FIELDS), r.pick(ODD_TEXTS)].slice(0, 1 + r.below(2)).join(","));
  maybe("limit", () => r.pick(["1", "2", "1000", "0", "-1", "1e3", "٣", "9".repeat(20), "", " 1"]));
  maybe(r.pick(["after", "before"]), () => (r.chance(0.3) ? r.pick(cursors) : tampered(r, r.pick(cursors))));
  if (kind > 0) return ["GET", table, query];
  maybe("highlightPre", () => r.pick(ODD_TEXTS));
  return ["GET", `${table}/search`, { ...query, q: words(r) }];
}

async function send([method, to, query, body]: Request): Promise<{ status: number; text: string }> {
  const parameters = Object.keys(query).length === 0 ? "" : `?${new URLSearchParams(query)}`;
  const json =
    body === undefined ? {} : { body: JSON.stringify(body), headers: { "content-type": "application/json" } };
  const answer = await ann.fetch(`${to}${parameters}`, { method, ...json });
  return { status: answer.status, text: await answer.text() };
}

test(`[TB16, TB42, TB48, TB65] queries survive any input (seed ${SEED})`, async () => {
  const r = random(SEED);
  const first = await ann.get<ListAnswer>(path("words"), { query: { limit: 2 } });
  const sorted = await ann.get<ListAnswer>(path("words"), { query: { limit: 2, sort: "n:desc,title" } });
  const cursors = [String(first.body.cursor), String(sorted.body.cursor), "a1", "b1"];
  const statuses = new Map<number, number>();
  for (let round = 0; round < ROUNDS; round += AT_ONCE) {
    const requests = Array.from({ length: AT_ONCE }, () => request(r, cursors));
    const answers = await Promise.all(requests.map(send));
    for (const [index, { status, text }] of answers.entries()) {
      const sent = JSON.stringify(requests[index]).slice(0, 2_000);
      statuses.set(status, (statuses.get(status) ?? 0) + 1);
      const isExpected = [200, 400, 431].includes(status);
      expect({ sent, status, isExpected }).toEqual({ sent, status, isExpected: true });
      // An error may quote the request, but no record.
      const isTold = status === 200 && (text.includes(CANARY) || text.includes(bob.id));
      expect({ sent, isTold }).toEqual({ sent, isTold: false });
    }
  }
  // Some inputs are valid and some are not.
  expect(statuses.get(200) ?? 0).toBeGreaterThan(ROUNDS / 20);
  expect(statuses.get(400) ?? 0).toBeGreaterThan(ROUNDS / 20);
  expect(await recordsOfBob()).toBe(before);
  expect((await platform.get("/api/health")).body).toMatchObject({ status: "ok" });
  const errors = `${platform.stdout()}\n${platform.stderr()}`
    .split("\n")
    .filter((line) => /"level":"(?:ERROR|FATAL)"/.test(line));
  expect(errors).toEqual([]);
}, 600_000);
