import { afterAll, beforeAll, expect, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import type { JsonObject } from "../../../src/kernel/json/json.ts";
import {
  type ErrorAnswer,
  type ListAnswer,
  platformCommand,
  SERVICE_KEY,
  signIn,
  type TestPlatform,
  temporaryDirectory,
  testEnvironment,
  testPlatform,
} from "../../support/index.ts";
import { until } from "../../support/until.ts";
import { connect } from "../../ws/realtime/realtime-support.ts";

// Every way in which a datetime comes in: by records, filters, rules, cursors and the config.

/** Forms of one instant, and that instant as it is stored. */
const FORMS = [
  "2024-05-06T06:00:00+02:00",
  "2024-05-06T04:00Z",
  "2024-05-06t09:30:00.000999+0530",
  "2024-05-06 04:00:00Z",
];
const INSTANT = "2024-05-06T04:00:00.000Z";
const BEFORE = "2024-05-06T03:59:59.999Z";
const [FORM = ""] = FORMS;

const all = "access: { read: true, insert: true, update: true, delete: true, upsert: 'either' }";
const CONFIG = `{ api: { schemaEndpoint: true }, databases: { shared: { tables: {
  events: {
    schema: {
      at: { type: "datetime" }, key: { type: "datetime", unique: true }, n: { type: "integer" },
      from: { type: "datetime", default: "2024-05-06T06:00:00+02:00" },
    },
    indexes: [{ fields: ["at"] }],
    ${all},
  },
  hooked: {
    schema: { at: { type: "datetime" }, from: { type: "datetime" } },
    hooks: {
      beforeInsert: (_auth, record) => ({ ...record, at: "${FORM}" }),
      beforeUpdate: (_auth, _before, changes) => ({ ...changes, from: "${FORM}" }),
    },
    ${all},
  },
  ruled: {
    schema: { at: { type: "datetime" } },
    access: { insert: true, read: () => [["at", ">=", "${FORM}"]] },
  },
  broken: { schema: { at: { type: "datetime" } }, access: { insert: true, read: () => [["at", ">=", "2024-05-06"]] } },
  unread: { schema: { at: { type: "datetime" } }, access: { insert: true, update: true } },
  heard: { schema: { of: { type: "string" } }, access: { read: true } },
  plain: { ${all} },
} }, rooms: { instance: true, access: { open: true, create: true }, tables: { events: { schema: { at: { type: "datetime" } }, ${all} } } } },
triggers: { heard: {
  on: { table: "shared.events" },
  filter: [["at", "==", "${FORM}"], ["n", ">=", 1000]],
  run: async ({ after, app }) => { await app.db("shared").table("heard").insert({ of: after.id }); },
} },
routes: (api) => api
  .post("/write", ({ body, app }) => app.db("shared").table("events").insert(body), { access: true })
  .post("/list", ({ body, app }) => app.db("shared").table("events").list(body), { access: true })
  .post("/transact", ({ body, app }) => app.db("shared").transaction((tx) => {
    const made = tx.table("events").insert(body);
    return { made, changed: tx.table("events").update(made.id, { at: "${FORM}" }), found: tx.table("events").exists([["key", "==", "${FORM}"], ["id", "==", made.id]]) };
  }), { access: true }),
}`;

let platform: TestPlatform;
beforeAll(async () => {
  platform = await testPlatform({ config: CONFIG });
});
afterAll(() => platform.stop());

const P = "/api/db/shared/tables/events";
const ids = ({ body }: { body: ListAnswer }) => body.items?.map(({ id }) => id);
const problemAt = ({ status, body }: { status: number; body: ErrorAnswer }, name: string) => [
  status,
  body.data?.[name]?.code,
];

test.each(FORMS)(
  "[TB681] %p is stored and answered as UTC with milliseconds, by whatever request it comes",
  async (at) => {
    const expected = { at: INSTANT, from: INSTANT };
    const inserted = await platform.post<JsonObject>(P, { at });
    expect([inserted.status, inserted.body]).toEqual([201, expect.objectContaining(expected)]);
    const id = String(inserted.body["id"]);
    expect((await platform.get(`${P}/${id}`)).body).toMatchObject(expected);
    expect((await platform.patch(`${P}/${id}`, { at: "2000-01-01T00:00:00Z" })).body).toMatchObject({
      at: "2000-01-01T00:00:00.000Z",
    });
    expect((await platform.patch(`${P}/${id}`, { at })).body).toMatchObject(expected);
    const batch = await platform.post<{ inserted: JsonObject[]; updated: JsonObject[] }>(`${P}/batch`, {
      inserts: [{ at, from: at }],
      updates: [{ id, data: { from: at } }],
    });
    expect(batch.body).toMatchObject({ inserted: [expected], updated: [expected] });
    const byFilter = await platform.post(`${P}/batch-by-filter`, {
      action: "update",
      filter: [["id", "==", id]],
      data: { at },
    });
    expect(byFilter.body).toMatchObject({ succeeded: 1 });
    const transaction = await platform.post("/api/db/shared/transaction", {
      operations: [{ action: "update", table: "events", id, data: { at } }],
    });
    expect(transaction.body).toMatchObject({ results: [expected] });
    expect((await platform.get(`${P}/${id}`)).body).toMatchObject(expected);
  },
);

test("[TB681] an upsert finds its record by any form of the instant", async () => {
  const made = await platform.post<JsonObject>(`${P}?upsert=true&conflictTarget=key`, {
    key: "2001-01-01T01:00:00+01:00",
    n: 1,
  });
  expect(made).toMatchObject({ status: 201, body: { key: "2001-01-01T00:00:00.000Z" } });
  const again = await platform.post(`${P}?upsert=true&conflictTarget=key`, { key: "2001-01-01T00:00Z", n: 2 });
  expect(again).toMatchObject({ status: 200, body: { id: made.body["id"], n: 2 } });
  expect((await platform.post(P, { key: "2000-12-31T23:00:00-01:00" })).status).toBe(409);
});

test.each(["2024-05-06", "2024-05-06T04:00:00", "2024-02-30T04:00:00Z", "soon", ""])(
  "[TB681] %p is 400 in every request",
  async (at) => {
    expect(problemAt(await platform.post<ErrorAnswer>(P, { at }), "at")).toEqual([400, "invalid_value"]);
    const { body } = await platform.post<JsonObject>(P, {});
    expect(problemAt(await platform.patch<ErrorAnswer>(`${P}/${body["id"]}`, { at }), "at")).toEqual([
      400,
      "invalid_value",
    ]);
    const upsert = await platform.post<ErrorAnswer>(`${P}?upsert=true`, { id: body["id"] ?? null, at });
    expect(problemAt(upsert, "at")).toEqual([400, "invalid_value"]);
    const none = { action: "update", filter: [["id", "==", "none"]], data: { at } };
    expect(problemAt(await platform.post<ErrorAnswer>(`${P}/batch-by-filter`, none), "at")).toEqual([
      400,
      "invalid_value",
    ]);
    for (const operator of ["==", "!=", ">", ">=", "<", "<="]) {
      const answer = await platform.get<ErrorAnswer>(P, { query: { filter: JSON.stringify([["at", operator, at]]) } });
      expect(problemAt(answer, "filter.0")).toEqual([400, "invalid_value"]);
    }
  },
);

test("[TB681] server code, its transactions and hooks", async () => {
  const key = "2002-01-01T00:00Z";
  expect((await platform.post("/api/functions/write", { at: FORM, key })).body).toMatchObject({ at: INSTANT });
  const transacted = await platform.post("/api/functions/transact", { key: FORM });
  expect(transacted.body).toMatchObject({ made: { key: INSTANT }, changed: { at: INSTANT }, found: true });
  const hooked = "/api/db/shared/tables/hooked";
  const { body } = await platform.post<JsonObject>(hooked, { at: null });
  expect(body).toMatchObject({ at: INSTANT });
  expect((await platform.patch(`${hooked}/${body["id"]}`, { at: "2003-01-01T00:00Z" })).body).toMatchObject({
    at: "2003-01-01T00:00:00.000Z",
    from: INSTANT,
  });
});

test("[TB681] who may not read a record is shown what was sent, as it is stored", async () => {
  const unread = "/api/db/shared/tables/unread";
  const { body } = await platform.post<JsonObject>(unread, { id: "u", at: FORM });
  expect(body).toEqual({ id: "u", at: INSTANT });
  expect((await platform.patch(`${unread}/u`, { at: FORM })).body).toEqual({ id: "u", at: INSTANT });
  expect((await platform.patch(`${unread}/u`, { at: "2024-05-06" })).status).toBe(400);
});

test("[TB681] a key sets createdAt and updatedAt, of tables without a schema too", async () => {
  const times = { createdAt: FORM, updatedAt: FORM };
  const stored = { createdAt: INSTANT, updatedAt: INSTANT };
  for (const table of ["events", "plain"]) {
    expect((await platform.service.post(`/api/db/shared/tables/${table}`, times)).body).toMatchObject(stored);
    const answer = await platform.service.post<ErrorAnswer>(`/api/db/shared/tables/${table}`, {
      createdAt: "2024-05-06",
    });
    expect(problemAt(answer, "createdAt")).toEqual([400, "invalid_value"]);
  }
  expect(
    ids(
      await platform.get("/api/db/shared/tables/plain", {
        query: { filter: JSON.stringify([["createdAt", "==", FORM]]) },
      }),
    ),
  ).toHaveLength(1);
});

test("[TB681] records of an instance", async () => {
  expect((await platform.post("/api/db/rooms/a/tables/events", { at: FORM })).body).toMatchObject({ at: INSTANT });
});

test("[TB681] imports of CSV and NDJSON, and their exports", async () => {
  const cwd = temporaryDirectory();
  const run = async (...args: string[]) => {
    const child = Bun.spawn([...platformCommand(), ...args, "--url", platform.url], {
      cwd,
      env: testEnvironment({ PLATFORM_SERVICE_KEY: SERVICE_KEY }),
      stdout: "pipe",
      stderr: "pipe",
    });
    return [await child.exited, await new Response(child.stderr).text()] as const;
  };
  writeFileSync(join(cwd, "a.csv"), `id,at,createdAt\ncsv,${FORM},${FORM}\n`);
  writeFileSync(join(cwd, "a.ndjson"), `${JSON.stringify({ id: "nd", at: FORM, createdAt: FORM })}\n`);
  for (const name of ["a.csv", "a.ndjson"]) expect((await run("import", "shared/events", name))[0]).toBe(0);
  for (const id of ["csv", "nd"]) {
    expect((await platform.get(`${P}/${id}`)).body).toMatchObject({ at: INSTANT, createdAt: INSTANT });
  }
  writeFileSync(join(cwd, "b.csv"), "id,at\nbad,2024-05-06\n");
  const [code, problem] = await run("import", "shared/events", "b.csv");
  expect([code, problem]).toEqual([1, expect.stringContaining("at must be a date and time with an offset")]);
});

test("[TB682] filters of every form compare instants, in whatever form they are given", async () => {
  await platform.service.post(`${P}/batch`, {
    inserts: [
      { id: "f-before", at: BEFORE, n: 7 },
      { id: "f-at", at: INSTANT, n: 7 },
      { id: "f-null", n: 7 },
    ],
  });
  const mine = ["n", "==", 7];
  for (const form of FORMS) {
    const found = async (filter: unknown[]) =>
      ids(await platform.get(P, { query: { filter: JSON.stringify([mine, ...filter]), sort: "id" } }));
    expect(await found([["at", "==", form]])).toEqual(["f-at"]);
    expect(await found([["at", "!=", form]])).toEqual(["f-before", "f-null"]);
    expect(await found([["at", "<", form]])).toEqual(["f-before"]);
    expect(await found([["at", ">=", form]])).toEqual(["f-at"]);
    expect(await found([["at", "in", [form, null]]])).toEqual(["f-at", "f-null"]);
    expect(await found([["at", "not in", [form]]])).toEqual(["f-before", "f-null"]);
    expect(await found([{ or: [[["at", "==", form]], [["at", "==", null]]] }])).toEqual(["f-at", "f-null"]);
    expect(await found([{ not: [["at", "==", form]] }])).toEqual(["f-before", "f-null"]);
    const orFilter = JSON.stringify([["at", "==", form]]);
    const query = { filter: JSON.stringify([mine]), orFilter };
    expect(ids(await platform.get(P, { query }))).toEqual(["f-at"]);
    expect((await platform.get(`${P}/count`, { query })).body).toMatchObject({ total: 1 });
    expect((await platform.get(`${P}/aggregate`, { query })).body).toMatchObject({ groups: [{ "count()": 1 }] });
    const listed = await platform.post<ListAnswer>("/api/functions/list", { filter: [mine, ["at", ">=", form]] });
    expect(ids(listed)).toEqual(["f-at"]);
    const whenever = await platform.patch(`${P}/f-at?if=${encodeURIComponent(JSON.stringify([["at", "==", form]]))}`, {
      n: 7,
    });
    expect(whenever.status).toBe(200);
  }
  const part = JSON.stringify([mine, ["at", "startsWith", "2024-05-06T04"]]);
  expect(ids(await platform.get(P, { query: { filter: part } }))).toEqual(["f-at"]);
});

test("[TB682] the filter of a rule; one without an offset denies", async () => {
  const ruled = "/api/db/shared/tables/ruled";
  await platform.service.post(`${ruled}/batch`, {
    inserts: [
      { id: "b", at: BEFORE },
      { id: "a", at: INSTANT },
    ],
  });
  expect(ids(await platform.get(ruled))).toEqual(["a"]);
  expect((await platform.get(`${ruled}/b`)).status).toBe(404);
  expect((await platform.get(`${ruled}/a`)).status).toBe(200);
  expect((await platform.get("/api/db/shared/tables/broken")).status).toBe(401);
});

test("[TB682] filters of realtime and of triggers", async () => {
  const socket = await connect(platform, await signIn(platform));
  socket.send({
    type: "subscribe",
    channel: "realtime:shared:events",
    filters: [
      ["at", "==", FORM],
      ["n", ">=", 1000],
    ],
  });
  await socket.expect({ type: "subscribed" });
  socket.send({ type: "subscribe", id: "x", channel: "realtime:shared:events", filters: [["at", "==", "2024-05-06"]] });
  await socket.expect({ type: "error", code: "INVALID_FILTER" });
  await platform.post(P, { id: "r-before", at: BEFORE, n: 1000 });
  await platform.post(P, { id: "r-at", at: "2024-05-06T05:00:00+01:00", n: 1000 });
  expect(await socket.expect({ type: "db_change" })).toMatchObject({ docId: "r-at", data: { at: INSTANT } });
  await socket.close();
  const heard = async () =>
    (await platform.get<ListAnswer>("/api/db/shared/tables/heard")).body.items?.map(({ of }) => of);
  await until("the trigger has run", async () => (await heard())?.includes("r-at") === true);
  expect(await heard()).toEqual(["r-at"]);
});

test("[TB681] pages sorted by instants follow time, whatever form they were sent in", async () => {
  const hours = Array.from({ length: 24 }, (_, hour) => ({
    id: `h${hour}`,
    n: 24,
    // The same order of time, and another one of the texts.
    at: `2024-06-${hour % 2 === 0 ? "02" : "01"}T${String(hour % 2 === 0 ? 0 : 23).padStart(2, "0")}:${String(hour * 2).padStart(2, "0")}:00${hour % 2 === 0 ? "+01:00" : "Z"}`,
  }));
  await platform.post(`${P}/batch`, { inserts: hours });
  const found: unknown[] = [];
  let after: string | null = null;
  do {
    const query: Record<string, string> = {
      filter: '[["n","==",24]]',
      sort: "at",
      limit: "5",
      ...(after === null ? {} : { after }),
    };
    const { body } = await platform.get<ListAnswer & { cursor: string | null }>(P, { query });
    found.push(...(body.items ?? []).map(({ id }) => id));
    after = body.cursor;
  } while (after !== null);
  expect(found).toEqual(hours.toSorted((one, other) => Date.parse(one.at) - Date.parse(other.at)).map(({ id }) => id));
});

test("[TB683] a cursor of 0.2 goes on at its instant", async () => {
  await platform.post(`${P}/batch`, {
    inserts: [BEFORE, INSTANT, "2024-05-06T04:00:00.001Z"].map((at, index) => ({ id: `c${index}`, at, n: 3 })),
  });
  const cursor = `c1~${Buffer.from(JSON.stringify(["at:asc,id:asc", "2024-05-06T06:00:00+02:00", "c1"])).toString("base64url")}`;
  expect(ids(await platform.get(P, { query: { filter: '[["n","==",3]]', sort: "at", after: cursor } }))).toEqual([
    "c2",
  ]);
});

test("[TB681] defaults of the config and what its migrations write; a default without an offset is refused", async () => {
  const migrated = `{ databases: { shared: { tables: { events: {
    schema: { at: { type: "datetime" }, since: { type: "datetime", required: true, default: "2024-05-06T04:00Z" } },
    migrations: [{ version: 1, description: "times", up: "UPDATE events SET at = '${FORM}'" }],
    access: { read: true },
  } } } } }`;
  const other = await testPlatform({
    config:
      '{ databases: { shared: { tables: { events: { schema: { at: { type: "datetime" } }, access: { read: true } } } } } }',
  });
  try {
    expect((await other.service.post(P, { id: "a" })).status).toBe(201);
    await other.restart({ config: migrated });
    expect((await other.get(`${P}/a`)).body).toMatchObject({ at: INSTANT, since: INSTANT });
    expect((await other.service.post(P, { id: "b" })).body).toMatchObject({ at: null, since: INSTANT });
    const refused = other.restart({ config: migrated.replace("2024-05-06T04:00Z", "2024-05-06") });
    await expect(refused).rejects.toThrow("with an offset");
  } finally {
    await other.stop();
  }
});

test("[TB681] the schema endpoint and OpenAPI show the default as it is stored", async () => {
  const document = JSON.stringify((await platform.service.get("/swagger/json")).body);
  expect(document).toContain(`"default":"${INSTANT}"`);
  expect(document).not.toContain(FORM);
});
