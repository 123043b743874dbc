import { afterAll, beforeAll, expect, test } from "bun:test";
import { type ErrorAnswer, type ListAnswer, type TestPlatform, testPlatform } from "../../support/index.ts";

const config = (type: string) => `{ api: { schemaEndpoint: true }, databases: { shared: { tables: {
  tasks: {
    schema: { title: { type: "string" }, due: { type: "${type}" }, start: { type: "date", default: "2024-01-31" } },
    indexes: [{ fields: ["due"] }],
    access: { read: true, insert: true, update: true, delete: true },
  },
  odd: { schema: { due: { type: "${type}" } }, access: { read: () => [["due", "!=", "never"]], insert: true } },
} } } }`;

let platform: TestPlatform;
beforeAll(async () => {
  platform = await testPlatform({ config: config("date") });
});
afterAll(() => platform.stop());

const P = "/api/db/shared/tables/tasks";

test.each(["2024-5-6", "2024-05-06T00:00:00Z", "2024-02-30", "2023-02-29", "06.05.2024", "2024-05-06 ", "", "0"])(
  "[TB701] %p is no date",
  async (due) => {
    const answer = await platform.post<ErrorAnswer>(P, { due });
    expect([answer.status, answer.body.data?.["due"]?.code]).toEqual([400, "invalid_value"]);
  },
);

test("[TB701] numbers and objects are of another type", async () => {
  for (const due of [20240506, {}, true]) {
    const answer = await platform.post<ErrorAnswer>(P, { due });
    expect([answer.status, answer.body.data?.["due"]?.code]).toEqual([400, "invalid_type"]);
  }
});

test("[TB701] dates are stored as sent, sorted and compared, null included", async () => {
  const inserts = ["2024-02-29", "2024-01-31", "1999-12-31", "2024-03-01", null].map((due, index) => ({
    id: `t${index}`,
    due,
  }));
  expect((await platform.post(`${P}/batch`, { inserts })).status).toBe(200);
  const ids = async (query: Record<string, string>) =>
    (await platform.get<ListAnswer>(P, { query })).body.items?.map(({ id }) => id);
  expect(await ids({ sort: "due" })).toEqual(["t4", "t2", "t1", "t0", "t3"]);
  expect(await ids({ filter: '[["due",">=","2024-01-31"],["due","<","2024-03-01"]]' })).toEqual(["t0", "t1"]);
  expect(await ids({ filter: '[["due","in",["2024-02-29",null]]]' })).toEqual(["t0", "t4"]);
  expect((await platform.get(`${P}/t0`)).body).toMatchObject({ due: "2024-02-29", start: "2024-01-31" });
  expect((await platform.patch(`${P}/t0`, { due: "2024-02-30" })).status).toBe(400);
  expect((await platform.patch(`${P}/t0`, { due: null })).status).toBe(200);
  expect((await platform.patch(`${P}/t0`, { due: "2024-02-29" })).status).toBe(200);
});

test("[TB700] dates are grouped by day, week, month and year, whatever the zone", async () => {
  const groups = async (groupBy: string, timezone: string) =>
    platform.get<{ groups: Record<string, unknown>[] }>(`${P}/aggregate`, {
      query: { groupBy, timezone, filter: '[["due","!=",null]]' },
    });
  for (const timezone of ["UTC", "America/Los_Angeles", "Pacific/Auckland"]) {
    expect((await groups("due:month", timezone)).body.groups).toEqual([
      { "due:month": "1999-12", "count()": 1 },
      { "due:month": "2024-01", "count()": 1 },
      { "due:month": "2024-02", "count()": 1 },
      { "due:month": "2024-03", "count()": 1 },
    ]);
    expect((await groups("due:day", timezone)).body.groups[0]).toEqual({ "due:day": "1999-12-31", "count()": 1 });
    expect((await groups("due:week", timezone)).body.groups[0]).toEqual({ "due:week": "1999-12-27", "count()": 1 });
  }
  expect((await groups("due:hour", "UTC")).status).toBe(400);
});

test("[TB63] [TB701] a field of texts becomes one of dates by a migration alone", async () => {
  const other = await testPlatform({ config: config("string") });
  try {
    await other.post(P, { id: "good", due: "2024-05-06" });
    await expect(other.restart({ config: config("date") })).rejects.toThrow("was string and is now date");
    await other.restart({ config: config("string") });
    expect((await other.get(`${P}/good`)).body).toMatchObject({ due: "2024-05-06" });
  } finally {
    await other.stop();
  }
});

test("[TB160] the types of records say that it is a date", async () => {
  const { body } = await platform.get<{ components: { schemas: Record<string, { properties: object }> } }>(
    "/swagger/json",
  );
  expect(JSON.stringify(body.components.schemas["shared.tasks"])).toContain('"format":"date"');
});

test("[TB680] filters compare dates with days that exist alone", async () => {
  const wrong = [
    ["==", "2024-02-30"],
    ["!=", "today"],
    [">", "2024-05-06T00:00:00Z"],
    ["<=", ""],
    ["in", ["2024-05-06", "2024-5-6"]],
    ["not in", ["x"]],
  ];
  for (const [operator, value] of wrong) {
    const filter = JSON.stringify([["due", operator, value]]);
    for (const query of [{ filter }, { orFilter: filter }, { filter: `[{"not":${filter}}]` }]) {
      const { status, body } = await platform.get<ErrorAnswer>(P, { query });
      expect([query, status, body.message.includes("takes a date such as 2024-05-06")]).toEqual([query, 400, true]);
    }
  }
  const { status } = await platform.get(P, { query: { filter: '[["due","startsWith","2024-0"],["due","!=",null]]' } });
  expect(status).toBe(200);
});

test("[TB680] a rule denies whose filter compares a date with another text", async () => {
  const odd = "/api/db/shared/tables/odd";
  expect((await platform.service.post(odd, { id: "o", due: "2024-05-06" })).status).toBe(201);
  for (const path of [odd, `${odd}/o`, `${odd}/count`]) {
    const { status, body } = await platform.get(path);
    expect([path, status, JSON.stringify(body).includes("2024-05-06")]).toEqual([path, 401, false]);
  }
});
