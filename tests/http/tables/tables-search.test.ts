import { afterAll, beforeAll, expect, test } from "bun:test";
import type { JsonObject } from "../../../src/kernel/json/json.ts";
import { type ErrorAnswer, type ListAnswer, type TestPlatform, testPlatform } from "../../support/index.ts";

let platform: TestPlatform;
const path = (table: string) => `/api/db/shared/tables/${table}`;

beforeAll(async () => {
  platform = await testPlatform({
    config: `{ databases: { shared: { tables: {
      books: { schema: { title: { type: "string" }, body: { type: "text" }, year: { type: "integer" } }, fts: ["title", "body"], access: { read: true } },
      grams: { schema: { title: { type: "string" } }, fts: { fields: ["title"], tokenize: "trigram" }, access: { read: true } },
      stems: { schema: { title: { type: "string" } }, fts: { fields: ["title"], tokenize: "porter" }, access: { read: true } },
      words: { schema: { title: { type: "string" } }, fts: ["title"], access: { read: true } },
      wordStems: { schema: { title: { type: "string" } }, fts: { fields: ["title"], tokenize: "porter" }, access: { read: true } },
      plain: { schema: { title: { type: "string" } }, access: { read: true } },
    } } } }`,
  });
  const books = [
    { id: "b1", title: "The Quick Brown Fox", body: "A fox jumps over the lazy dog.", year: 1990 },
    { id: "b2", title: "Foxes of the North", body: "Snow & <ice> in the north; a fox there.", year: 2000 },
    { id: "b3", title: "Cooking at Home", body: "Quick meals for people who are brown with hunger", year: 2010 },
    { id: "b4", title: "Café Olé", body: "Über den Wolken", year: 2020 },
    { id: "b5", title: "Brown Quick", body: "nothing else", year: 1980 },
  ];
  await platform.service.post(`${path("books")}/batch`, { inserts: books });
  await platform.service.post(`${path("grams")}/batch`, {
    inserts: [
      { id: "g1", title: "Superstructure 100%" },
      { id: "g2", title: "Infrastructure" },
      { id: "g3", title: "Go" },
    ],
  });
  await platform.service.post(`${path("stems")}/batch`, {
    inserts: [
      { id: "s1", title: "running shoes" },
      { id: "s2", title: "walks" },
    ],
  });
});
afterAll(() => platform.stop());

type Found = JsonObject & { highlights: Record<string, string> };
const search = async (q: string, query: Record<string, string | number> = {}, table = "books") => {
  const answer = await platform.get<ListAnswer<Found>>(`${path(table)}/search`, { query: { q, ...query } });
  expect(answer.status).toBe(200);
  return answer.body;
};
const ids = async (...args: Parameters<typeof search>) => (await search(...args)).items.map((item) => item["id"]);

test("[TB41] a search finds all words, the last one as a prefix, best matches first", async () => {
  expect((await ids("quick brown")).sort()).toEqual(["b1", "b3", "b5"]);
  expect((await ids("quick brown"))[0]).toBe("b5");
  expect((await ids("fo")).sort()).toEqual(["b1", "b2", "b3"]);
  expect(await ids("fo quick")).toEqual([]);
  expect((await ids("QUICK fo")).sort()).toEqual(["b1", "b3"]);
  expect(await ids("cafe")).toEqual(["b4"]);
  expect(await search("fox", { limit: 1 })).toMatchObject({ total: 2, page: 1, perPage: 1 });
});

test("[TB42] no text is a syntax error", async () => {
  for (const q of [
    '"',
    '""',
    'fox"',
    "(",
    ")",
    "AND",
    "OR",
    "NOT",
    "NEAR(a b)",
    "title:fox",
    "*",
    "fox*",
    "^fox",
    "-fox",
    "a\u0000b",
    "{",
    "fox AND",
    "+",
    "\\",
    "'; DROP TABLE books; --",
    "%",
    "fox  \n\t dog",
    "🦊",
    "a:b:c",
    "NEAR",
  ]) {
    const answer = await platform.get(`${path("books")}/search`, { query: { q } });
    expect([q, answer.status]).toEqual([q, 200]);
  }
  expect(await search("*** --- !!!")).toMatchObject({ items: [], total: 0 });
  expect(await search("   ")).toMatchObject({ items: [] });
  const P = path("books");
  expect((await platform.get<ErrorAnswer>(`${P}/search`)).body).toMatchObject({
    code: 400,
    data: { q: { code: "required" } },
  });
  expect((await platform.get(`${P}/search?q=`)).status).toBe(400);
  expect((await platform.get(`${path("plain")}/search?q=x`)).status).toBe(400);
  expect((await platform.get(`${P}/search`, { query: { q: "x".repeat(1001) } })).status).toBe(400);
  expect((await platform.get(`${P}/search`, { query: { q: "a ".repeat(33) } })).status).toBe(400);
});

test("[TB43] highlights are safe with the default marks and exact with others", async () => {
  const { items } = await search("north");
  expect(items[0]?.highlights).toEqual({
    title: "Foxes of the <mark>North</mark>",
    body: "Snow &amp; &lt;ice&gt; in the <mark>north</mark>; a fox there.",
  });
  const own = await search("north", { highlightPre: "[", highlightPost: "]" });
  expect(own.items[0]?.highlights["body"]).toBe("Snow & <ice> in the [north]; a fox there.");
  const dollar = await search("north", { highlightPre: "$&", highlightPost: "$1" });
  expect(dollar.items[0]?.highlights["title"]).toBe("Foxes of the $&North$1");
  expect((await search("lazy")).items[0]?.highlights).toEqual({ body: "A fox jumps over the <mark>lazy</mark> dog." });
  const grams = await search("struct", {}, "grams");
  expect(grams.items[0]?.highlights["title"]).toContain("<mark>struct</mark>");
});

test("[TB44] filter, sort, limit and offset in a search", async () => {
  expect(await ids("quick", { filter: '[["year",">",1985]]', sort: "year:desc" })).toEqual(["b3", "b1"]);
  expect(await ids("quick", { orFilter: '[["year","==",1980],["year","==",2010]]', sort: "year" })).toEqual([
    "b5",
    "b3",
  ]);
  expect(await ids("quick", { sort: "year", limit: 1, offset: 1 })).toEqual(["b1"]);
  expect(await search("quick", { sort: "year", limit: 2, offset: 2 })).toMatchObject({ total: 3, page: 2, perPage: 2 });
  expect(Object.keys((await search("lazy", { fields: "year" })).items[0] ?? {}).sort()).toEqual([
    "highlights",
    "id",
    "year",
  ]);
  expect((await platform.get(`${path("books")}/search?q=fox&sort=nope`)).status).toBe(400);
  expect((await platform.get(`${path("books")}/search?q=fox&limit=0`)).status).toBe(400);
});

test("[TB45] trigram finds substrings, porter inflections", async () => {
  expect((await ids("structure", {}, "grams")).sort()).toEqual(["g1", "g2"]);
  expect(await ids("uperst", {}, "grams")).toEqual(["g1"]);
  expect(await ids("go", {}, "grams")).toEqual(["g3"]);
  expect(await ids("ru ctu super", {}, "grams")).toEqual(["g1"]);
  expect(await ids("0%", {}, "grams")).toEqual(["g1"]);
  expect(await ids("run", {}, "stems")).toEqual(["s1"]);
  expect(await ids("walking", {}, "stems")).toEqual(["s2"]);
});

test("[TB590] a word is whole with the vowel signs of its script, and is another word with other ones", async () => {
  // Each text, and the others of its row, which its search must not find.
  const texts = [
    ["भाषा", "भूषा", "भोष"],
    ["में", "मैं", "मैंने"],
    ["हिन्दी", "हिन दी"],
    ["বাংলা", "বলে"],
    ["தமிழ்", "தமழ"],
    ["ಕನ್ನಡ", "ಕನಡ"],
    ["മലയാളം", "മലയളം"],
    ["ខ្មែរ", "ខមរ"],
    ["café"],
    ["größe", "grosse"],
  ];
  const all = texts.flat();
  for (const table of ["words", "wordStems"]) {
    await platform.service.post(`${path(table)}/batch`, { inserts: all.map((title, at) => ({ id: `t${at}`, title })) });
    for (const q of all.filter((text) => !text.includes(" "))) {
      const { items } = await search(`${q} ${q}`, { limit: 1000 }, table);
      const titles = items.map((item) => item["title"]);
      expect([table, q, titles]).toEqual([table, q, [q]]);
      expect(items[0]?.highlights).toEqual({ title: `<mark>${q}</mark>` });
    }
    expect((await search("cafe\u0301", {}, table)).items).toMatchObject([{ title: "café" }]);
    expect((await search("CAFE", {}, table)).items).toMatchObject([{ title: "café" }]);
  }
});

test("[TB46] the index follows every kind of write", async () => {
  const P = path("plain").replace("plain", "books");
  await platform.service.post(P, { id: "w1", title: "Zebra" });
  expect(await ids("zebra")).toEqual(["w1"]);
  await platform.service.patch(`${P}/w1`, { title: "Giraffe" });
  expect(await ids("zebra")).toEqual([]);
  expect(await ids("giraffe")).toEqual(["w1"]);
  await platform.service.post(`${P}?upsert=true`, { id: "w1", title: "Okapi" });
  expect(await ids("okapi")).toEqual(["w1"]);
  await platform.service.post(`${P}/batch`, {
    inserts: [{ id: "w2", title: "Okapi too" }],
    updates: [{ id: "w1", data: { body: "lemur" } }],
  });
  expect((await ids("okapi")).sort()).toEqual(["w1", "w2"]);
  expect(await ids("lemur")).toEqual(["w1"]);
  await platform.service.post(`${P}/batch-by-filter`, { action: "delete", filter: [["title", "contains", "Okapi"]] });
  expect(await ids("okapi")).toEqual([]);
});
