import { afterAll, beforeAll, expect, test } from "bun:test";
import type { JsonObject } from "../../../src/kernel/json/json.ts";
import { type ErrorAnswer, type ListAnswer, signIn, type TestPlatform, testPlatform } from "../../support/index.ts";

let platform: TestPlatform;
const path = (table: string) => `/api/db/shared/tables/${table}`;
type Found = JsonObject & { highlights: Record<string, string> };

beforeAll(async () => {
  platform = await testPlatform({
    config: `{ databases: { shared: { tables: {
      long: { schema: { text: { type: "text", max: 1000000 } }, fts: ["text"], access: { read: true } },
      pages: { schema: { text: { type: "text", max: 1000000 } }, fts: ["text"], access: { read: true } },
      grams: { schema: { text: { type: "text" } }, fts: { fields: ["text"], tokenize: "trigram" }, access: { read: true } },
      notes: { schema: { text: { type: "text" }, ownerId: { type: "string" } }, fts: ["text"],
        access: { read: (auth) => auth !== null && [["ownerId", "==", auth.id]], insert: true } },
    } } } }`,
  });
});
afterAll(() => platform.stop());

const search = (table: string, query: Record<string, string | number>) =>
  platform.get<ListAnswer<Found>>(`${path(table)}/search`, { query });

/** Long texts are found shortly after they were written. */
async function found(table: string, q: string, count: number): Promise<void> {
  let total: number | null = null;
  for (let wait = 0; wait < 200 && total !== count; wait++) {
    ({ total } = (await search(table, { q, limit: 1 })).body);
    if (total !== count) await Bun.sleep(20);
  }
  expect(total).toBe(count);
}

test("[TB120] a text full of hits is found, marked up to its first 100 hits, and answered in full", async () => {
  const text = "a ".repeat(400_000).trimEnd();
  await platform.service.post(path("long"), { id: "l1", text });
  await found("long", "a", 1);
  const [item] = (await search("long", { q: "a" })).body.items;
  expect(item?.["text"] === text).toBe(true);
  expect(item?.highlights["text"] === "<mark>a</mark> ".repeat(100) + text.slice(200)).toBe(true);
});

test("[TB121] a page of more than 8 MiB, highlights included, is 413, and a smaller one is not", async () => {
  for (let n = 0; n < 9; n++)
    await platform.service.post(path("pages"), { id: `p${n}`, text: "wide ".repeat(120_000) });
  await found("pages", "wide", 9);
  const { status, body } = await platform.get<ErrorAnswer>(`${path("pages")}/search`, { query: { q: "wide" } });
  expect([status, body.message]).toEqual([413, expect.stringContaining("limit")]);
  const smaller = await search("pages", { q: "wide", limit: 5 });
  expect([smaller.status, smaller.body.items.length, smaller.body.total]).toEqual([200, 5, 9]);
});

test("[TB122] a mark of more than 32 characters is 400 and names itself", async () => {
  for (const name of ["highlightPre", "highlightPost"]) {
    const refused = await platform.get<ErrorAnswer>(`${path("long")}/search`, {
      query: { q: "a", [name]: "x".repeat(33) },
    });
    expect([refused.status, refused.body.data?.[name]?.code]).toEqual([400, "too_long"]);
    expect((await search("long", { q: "a", [name]: "x".repeat(32) })).status).toBe(200);
  }
});

test("[TB123, TB800] where a rule's filter applies, the best match comes first, whatever hidden records contain", async () => {
  const [mine, other] = [await signIn(platform), await signIn(platform)];
  const insert = async (ownerId: string, text: string) => {
    expect((await platform.service.post(path("notes"), { text, ownerId })).status).toBe(201);
  };
  // bm25 would rank the rarer word first, and so reveal which of the two words hidden records contain.
  await insert(mine.id, "quokka");
  await insert(mine.id, "quokka7391");
  await insert(mine.id, "quokka quokka quokka of a longer text");
  const order = async () => {
    const found = await mine.get<ListAnswer<Found>>(`${path("notes")}/search`, { query: { q: "quokka" } });
    expect(found.body.total).toBe(3);
    return found.body.items.map((item) => item["text"]);
  };
  const best = ["quokka", "quokka7391", "quokka quokka quokka of a longer text"];
  expect(await order()).toEqual(best);
  for (let n = 0; n < 20; n++) await insert(other.id, "quokka7391 quokka7391");
  expect(await order()).toEqual(best);
});

test("[TB45, TB42] trigram finds each term as a substring, with any characters", async () => {
  await platform.service.post(`${path("grams")}/batch`, {
    inserts: [
      { id: "percent", text: "100% _sure_" },
      { id: "umlaut", text: "Äpfel \\ Öl" },
      { id: "stars", text: "*** --- (x)" },
      { id: "plain", text: "nothing" },
    ],
  });
  const ids = async (q: string) => (await search("grams", { q })).body.items.map((item) => item["id"]).sort();
  expect(await ids("%")).toEqual(["percent"]);
  expect(await ids("_")).toEqual(["percent"]);
  expect(await ids("0% _s")).toEqual(["percent"]);
  expect(await ids("\\")).toEqual(["umlaut"]);
  expect(await ids("äp")).toEqual(["umlaut"]);
  expect(await ids("öL ÄP")).toEqual(["umlaut"]);
  expect(await ids("***")).toEqual(["stars"]);
  expect(await ids("(x) - *")).toEqual(["stars"]);
  expect(await ids("%%%")).toEqual([]);
  expect((await search("grams", { q: "%" })).body.items[0]?.highlights).toEqual({ text: "100<mark>%</mark> _sure_" });
  expect((await search("grams", { q: " \t " })).body).toMatchObject({ items: [], total: 0 });
});
