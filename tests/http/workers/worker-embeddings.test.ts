import { afterAll, beforeAll, expect, test } from "bun:test";
import { type ListAnswer, signIn, type TestPlatform, testPlatform, until } from "../../support/index.ts";

/** A new connection for each request: the system spreads connections over the processes. */
const ALONE = { headers: { connection: "close" } };
const T = "/api/db/shared/tables/notes";

let platform: TestPlatform;
beforeAll(async () => {
  platform = await testPlatform({
    config: `{ server: { workers: 2 }, databases: { shared: { tables: { notes: {
      schema: { title: { type: "string" } }, fts: ["title"], access: { read: true },
      embed: { fields: ["title"], with: (app, texts) => texts.map((text) => [text.length, text.split("a").length]) },
    } } } } }`,
  });
});
afterAll(() => platform.stop());

test("[TB962] searches by meaning and nearest records are the same at every process, which count together", async () => {
  const inserts = ["aaa", "aab", "bbbbbb"].map((title) => ({ id: title, title }));
  expect((await platform.service.post(`${T}/batch`, { inserts })).status).toBe(200);
  const near = async () => (await platform.get<ListAnswer>(`${T}/aaa/nearest`, ALONE)).body.items.map(({ id }) => id);
  await until("the records have vectors", async () => (await near()).length === 2);
  for (let at = 0; at < 20; at++) expect(await near()).toEqual(["aab", "bbbbbb"]);
  const user = platform.as((await signIn(platform)).token);
  const found = await Promise.all(
    Array.from({ length: 70 }, () => user.get<ListAnswer>(`${T}/search?q=aaa&mode=hybrid`, ALONE)),
  );
  const answers = found.filter(({ status }) => status === 200).map(({ body }) => body.items.map(({ id }) => id));
  expect(answers).toHaveLength(60);
  expect(found.filter(({ status }) => status === 429)).toHaveLength(10);
  expect(new Set(answers.map(String))).toEqual(new Set(["aaa,aab,bbbbbb"]));
});
