import { afterAll, beforeAll, expect, test } from "bun:test";
import type { JsonObject } from "../../../src/kernel/json/json.ts";
import { type ErrorAnswer, type SignedIn, signIn, type TestPlatform, testPlatform } from "../../support/index.ts";

let platform: TestPlatform;
let ann: SignedIn;
const path = (table: string) => `/api/db/shared/tables/${table}`;
const RECORDS = 40;

beforeAll(async () => {
  platform = await testPlatform({
    config: `
      import { defineConfig } from "platform";
      const schema = { owner: { type: "string" }, status: { type: "string", enum: ["open", "done"] }, live: { type: "boolean" }, points: { type: "integer" },
        price: { type: "number" }, due: { type: "datetime" }, text: { type: "text" }, data: { type: "json" } };
      const tables = {
        tasks: { schema, indexes: [{ fields: ["status"] }], access: { read: true } },
        own: { schema, access: { read: (auth) => auth !== null && [["owner", "==", auth.id]] } },
        looked: { schema, access: { read: (_auth, record) => record.live === true } },
        closed: { schema },
        sums: { schema: { points: { type: "integer" }, price: { type: "number" } }, access: { read: true } },
        times: { schema: { at: { type: "datetime" }, n: { type: "integer" } }, access: { read: true } },
        free: { access: { read: true } },
        many: { schema: { kind: { type: "string" }, text: { type: "text" }, price: { type: "number" }, live: { type: "boolean" } }, indexes: [{ fields: ["kind"] }], access: { read: true } },
        log: { schema: { text: { type: "text" } }, hooks: { async beforeInsert(_auth, _record, app) {
          const { groups } = await app.db("shared").table("tasks").aggregate({ select: "sum(points)", groupBy: "status", filter: [["points", "<", 10]] });
          return { text: JSON.stringify(groups) };
        } } },
      };
      export default defineConfig({
        serviceKeys: { reader: { key: "key-reader-0123456789abcdef", scopes: ["db:shared:closed:read"] }, writer: { key: "key-writer-0123456789abcdef", scopes: ["db:shared:closed:insert"] } },
        databases: { shared: { tables }, clubs: { instance: true, access: { create: true, open: true }, tables: { members: { schema: { n: { type: "integer" } }, access: { read: true, insert: true } } } } },
      });`,
  });
  ann = await signIn(platform);
  const record = (n: number): JsonObject => ({
    id: `r${n}`,
    owner: n % 4 === 0 ? ann.id : "other",
    status: n % 5 === 0 ? null : n % 2 === 0 ? "open" : "done",
    live: n % 3 === 0,
    points: n % 10 === 9 ? null : n,
    price: n / 4,
    due: `2026-0${1 + (n % 3)}-15T12:00:00Z`,
    text: `secret-${n}`,
    data: { n },
  });
  for (const table of ["tasks", "own", "looked", "closed"]) {
    const inserts = Array.from({ length: RECORDS }, (_, n) => record(n));
    expect((await platform.service.post(`${path(table)}/batch`, { inserts })).status).toBe(200);
  }
});
afterAll(() => platform.stop());

type Client = { get: TestPlatform["get"] };
const aggregate = async (table: string, query: Record<string, string | number>, client: Client = platform) => {
  const answer = await client.get<{ groups: JsonObject[] }>(`${path(table)}/aggregate`, { query });
  expect([answer.status, answer.body]).toEqual([200, answer.body]);
  return answer.body.groups;
};
const numbersTo = (count: number) => Array.from({ length: count }, (_, n) => n);
const numbers = numbersTo(RECORDS);
const sum = (values: number[]) => values.reduce((total, one) => total + one, 0);

test("[TB410] count, sum, avg, min and max of all records, or of those that match", async () => {
  const pointed = numbers.filter((n) => n % 10 !== 9);
  expect(
    await aggregate("tasks", {
      select: "count(),sum(points),avg(points),min(points),max(price),min(due),max(text),max(live)",
    }),
  ).toEqual([
    {
      "count()": RECORDS,
      "sum(points)": sum(pointed),
      "avg(points)": sum(pointed) / pointed.length,
      "min(points)": 0,
      "max(price)": 9.75,
      "min(due)": "2026-01-15T12:00:00.000Z",
      "max(text)": "secret-9",
      "max(live)": true,
    },
  ]);
  expect(await aggregate("tasks", {})).toEqual([{ "count()": RECORDS }]);
  expect(await aggregate("tasks", { select: "", groupBy: "", sort: "" })).toEqual([{ "count()": RECORDS }]);
  const filter = JSON.stringify([["points", "<", 3]]);
  expect(await aggregate("tasks", { select: "sum(points),count()", filter })).toEqual([
    { "sum(points)": 3, "count()": 3 },
  ]);
  const orFilter = JSON.stringify([
    ["points", "==", 1],
    ["points", "==", 38],
  ]);
  expect(await aggregate("tasks", { orFilter })).toEqual([{ "count()": 2 }]);
  const none = JSON.stringify([["points", ">", 1000]]);
  expect(
    await aggregate("tasks", { select: "count(),sum(points),avg(price),min(due),max(due)", filter: none }),
  ).toEqual([{ "count()": 0, "sum(points)": null, "avg(price)": null, "min(due)": null, "max(due)": null }]);
  expect(await aggregate("tasks", { groupBy: "status", filter: none })).toEqual([]);
});

test("[TB411] groups by fields, null and booleans too, in ascending order or by sort, and limit", async () => {
  const group = (status: string | null) =>
    numbers.filter((n) => (n % 5 === 0 ? null : n % 2 === 0 ? "open" : "done") === status);
  expect(await aggregate("tasks", { select: "count(),sum(price)", groupBy: "status" })).toEqual(
    [null, "done", "open"].map((status) => ({
      status,
      "count()": group(status).length,
      "sum(price)": sum(group(status)) / 4,
    })),
  );
  const both = await aggregate("tasks", { groupBy: "live,status", sort: "count():desc,live" });
  expect(both.length).toBe(6);
  expect(both.map((one) => one["count()"])).toEqual(
    both.map((one) => one["count()"]).sort((a, b) => Number(b) - Number(a)),
  );
  expect(both.map(({ live }) => live)).toContain(true);
  expect(sum(both.map((one) => Number(one["count()"])))).toBe(RECORDS);
  expect(
    (await aggregate("tasks", { groupBy: "points", sort: "points:desc", limit: 3 })).map(({ points }) => points),
  ).toEqual([38, 37, 36]);
  expect((await aggregate("tasks", { groupBy: "points", limit: 2 })).map(({ points }) => points)).toEqual([null, 0]);
  expect((await aggregate("tasks", { groupBy: "id", limit: 5_000 })).length).toBe(RECORDS);
  expect(
    await aggregate("tasks", { groupBy: "status,status", select: "count(),count()", sort: "status:desc", limit: 1 }),
  ).toEqual([{ status: "open", "count()": group("open").length }]);
  expect(
    (await aggregate("tasks", { groupBy: "due:month", sort: "due:month:desc" })).map((one) => one["due:month"]),
  ).toEqual(["2026-03", "2026-02", "2026-01"]);
});

test("[TB412] datetimes are grouped by the clocks of a time zone, changes of the clocks included", async () => {
  const times = [
    null,
    "2026-03-28T23:30:00Z",
    "2026-03-29T00:59:00Z",
    "2026-03-29T01:00:00Z",
    "2026-10-25T00:30:00.123Z",
    "2026-10-25T03:30:00+02:00",
    "2026-12-31T23:30:00Z",
    "2027-01-03T12:00Z",
    "1880-06-01T00:00Z",
  ];
  const inserts = times.map((at, n) => ({ id: `t${n}`, at, n }));
  expect((await platform.service.post(`${path("times")}/batch`, { inserts })).status).toBe(200);
  const labels = async (unit: string, timezone?: string) => {
    const query = { groupBy: `at:${unit}`, ...(timezone === undefined ? {} : { timezone }) };
    return (await aggregate("times", query)).map((one) => [one[`at:${unit}`], one["count()"]]);
  };
  expect(await labels("year")).toEqual([
    [null, 1],
    ["1880", 1],
    ["2026", 6],
    ["2027", 1],
  ]);
  expect(await labels("year", "Europe/Berlin")).toEqual([
    [null, 1],
    ["1880", 1],
    ["2026", 5],
    ["2027", 2],
  ]);
  expect(await labels("week", "Europe/Berlin")).toEqual([
    [null, 1],
    ["1880-05-31", 1],
    ["2026-03-23", 3],
    ["2026-10-19", 2],
    ["2026-12-28", 2],
  ]);
  expect(await labels("day", "Europe/Berlin")).toContainEqual(["2026-03-29", 3]);
  expect(await labels("hour", "Europe/Berlin")).toEqual([
    [null, 1],
    ["1880-06-01T00:00", 1],
    ["2026-03-29T00:00", 1],
    ["2026-03-29T01:00", 1],
    ["2026-03-29T03:00", 1],
    ["2026-10-25T02:00", 2],
    ["2027-01-01T00:00", 1],
    ["2027-01-03T13:00", 1],
  ]);
  expect(await labels("minute", "Asia/Kathmandu")).toContainEqual(["2026-03-29T06:44", 1]);
  expect((await labels("month", "America/St_Johns")).at(-1)).toEqual(["2027-01", 1]);
  expect((await aggregate("free", { groupBy: "createdAt:day" })).length).toBe(0);
});

test("[TB413] sums beyond 64 bits, and of numbers", async () => {
  const most = Number.MAX_SAFE_INTEGER;
  for (let start = 0; start < 1_500; start += 500) {
    const inserts = Array.from({ length: 500 }, () => ({ points: most, price: 0.1 }));
    expect((await platform.service.post(`${path("sums")}/batch`, { inserts })).status).toBe(200);
  }
  const [totals] = await aggregate("sums", { select: "sum(points),avg(points),sum(price),max(points)" });
  expect(Number(totals?.["sum(points)"]) / (most * 1_500)).toBeCloseTo(1, 12);
  expect(Number(totals?.["avg(points)"]) / most).toBeCloseTo(1, 12);
  expect(totals?.["sum(price)"]).toBeCloseTo(150, 9);
  expect(totals?.["max(points)"]).toBe(most);
});

test("[TB414] what cannot be selected, grouped or sorted is 400 and named, after the rights", async () => {
  const bad: [Record<string, string | number>, string, string][] = [
    [{ select: "sum(status)" }, "select", "invalid_type"],
    [{ select: "avg(due)" }, "select", "invalid_type"],
    [{ select: "sum(data)" }, "select", "invalid_type"],
    [{ select: "min(data)" }, "select", "invalid_type"],
    [{ select: "sum(nope)" }, "select", "unknown_field"],
    [{ select: "count(points)" }, "select", "invalid_value"],
    [{ select: "points" }, "select", "invalid_value"],
    [{ select: "sum()" }, "select", "invalid_value"],
    [{ select: "total(points)" }, "select", "invalid_value"],
    [{ select: "sum(points) FROM x --" }, "select", "invalid_value"],
    [{ select: Array(17).fill("count()").join(",") }, "select", "too_long"],
    [{ groupBy: "data" }, "groupBy", "invalid_type"],
    [{ groupBy: "data.n" }, "groupBy", "unknown_field"],
    [{ groupBy: "nope" }, "groupBy", "unknown_field"],
    [{ groupBy: "points:day" }, "groupBy", "invalid_type"],
    [{ groupBy: "due:decade" }, "groupBy", "invalid_value"],
    [{ groupBy: "due:day:day" }, "groupBy", "invalid_value"],
    [{ groupBy: "status", sort: "points" }, "sort", "unknown_field"],
    [{ groupBy: "status", sort: "status:up" }, "sort", "unknown_field"],
    [{ timezone: "Europe/Nowhere" }, "timezone", "invalid_value"],
    [{ limit: 0 }, "limit", "too_small"],
    [{ filter: '[["nope","==",1]]' }, "filter.0", "unknown_field"],
    [{ having: "1" }, "having", "unknown_field"],
  ];
  for (const [query, name, code] of bad) {
    const answer = await platform.get<ErrorAnswer>(`${path("tasks")}/aggregate`, { query });
    expect([query, answer.status, answer.body.data?.[name]?.code]).toEqual([query, 400, code]);
  }
  expect((await platform.get(`${path("closed")}/aggregate?select=nope`)).status).toBe(401);
  expect((await platform.get<ErrorAnswer>(`${path("free")}/aggregate?groupBy=x`)).body.data).toHaveProperty("groupBy");
  expect((await platform.get(`${path("nope")}/aggregate`)).status).toBe(404);
  expect((await platform.service.post<ErrorAnswer>(path("tasks"), { id: "aggregate" })).status).toBe(400);
});

test("[TB415] a filter of the read rule narrows an aggregate; a rule that looks at each record, and none, refuse it", async () => {
  const mine = numbers.filter((n) => n % 4 === 0);
  expect(
    await aggregate("own", { select: "count(),max(text)", filter: '[["text","contains","secret"]]' }, ann),
  ).toEqual([{ "count()": mine.length, "max(text)": "secret-8" }]);
  expect((await aggregate("own", { groupBy: "owner" }, ann)).map(({ owner }) => owner)).toEqual([ann.id]);
  expect((await platform.get(`${path("own")}/aggregate`)).status).toBe(401);
  expect((await ann.get(`${path("looked")}/aggregate`)).status).toBe(403);
  expect((await platform.get(`${path("looked")}/aggregate`)).status).toBe(401);
  expect((await ann.get(`${path("closed")}/aggregate`)).status).toBe(403);
  expect(await aggregate("closed", {}, platform.withKey("key-reader-0123456789abcdef"))).toEqual([
    { "count()": RECORDS },
  ]);
  expect((await platform.withKey("key-writer-0123456789abcdef").get(`${path("closed")}/aggregate`)).status).toBe(403);
});

test("[TB417] an aggregate of few records, of many and of large ones gives the same", async () => {
  const kindOf = (n: number) => (n % 100 === 0 ? "large" : n % 2 === 0 ? "common" : `rare-${n % 7}`);
  const records = numbersTo(4_000).map((n) => ({
    kind: kindOf(n),
    text: n % 100 === 0 ? "x".repeat(100_000) : `text ${n}`,
    price: n / 4,
    live: n % 3 === 0,
  }));
  for (let start = 0; start < records.length; start += 400) {
    const inserts = records.slice(start, start + 400);
    expect((await platform.service.post(`${path("many")}/batch`, { inserts })).status).toBe(200);
  }
  const select = "count(),sum(price),avg(price),min(text),max(price)";
  const all = await aggregate("many", { select, groupBy: "kind,live" });
  expect(all).toHaveLength(18);
  for (const kind of ["large", "common", "rare-0", "rare-6"]) {
    const filter = JSON.stringify([["kind", "==", kind]]);
    const ofKind = all.filter((group) => group["kind"] === kind);
    expect(await aggregate("many", { select, groupBy: "kind,live", filter })).toEqual(ofKind);
    const own = records.filter((record) => record.kind === kind);
    expect(await aggregate("many", { select: "count(),sum(price)", filter })).toEqual([
      { "count()": own.length, "sum(price)": sum(own.map(({ price }) => price)) },
    ]);
  }
});

test("[TB416] aggregates of instances, of one that does not exist, and in app", async () => {
  const members = "/api/db/clubs/one/tables/members";
  expect((await platform.get(`${members}/aggregate?select=count(),sum(n)`)).body).toEqual({
    groups: [{ "count()": 0, "sum(n)": null }],
  });
  expect((await platform.get(`${members}/aggregate?groupBy=n`)).body).toEqual({ groups: [] });
  expect((await platform.post(members, { n: 2 })).status).toBe(201);
  expect((await platform.get(`${members}/aggregate?select=sum(n)&groupBy=n`)).body).toEqual({
    groups: [{ n: 2, "sum(n)": 2 }],
  });
  const logged = await platform.service.post<{ text: string }>(path("log"), {});
  expect(JSON.parse(logged.body.text)).toEqual([
    { status: null, "sum(points)": 5 },
    { status: "done", "sum(points)": 1 + 3 + 7 },
    { status: "open", "sum(points)": 2 + 4 + 6 + 8 },
  ]);
});
