import { afterAll, beforeAll, expect, test } from "bun:test";
import type { JsonObject } from "../../../src/kernel/json/json.ts";
import { type ListAnswer, type SignedIn, signIn, type TestPlatform, testPlatform, until } from "../../support/index.ts";
import { random, testSeed } from "../../support/random.ts";

// Searches for rare words run on the main thread, all others in query processes: among them those with an accent, which finds the
// same words, so that each search can be compared with one of the other kind.

const SEED = testSeed(20_804);
const r = random(SEED);
const TABLES = ["open", "owned", "related"] as const;
/** Words that are in a few records, in many, and in more than the main thread searches for. */
const WORDS = ["zebra", "zeal", "Ze7", "otter", "ox", "common", "all"];
const word = (): string => {
  if (r.below(3) === 0) return r.pick(["common", "all"]);
  return r.below(9) === 0 ? r.pick(WORDS) : `filler${r.below(400)}`;
};

let platform: TestPlatform;
let caller: SignedIn;

beforeAll(async () => {
  const table = (read: string) => `{
    schema: { title: { type: "string" }, body: { type: "text" }, n: { type: "integer" }, who: { type: "string" } },
    indexes: [{ fields: ["who"] }], fts: ["title", "body"], access: { read: ${read} },
  }`;
  platform = await testPlatform({
    config: `import { field, some } from "platform";
      export default { databases: { shared: { tables: {
        open: ${table("true")},
        owned: ${table('() => [["who", "==", "seen"]]')},
        related: ${table('() => [some("shown", [["who", "==", field("who")]])]')},
        shown: { schema: { who: { type: "string", unique: true } } },
        long: { schema: { text: { type: "text", max: 100000 } }, fts: ["text"], access: { read: true } },
      } } } }`,
  });
  caller = await signIn(platform);
  expect((await platform.service.post("/api/db/shared/tables/shown", { who: "seen" })).status).toBe(201);
  for (const name of TABLES) {
    const inserts = Array.from(
      { length: 900 },
      (_, n): JsonObject => ({
        id: `r${n}`,
        title: Array.from({ length: 3 }, word).join(" "),
        body: Array.from({ length: 12 }, word).join(r.pick([" ", "-"])),
        n,
        who: r.pick(["seen", "hidden"]),
      }),
    );
    for (let at = 0; at < inserts.length; at += 450) {
      const batch = { inserts: inserts.slice(at, at + 450) };
      expect((await platform.service.post(`/api/db/shared/tables/${name}/batch`, batch)).status).toBe(200);
    }
  }
});
afterAll(() => platform.stop());

type Found = JsonObject & { id: string; highlights: Record<string, string> };
const search = async (table: string, query: Record<string, string | number>) => {
  const answer = await caller.get<ListAnswer<Found>>(`/api/db/shared/tables/${table}/search`, { query });
  expect(answer.status).toBe(200);
  return answer.body;
};

const ACCENTED: Readonly<Record<string, string>> = { a: "à", e: "é", i: "í", o: "ö" };
/** Returns the query with an accent on its first vowel. */
const accented = (q: string): string => q.replace(/[aeio]/i, (vowel) => ACCENTED[vowel.toLowerCase()] ?? vowel);

const FORMS: readonly Record<string, string | number>[] = [
  {},
  { limit: 3 },
  { limit: 3, page: 2 },
  { offset: 400 },
  { sort: "n:desc", limit: 7 },
  { fields: "title" },
  { filter: '[["n",">",300]]' },
  { filter: '[["title","contains","common"]]' },
  { orFilter: '[["n","<",50],["n",">",800]]' },
  { highlightPre: "[", highlightPost: "]" },
];

test(`[TB804] a search for rare words answers as one in a query process does (seed ${SEED})`, async () => {
  const queries = [
    "zebra",
    "ze",
    "ZE",
    "Ze7",
    "otter zebra",
    "common otter",
    "otter all",
    "o",
    "common",
    "filler1",
    "nothing",
  ];
  for (const table of TABLES) {
    for (const q of queries) {
      for (const form of FORMS) {
        const about = `${table} ${q} ${JSON.stringify(form)}`;
        expect({ about, ...(await search(table, { q, ...form })) }).toEqual({
          about,
          ...(await search(table, { q: accented(q), ...form })),
        });
      }
    }
  }
  expect((await search("open", { q: "zebra" })).total).toBeGreaterThan(0);
});

test("[TB804] it follows every write, and finds texts that are too long for the main thread", async () => {
  const path = "/api/db/shared/tables/long";
  expect((await search("long", { q: "needle" })).total).toBe(0);
  for (let n = 0; n < 3; n++) {
    const text = `needle${n} ${"hay ".repeat(3_000)}`;
    expect((await platform.service.post(path, { id: `l${n}`, text })).status).toBe(201);
    expect((await search("long", { q: "needle" })).total).toBe(n + 1);
  }
  expect((await platform.service.patch(`${path}/l1`, { text: `needle1 ${"hay ".repeat(24_000)}` })).status).toBe(200);
  // A text of more than 16 KiB is found soon after its answer.
  await until("the long text is found", async () => (await search("long", { q: "needle1" })).total === 1);
  for (const q of ["needle", "neédle"]) {
    const { total, items } = await search("long", { q, sort: "id" });
    expect([q, total, items.map(({ highlights }) => highlights["text"]?.slice(0, 20))]).toEqual([
      q,
      3,
      ["<mark>needle0</mark>", "<mark>needle1</mark>", "<mark>needle2</mark>"],
    ]);
  }
  expect((await platform.service.delete(`${path}/l0`)).status).toBe(200);
  expect((await search("long", { q: "needle0" })).total).toBe(0);
});
