import { afterAll, beforeAll, expect, test } from "bun:test";
import { type ErrorAnswer, type ListAnswer, type TestPlatform, testPlatform } from "../../support/index.ts";

let platform: TestPlatform;
const path = (table: string) => `/api/db/shared/tables/${table}`;

const BEFORE = `{ beforeInsert: (auth, record) => record.name === "grow" ? { ...record, data: "x".repeat(3000) } : record }`;
beforeAll(async () => {
  platform = await testPlatform({
    config: `{ databases: { shared: { tables: {
      notes: { schema: { text: { type: "text" }, more: { type: "text", max: 120000 } }, fts: { fields: ["text", "more"], tokenize: "trigram" }, access: { read: true } },
      small: { maxRecordSize: 2000, schema: { name: { type: "string", unique: true }, data: { type: "json" } }, access: { read: true }, hooks: ${BEFORE} },
      free: { access: { read: true } },
      values: { schema: { data: { type: "json" }, n: { type: "integer" } }, access: { read: true } },
    } } } }`,
  });
});
afterAll(() => platform.stop());

const refusal = (answer: { status: number; body: ErrorAnswer }) => [
  answer.status,
  ...Object.entries(answer.body.data ?? {}).map(([field, { code }]) => `${field}: ${code}`),
];

test("[TB124] a record over its table's size is 400 and names its largest field, in every kind of write", async () => {
  const { service } = platform;
  const mebibyte = "x".repeat(1024 * 1024);
  const free = await service.post<ErrorAnswer>(path("free"), { a: 1, b: mebibyte });
  expect(refusal(free)).toEqual([400, "b: too_large"]);
  expect((await service.post(path("free"), { id: "f1", b: mebibyte.slice(1_000) })).status).toBe(201);

  const P = path("small");
  // Bytes of the JSON, escapes included, and not characters.
  expect((await service.post(P, { name: "a", data: "é".repeat(950) })).status).toBe(400);
  expect((await service.post(P, { name: "a", data: "\u0001".repeat(340) })).status).toBe(400);
  expect((await service.post(P, { id: "s1", name: "a", data: "x".repeat(1_800) })).status).toBe(201);
  const large = { k: Array(600).fill(1234) };
  const want = [400, "data: too_large"];
  expect(refusal(await service.post(P, { name: "b", data: large }))).toEqual(want);
  expect(refusal(await service.patch(`${P}/s1`, { data: large }))).toEqual(want);
  expect(refusal(await service.post(`${P}?upsert=true`, { id: "s1", name: "a", data: large }))).toEqual(want);
  // The merged record counts, whichever of its fields changes.
  expect(refusal(await service.patch(`${P}/s1`, { name: "n".repeat(500) }))).toEqual(want);
  expect(refusal(await service.post(P, { name: "grow" }))).toEqual(want);
  const batch = await service.post<ErrorAnswer>(`${P}/batch`, { inserts: [{ name: "c" }, { name: "d", data: large }] });
  expect(refusal(batch)).toEqual([400, "inserts.1.data: too_large"]);
  const changed = await service.post<ErrorAnswer>(`${P}/batch`, { updates: [{ id: "s1", data: { data: large } }] });
  expect(refusal(changed)).toEqual([400, "updates.0.data: too_large"]);
  const body = { action: "update", filter: [["id", "==", "s1"]], data: { data: large } };
  expect(refusal(await service.post(`${P}/batch-by-filter`, body))[0]).toBe(400);
  expect((await platform.get<ListAnswer>(P)).body.total).toBe(1);
});

test("[TB125] an indexed text has at most 100,000 characters, or its field's max", async () => {
  const { service } = platform;
  const P = path("notes");
  const limit = "é".repeat(100_000);
  const post = (body: Record<string, string>) => service.post<ErrorAnswer>(P, body);
  expect(refusal(await post({ text: `${limit}x` }))).toEqual([400, "text: too_long"]);
  expect(refusal(await post({ more: "x".repeat(120_001) }))).toEqual([400, "more: too_long"]);
  expect((await post({ id: "n1", text: limit, more: "x".repeat(120_000) })).status).toBe(201);
  expect(refusal(await service.patch(`${P}/n1`, { text: `${limit}x` }))).toEqual([400, "text: too_long"]);
  expect(refusal(await service.post(`${P}?upsert=true`, { id: "n1", text: `${limit}x` }))).toEqual([
    400,
    "text: too_long",
  ]);
  expect((await service.delete(`${P}/n1`)).status).toBe(200);
});

/** Text of different words. */
const words = (seed: number, length: number): string => {
  let text = "";
  for (let n = seed * 7_919; text.length < length; n += 104_729) text += `${n.toString(36)} `;
  return text.slice(0, length).trimEnd();
};
const foundAll = async (q: string, count: number): Promise<number> => {
  let total = -1;
  for (let wait = 0; wait < 600 && total !== count; wait++) {
    total = (await platform.get<ListAnswer>(`${path("notes")}/search`, { query: { q, limit: 1 } })).body.total ?? -1;
    if (total !== count) await Bun.sleep(50);
  }
  return total;
};

test("[TB126] a batch with three million indexed characters is complete at once and found soon, also after a SIGKILL", async () => {
  const { service } = platform;
  const inserts = Array.from({ length: 30 }, (_, n) => ({ id: `big${n}`, text: `${words(n, 99_900)} quokka` }));
  const written = await service.post(`${path("notes")}/batch`, { inserts });
  expect([written.status, (await platform.get<ListAnswer>(`${path("notes")}/count`)).body.total]).toEqual([200, 30]);
  await platform.kill();
  await platform.restart();
  expect(await foundAll("quokka", 30)).toBe(30);
  // Changed and deleted by one request each, without any text in it.
  const filter = [["id", ">", "big"]];
  const changing = { action: "update", filter, data: { text: "wombat" } };
  expect((await service.post(`${path("notes")}/batch-by-filter`, changing)).body).toMatchObject({ succeeded: 30 });
  expect([await foundAll("quokka", 0), await foundAll("wombat", 30)]).toEqual([0, 30]);
  await service.post(`${path("notes")}/batch-by-filter`, { action: "delete", filter });
  expect(await foundAll("wombat", 0)).toBe(0);
}, 60_000);

test("[TB148] one request changes about 4 MiB of stored records: a batch beyond that is 413, batch-by-filter ends", async () => {
  const { service } = platform;
  const P = path("free");
  const ids = Array.from({ length: 12 }, (_, n) => `r${String(n).padStart(2, "0")}`);
  for (const id of ids) expect((await service.post(P, { id, text: "x".repeat(1_000_000) })).status).toBe(201);
  const updates = ids.map((id) => ({ id, data: { n: 1 } }));
  expect(refusal(await service.post(`${P}/batch`, { updates }))).toEqual([413, "updates.5: too_large"]);
  expect(refusal(await service.post(`${P}/batch`, { deletes: ids }))).toEqual([413, "deletes.5: too_large"]);
  expect((await service.post(`${P}/batch`, { updates: updates.slice(0, 5) })).status).toBe(200);
  const deleting = () => service.post(`${P}/batch-by-filter`, { action: "delete", filter: [["id", ">=", "r"]] });
  expect((await deleting()).body).toEqual({ processed: 5, succeeded: 5 });
  expect((await deleting()).body).toEqual({ processed: 5, succeeded: 5 });
  expect((await deleting()).body).toEqual({ processed: 2, succeeded: 2 });
  expect((await deleting()).body).toEqual({ processed: 0, succeeded: 0 });
});

test("[TB128, TB24] a batch of many small JSON values stores them unchanged, with and without a schema", async () => {
  const { service } = platform;
  const data = (seed: number) => ({
    list: Array.from({ length: 4_000 }, (_, n) => [n + seed, { 'k"': null }, "é"]),
    o: {},
  });
  for (const table of ["values", "free"]) {
    const P = path(table);
    const inserts = [0, 1].map((n) => ({ id: `json${n}`, data: data(n), n }));
    const answer = await service.post<{ inserted: object[] }>(`${P}/batch`, { inserts });
    expect([answer.status, answer.body.inserted]).toEqual([
      200,
      [0, 1].map((n) => expect.objectContaining(inserts[n] ?? {})),
    ]);
    const updates = [{ id: "json1", data: { data: data(7), n: null } }];
    expect((await service.post(`${P}/batch`, { updates })).status).toBe(200);
    expect((await platform.get(`${P}/json0`)).body).toMatchObject({ data: data(0), n: 0 });
    expect((await platform.get(`${P}/json1`)).body).toMatchObject({ data: data(7), n: null });
    await service.post(`${P}/batch`, { deletes: ["json0", "json1"] });
  }
});
