import { afterAll, beforeAll, expect, test } from "bun:test";
import type { JsonObject } from "../../../src/kernel/json/json.ts";
import { type ListAnswer, type SignedIn, signIn, type TestPlatform, testPlatform } from "../../support/index.ts";
import { random, testSeed } from "../../support/random.ts";

// The order of a search under the filter of a read rule: by relevance, computed from visible records alone.

const SEED = testSeed(20_800);
const r = random(SEED);

/** Read rules that show the records with `who: "seen"`, by an index or not. */
const RULES = {
  byIndex: '[["who", "==", "seen"]]',
  byList: '[["who", "in", ["seen", "nobody"]]]',
  byText: '[["whoText", "==", "seen"]]',
  byGroup: 'anyOf([["who", "==", "seen"]], [["n", "==", -1]])',
  byRelation: '[some("shown", [["who", "==", field("who")]])]',
  byMember:
    '[["n", ">=", 0], some("members", [["team", "==", field("who")], ["user", "in", ["u", "v"]], ["level", ">", 1]])]',
} as const;
const TOKENIZERS = ["unicode61", "porter", "trigram"] as const;
const TABLES = Object.keys(RULES).flatMap((rule) => TOKENIZERS.map((tokenize) => `${rule}_${tokenize}`));

type Found = JsonObject & { id: string; highlights: Record<string, string> };
type Order = readonly (string | undefined)[];
let platform: TestPlatform;
let caller: SignedIn;

/** Two namespaces of the same tables: `bare` has the visible records, `full` hidden ones as well. */
beforeAll(async () => {
  const tables = Object.entries(RULES).flatMap(([name, rule]) =>
    TOKENIZERS.map(
      (tokenize) => `${name}_${tokenize}: {
        schema: { title: { type: "string" }, body: { type: "text" }, n: { type: "integer" }, whoText: { type: "string" }, who: { type: "string" } },
        indexes: [{ fields: ["who"] }], fts: { fields: ["title", "body"], tokenize: "${tokenize}" },
        access: { read: (auth) => auth !== null && ${rule} },
      },`,
    ),
  );
  const namespace = `{ tables: { ${tables.join("\n")}
    members: { schema: { team: { type: "string" }, user: { type: "string" }, level: { type: "integer" } }, indexes: [{ fields: ["user", "team"] }] },
    shown: { schema: { who: { type: "string", unique: true } } },
    notes: { schema: { title: { type: "string" }, who: { type: "string" } }, fts: ["title"], indexes: [{ fields: ["who"] }],
      access: { read: (auth) => auth !== null && [["who", "==", "seen"]] } },
    many: { schema: { title: { type: "string" }, who: { type: "string" } }, fts: ["title"], indexes: [{ fields: ["who"] }],
      access: { read: (auth) => auth !== null && [["who", "==", "seen"]] } },
  } }`;
  platform = await testPlatform({
    config: `import { anyOf, field, some } from "platform";
      export default { databases: { bare: ${namespace}, full: ${namespace} } };`,
  });
  caller = await signIn(platform);
});
afterAll(() => platform.stop());

const path = (namespace: string, table: string) => `/api/db/${namespace}/tables/${table}`;
const insert = async (namespace: string, table: string, records: readonly JsonObject[]) => {
  for (let at = 0; at < records.length; at += 500) {
    const inserts = records.slice(at, at + 500);
    const { status, body } = await platform.service.post(`${path(namespace, table)}/batch`, { inserts });
    expect([status, status === 200 ? "" : body]).toEqual([200, ""]);
  }
};
const search = async (table: string, q: string, query: Record<string, string | number> = {}, namespace = "bare") => {
  const answer = await caller.get<ListAnswer<Found>>(`${path(namespace, table)}/search`, { query: { q, ...query } });
  expect(answer.status).toBe(200);
  return answer.body;
};
const order = async (...args: Parameters<typeof search>): Promise<Order> =>
  (await search(...args)).items.map(({ id }) => id);
const at = (second: number) => new Date(1_700_000_000_000 + second * 1_000).toISOString();

const WORDS = "river rivers running run state of the art quokka quokka7391 Äpfel apfel go x1 café".split(" ");
/** `run` and `of` are in most texts, the others in a few. */
const word = () => (r.below(3) === 0 ? r.pick(["run", "of", "river"]) : r.pick(WORDS));
const text = (most: number) => Array.from({ length: 1 + r.below(most) }, word).join(r.pick([" ", " ", "-", ". "]));
const recordOf = (n: number, who: string): JsonObject => ({
  id: `${who}${n}`,
  title: text(4),
  body: text(30),
  n,
  who,
  whoText: who,
  createdAt: at(r.below(50)),
});

const QUERIES = [
  ...WORDS,
  ...["ri", "r", "q", "quok", "state-of", "state-of-the-art run", "river run", "run river", "run of quokka", "of o"],
  ...["run ru", "quokka7391 river quokka", "x", "ö", "ä", "%", "of go x1", "e-of", "secret", "run secret", '"', "***"],
];
const FORMS: readonly Record<string, string | number>[] = [
  {},
  { limit: 3 },
  { limit: 3, page: 2 },
  { limit: 2, offset: 5 },
  { offset: 1000 },
  { offset: 995, limit: 20 },
  { fields: "title" },
  { sort: "n" },
  { filter: '[["n",">",12]]' },
  { filter: '[{"not":[["title","contains","river"]]}]', limit: 4 },
  { orFilter: '[["n","<",5],["body","icontains","SECRET"]]' },
  { highlightPre: "[", highlightPost: "]", limit: 5 },
];
const WRONG: readonly Record<string, string | number>[] = [
  { limit: 0 },
  { offset: -1 },
  { page: 2, offset: 3 },
  { sort: "nothing" },
  { filter: '[["nothing","==",1]]' },
  { q: "" },
  { q: "a ".repeat(33) },
];

test(`[TB801] no answer of a search tells of hidden records (seed ${SEED})`, async () => {
  for (const namespace of ["bare", "full"]) {
    await insert(namespace, "shown", [{ id: "s", who: "seen" }]);
    await insert(namespace, "members", [
      { team: "seen", user: "v", level: 2 },
      { team: "other", user: "u", level: 1 },
      { team: null, user: "u", level: 3 },
      { team: "hidden", user: "w", level: 3 },
    ]);
  }
  for (const table of TABLES) {
    const visible = Array.from({ length: 25 }, (_, n) => recordOf(n, "seen"));
    const hidden = Array.from({ length: 60 }, (_, n) => {
      const record = recordOf(n, r.pick(["other", "hidden"]));
      return { ...record, id: `h${n}`, body: `secret ${record["body"]} secret quokka7391` };
    });
    // Hidden records lie before, between and after the visible ones.
    const mixed = [...hidden.slice(0, 20), ...visible.slice(0, 12), ...hidden.slice(20, 40), ...visible.slice(12)];
    await insert("bare", table, visible);
    await insert("full", table, [...mixed, ...hidden.slice(40)]);
    const removed = hidden.slice(0, 5).map(({ id }) => id);
    await platform.service.post(`${path("full", table)}/batch`, { deletes: removed });
  }
  const compare = async (table: string, query: Record<string, string | number>) => {
    const [bare, full] = await Promise.all(
      ["bare", "full"].map((namespace) => caller.get<JsonObject>(`${path(namespace, table)}/search`, { query })),
    );
    const { requestId: _shown, ...shown } = full?.body ?? {};
    const { requestId: _expected, ...expected } = bare?.body ?? {};
    expect([table, query, full?.status, withoutTimes(shown)]).toEqual([
      table,
      query,
      bare?.status,
      withoutTimes(expected),
    ]);
    return shown;
  };
  let found = 0;
  for (const table of TABLES) {
    for (const q of QUERIES) {
      // The plain form of each, and another one.
      for (const { items } of await Promise.all([{}, r.pick(FORMS)].map((form) => compare(table, { q, ...form })))) {
        found += Array.isArray(items) ? items.length : 0;
      }
    }
    await Promise.all(WRONG.map((wrong) => compare(table, { q: "run", ...wrong })));
  }
  expect(found).toBeGreaterThan(1_000);
});

/** The records of both namespaces were updated at different times. */
const withoutTimes = (body: JsonObject): JsonObject =>
  JSON.parse(JSON.stringify(body).replaceAll(/"updatedAt":"[^"]*"/g, '"updatedAt":""'));

test("[TB800] the best match comes first: more hits, shorter texts, rarer words; equal ones by id", async () => {
  await insert("bare", "notes", [
    { id: "c", title: "lemur of a longer text that says more about others", who: "seen" },
    { id: "d", title: "lemur", who: "seen" },
    { id: "b", title: "lemur", who: "seen" },
    { id: "a", title: "lemur lemur lemur of a longer text about lemurs", who: "seen" },
    { id: "hidden", title: "lemur lemur lemur lemur", who: "other" },
  ]);
  expect(await order("notes", "lemur")).toEqual(["a", "b", "d", "c"]);
  expect(await search("notes", "lemur", { limit: 2, page: 2 })).toMatchObject({
    items: [{ id: "d" }, { id: "c" }],
    total: 4,
    page: 2,
    perPage: 2,
  });
  // `common` is in all records, `rare` in two of them: the one that has it twice comes first.
  const commons = Array.from({ length: 30 }, (_, n) => ({ id: `z${n}`, title: "common thing", who: "seen" }));
  await insert("bare", "notes", [
    { id: "1", title: "common common rare", who: "seen" },
    { id: "2", title: "common rare rare", who: "seen" },
    ...commons,
  ]);
  expect(await order("notes", "common rare")).toEqual(["2", "1"]);
  expect(await order("notes", "rare comm")).toEqual(["2", "1"]);
});

test(`[TB800] scores are those of BM25 over the visible records (seed ${SEED})`, async () => {
  const vocabulary = ["alpha", "beta", "gamma", "delta", "omega"];
  const texts = new Map<string, string[]>();
  for (let n = 0; n < 120; n++) {
    const words = Array.from({ length: 1 + r.below(12) }, () => vocabulary[Math.min(r.below(5), r.below(5))] ?? "");
    texts.set(`r${String(n).padStart(3, "0")}`, words);
  }
  await insert(
    "bare",
    "notes",
    [...texts].map(([id, words]) => ({ id, title: words.join(" "), who: "seen" })),
  );
  await insert(
    "bare",
    "notes",
    Array.from({ length: 200 }, (_, n) => ({ id: `h${n}`, title: r.pick(vocabulary), who: "other" })),
  );
  const expected = (asked: readonly string[]): string[] => {
    const matches = [...texts].filter(([, words]) => asked.every((one) => words.includes(one)));
    const average = matches.reduce((sum, [, words]) => sum + words.length, 0) / matches.length;
    const score = (words: readonly string[]): number =>
      asked.reduce((sum, one) => {
        const count = [...texts.values()].filter((other) => other.includes(one)).length;
        const hits = words.filter((other) => other === one).length;
        const weight = asked.length === 1 ? 1 : Math.log(1 + (1000.5 - count) / (count + 0.5));
        return sum + (weight * hits * 2.2) / (hits + 1.2 * (0.25 + (0.75 * words.length) / average));
      }, 0);
    const scored = matches.map(([id, words]) => ({ id, score: Math.round(score(words) * 1e9) }));
    return scored.sort((one, other) => other.score - one.score || (one.id < other.id ? -1 : 1)).map(({ id }) => id);
  };
  for (const asked of [["alpha"], ["omega"], ["alpha", "beta"], ["omega", "alpha"], ["beta", "gamma", "alpha"]]) {
    expect([asked, await order("notes", asked.join(" "), { limit: 1000 })]).toEqual([asked, expected(asked)]);
  }
});

test("[TB802] the newest 1,000 matches are ranked; all others follow, newest first, and pages have each once", async () => {
  const count = 1_030;
  const records = Array.from({ length: count }, (_, n) => ({
    id: `m${String(n).padStart(4, "0")}`,
    // The two oldest ones have the most hits, and are not ranked; of the others one has.
    title: n < 2 || n === 500 ? "panda panda panda panda" : "panda of this and that",
    who: "seen",
    createdAt: at(n),
  }));
  await insert("bare", "many", records);
  const all: (string | undefined)[] = [];
  for (const offset of [0, 400, 800]) {
    const page = await search("many", "panda", { limit: 400, offset });
    expect(page.total).toBe(count);
    all.push(...page.items.map(({ id }) => id));
  }
  const ids = records.map(({ id }) => id);
  const ranked = ids.slice(30).filter((id) => id !== "m0500");
  expect(all).toEqual(["m0500", ...ranked, ...ids.slice(0, 30).reverse()]);
  expect(await order("many", "panda", { limit: 5, offset: 998 })).toEqual(all.slice(998, 1003));
  expect(await order("many", "panda", { limit: 5, page: 206 })).toEqual(all.slice(1025));
  expect(await search("many", "panda", { offset: 1_030 })).toMatchObject({ items: [], total: count });
  expect(await search("many", "panda", { offset: 900, filter: '[["id","<","m0100"]]' })).toMatchObject({
    items: [],
    total: 100,
  });
});
