import { afterAll, beforeAll, expect, test } from "bun:test";
import { openSocket, signIn, type TestPlatform, testPlatform } from "../../support/index.ts";

let platform: TestPlatform;

beforeAll(async () => {
  platform = await testPlatform({
    config: `{
      kv: { cache: {} }, d1: { main: {} }, vectorize: { docs: { dimensions: 2 } }, storage: { buckets: { files: {} } },
      databases: {
        shared: { tables: {
          things: { schema: { title: { type: "string" }, doc: { type: "json" } } }, free: {},
          templates: { schema: { title: { type: "string" }, doc: { type: "json", default: { list: [1, { n: 1 }] } } }, access: { read: true } },
          probes: { schema: { result: { type: "json" }, what: { type: "string" } }, access: { read: true, insert: true }, hooks: {
            async beforeInsert(_auth, record, app) {
              const faults = [];
              const result = await { copies, numbers, answers }[record.what](app);
              return { ...record, result };
            } } },
        } },
        rooms: { instance: true, tables: { things: {} } },
      },
    }`
      .replace(
        /^/,
        `import { defineConfig, Refusal } from "platform";
      const given = () => ({ title: "as given", doc: { list: [1, { n: 1 }] } });
      const spoil = (value) => { value.title = "spoilt"; value.doc.list[1].n = 2; value.doc.list.push("spoilt"); };
      /** Changes what was handed over right after the call. */
      const handed = async (value, call) => { const done = call(value); spoil(value); return await done; };
      async function copies(app) {
        const things = app.db("shared").table("things"), free = app.db("shared").table("free"), rooms = app.db("rooms", "one").table("things");
        const tables = [];
        for (const [name, table] of Object.entries({ things, free, rooms })) {
          await handed({ id: "a", ...given() }, (value) => table.insert(value));
          await handed({ id: "b", ...given() }, (value) => table.upsert(value));
          await table.insert({ id: "c" });
          await handed(given(), (value) => table.update("c", value));
          await handed({ id: "d", ...given() }, (value) => table.batch({ inserts: [value] }));
          for (const id of ["a", "b", "c", "d"]) tables.push((await table.get(id)).title + JSON.stringify((await table.get(id)).doc));
        }
        await handed(given(), (value) => app.kv("cache").set("k", value));
        const values = [1, 2], metadata = given();
        const upserted = app.vectors("docs").upsert([{ id: "v", values, metadata }]);
        values[0] = 9; spoil(metadata); await upserted;
        const bytes = new Uint8Array([1, 2, 3]), options = { metadata: { a: "given" } };
        const put = app.storage("files").put("f", bytes, options);
        bytes[0] = 9; options.metadata.a = "spoilt"; await put;
        const params = ["given"];
        const query = app.sql("main").query("SELECT ? AS x", params);
        params[0] = "spoilt";
        return { tables, kv: await app.kv("cache").get("k"), vector: (await app.vectors("docs").search([1, 2], { returnValues: true }))[0],
          file: [...new Uint8Array(await (await app.storage("files").get("f")).arrayBuffer())], fileMetadata: (await app.storage("files").head("f")).customMetadata, sql: (await query).results };
      }
      async function answers(app) {
        const templates = app.db("shared").table("templates");
        const given = { title: "as given" };
        spoil(await templates.insert({ id: "a", ...given }));
        spoil(await templates.upsert({ id: "b", ...given }));
        spoil(await templates.update("a", given));
        for (const one of (await templates.batch({ inserts: [{ id: "c", ...given }] })).inserted) spoil(one);
        return (await templates.insert({ id: "d" })).doc;
      }
      async function numbers(app) {
        const t = app.db("shared").table("free");
        const calls = {
          insert: () => t.insert({ a: { n: NaN } }), infinite: () => t.insert({ a: [1, -Infinity] }), upsert: () => t.upsert({ id: "x", n: NaN }),
          update: () => t.update("x", { n: NaN }), batch: () => t.batch({ inserts: [{ n: NaN }] }), big: () => t.insert({ n: 5n }), code: () => t.insert({ n: () => 1 }),
          kv: () => app.kv("cache").set("n", [NaN]), vector: () => app.vectors("docs").upsert([{ id: "n", values: [1, 2], metadata: { n: NaN } }]), sql: () => app.sql("main").query("SELECT ?", [NaN]),
        };
        const said = {};
        for (const [name, call] of Object.entries(calls)) said[name] = await call().then(() => "taken", (error) => error.status + " " + Object.entries(error.data ?? {}).map(([field, { code }]) => field + " " + code));
        const cyclic = {}; cyclic.self = cyclic;
        said.cyclic = await t.insert(cyclic).catch((error) => error.status);
        const made = await t.insert({ at: new Date(0), gone: undefined });
        return { ...said, made: [made.at, Object.hasOwn(made, "gone")] };
      }
      export default defineConfig(`,
      )
      .concat(");"),
  });
});
afterAll(() => platform.stop());

const probe = async (what: string) => {
  const { status, body } = await platform.post("/api/db/shared/tables/probes", { what });
  expect(status).toBe(201);
  return body["result"];
};

test("[TB146] what app is given counts as it was at the call", async () => {
  const doc = { list: [1, { n: 1 }] };
  expect(await probe("copies")).toEqual({
    tables: Array(12).fill(`as given${JSON.stringify(doc)}`),
    kv: { title: "as given", doc },
    vector: { id: "v", score: expect.any(Number), metadata: { title: "as given", doc }, values: [1, 2] },
    file: [1, 2, 3],
    fileMetadata: { a: "given" },
    sql: [{ x: "given" }],
  });
});

test("[TB146] what is done to an answer of app changes neither what is announced nor a default", async () => {
  const socket = await openSocket(`${platform.wsUrl}/api/realtime`);
  socket.send({ type: "auth", token: (await signIn(platform)).token });
  await socket.expect({ type: "auth_success" });
  socket.send({ type: "subscribe", channel: "realtime:shared:templates" });
  await socket.expect({ type: "subscribed" });
  const doc = { list: [1, { n: 1 }] };
  expect(await probe("answers")).toEqual(doc);
  for (const id of ["a", "b", "a", "c"])
    await socket.expect({ type: "db_change", data: { id, title: "as given", doc } });
  await socket.close();
});

test("[TB146] what JSON cannot say is 400 to app too, and named", async () => {
  expect(await probe("numbers")).toEqual({
    insert: "400 a.n invalid_value",
    infinite: "400 a.1 invalid_value",
    upsert: "400 n invalid_value",
    update: "400 n invalid_value",
    batch: "400 inserts.0.n invalid_value",
    big: "400 n invalid_type",
    code: "400 n invalid_type",
    kv: "400 value.0 invalid_value",
    vector: "400 n invalid_value",
    sql: "400 params.0 invalid_value",
    cyclic: 400,
    made: ["1970-01-01T00:00:00.000Z", false],
  });
});
