import { Database } from "bun:sqlite";
import { afterAll, beforeAll, expect, test } from "bun:test";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { Validator } from "@seriousme/openapi-schema-validator";
import { Compile } from "typebox/schema";
import type { JsonObject } from "../../../src/kernel/json/json.ts";
import {
  type ListAnswer,
  SERVICE_KEY,
  type TestPlatform,
  temporaryDirectory,
  testPlatform,
} from "../../support/index.ts";
import { attemptStart } from "../../support/start-attempt.ts";
import { runCommand } from "../backup/backup-support.ts";

// What is around views: keys, descriptions, server code, exports, other versions of a config.

const READER = "views-reader-key-0123456789abcdefghijkl";
const FILMS = `films: { schema: { title: { type: "string", required: true }, genre: { type: "string" } }, access: { read: true, insert: true } }`;
const VIEW = `genres: {
  sql: "SELECT genre AS id, count(*) AS films, max(createdAt) AS newest FROM films WHERE genre IS NOT NULL GROUP BY genre",
  schema: { films: { type: "integer", required: true }, newest: { type: "datetime" } },
}`;
const CONFIG = (tables: string, views: string) => `export default {
  api: { schemaEndpoint: true },
  databases: { shared: { tables: { ${tables}, log: {} }, views: { ${views} } } },
  serviceKeys: { reader: { key: "${READER}", scopes: ["db:shared:genres:read"] } },
  routes: (api) => api.post("/app", async ({ app, body }) => {
    const view = app.db("shared").table("genres");
    const tried = async (work) => { try { return await work(); } catch (error) { return { status: error.status, message: error.message }; } };
    return {
      list: await view.where("films", ">", 1).sort("films", "desc").list(),
      first: await view.first(), count: await view.count(), get: await view.get("Drama"),
      total: await view.aggregate({ select: "sum(films)" }),
      insert: await tried(() => view.insert({ id: "x" })), update: await tried(() => view.update("Drama", { films: 1 })),
      delete: await tried(() => view.delete("Drama")), search: await tried(() => view.search("x")),
      nobody: await tried(() => app.as(null).db("shared").table("genres").list()),
      read: await tried(() => app.db("shared").transaction((tx) => tx.table("genres").list())),
      write: await tried(() => app.db("shared").transaction((tx) => { tx.table("log").insert({ id: "undone" }); tx.table("genres").insert({ id: "x" }); })),
    };
  }),
};`;

let platform: TestPlatform;
beforeAll(async () => {
  platform = await testPlatform({ config: CONFIG(FILMS, VIEW) });
  const films = ["Comedy", "Comedy", "Comedy", "Drama", "Drama", null].map((genre, n) => ({ title: `f${n}`, genre }));
  expect((await platform.service.post("/api/db/shared/tables/films/batch", { inserts: films })).status).toBe(200);
});
afterAll(() => platform.stop());

test("[TB862] a key reads a view by a scope that names it, and its tables by none", async () => {
  const reader = platform.withKey(READER);
  for (const path of ["genres", "genres/Drama", "genres/count", "genres/aggregate"])
    expect((await reader.get(`/api/db/shared/tables/${path}`)).status).toBe(200);
  expect((await reader.get("/api/db/shared/tables/films")).status).toBe(403);
  expect((await reader.post("/api/db/shared/tables/genres", { id: "x" })).status).toBe(405);
});

test("[TB868] the OpenAPI document and the schema describe a view, and no write to it", async () => {
  interface Document {
    paths: Record<string, Record<string, { operationId: string }>>;
    components: { schemas: Record<string, JsonObject> };
  }
  const document = (await platform.get<Document>("/swagger/json")).body;
  expect(await new Validator().validate(structuredClone(document) as never)).toEqual({ valid: true });
  const base = "/api/db/shared/tables/genres";
  const paths = Object.keys(document.paths).filter((path) => path.startsWith(base));
  expect(paths.toSorted()).toEqual([base, `${base}/aggregate`, `${base}/count`, `${base}/{id}`]);
  for (const path of paths) expect(Object.keys(document.paths[path] ?? {})).toEqual(["get"]);
  const schemas = Object.keys(document.components.schemas);
  expect(schemas.filter((name) => name.startsWith("shared.genres"))).toEqual(["shared.genres"]);
  const { items } = (await platform.service.get<ListAnswer>(base)).body;
  const checker = Compile({ ...document.components.schemas["shared.genres"] } as never);
  expect(items.map((item) => checker.Check(item))).toEqual([true, true]);
  expect(checker.Check({ id: "x", films: null, newest: null })).toBe(false);
  const { body } = await platform.get<{ namespaces: { shared: { tables: Record<string, JsonObject> } } }>(
    "/api/schema",
  );
  const { genres, films } = body.namespaces.shared.tables;
  expect(genres).toMatchObject({
    view: true,
    schemaless: false,
    indexes: [],
    fields: { films: { type: "integer", required: true } },
  });
  expect(Object.keys(genres?.["fields"] as JsonObject)).toEqual(["id", "films", "newest"]);
  expect(films?.["view"]).toBeUndefined();
  expect(JSON.stringify(body)).not.toContain("SELECT");
});

test("[TB870] server code reads a view like a table, and writes none", async () => {
  const { body } = await platform.service.post<JsonObject & Record<string, JsonObject>>("/api/functions/app", {});
  const comedy = { id: "Comedy", films: 3, newest: expect.any(String) };
  expect(body).toMatchObject({
    list: { items: [comedy, { id: "Drama", films: 2 }] },
    first: comedy,
    count: 2,
    get: { id: "Drama", films: 2 },
    total: { groups: [{ "sum(films)": 5 }] },
    search: { status: 400 },
    nobody: { status: 401 },
    read: { status: 400, message: expect.stringContaining("genres is a view") },
    write: { status: 400 },
  });
  for (const name of ["insert", "update", "delete"]) expect(body[name]).toMatchObject({ status: 405 });
  expect((await platform.service.get("/api/db/shared/tables/log/undone")).status).toBe(404);
});

test("[TB870] a view is exported, and nothing is imported into it", async () => {
  const command = (...args: string[]) => runCommand([...args, "--url", platform.url, "--key", SERVICE_KEY]);
  const directory = temporaryDirectory();
  for (const [name, lines] of [
    ["genres.csv", ["id,films,newest", "Comedy,3,", "Drama,2,"]],
    ["genres.ndjson", ['{"id":"Comedy","films":3,', '{"id":"Drama","films":2,']],
  ] as const) {
    const file = join(directory, name);
    expect(await command("export", "shared/genres", file)).toMatchObject({ code: 0 });
    const text = readFileSync(file, "utf8").trim().split(/\r?\n/);
    expect(text.map((line, place) => line.startsWith(lines[place] ?? "-"))).toEqual(lines.map(() => true));
    const imported = await command("import", "shared/genres", file);
    expect([imported.code, imported.stderr]).toEqual([
      1,
      expect.stringContaining("genres is a view, which is read-only"),
    ]);
  }
});

test("[TB871] a view changes with the config, without a migration, and needs what it reads", async () => {
  const changed = VIEW.replace("max(createdAt) AS newest", "min(createdAt) AS oldest").replace("newest:", "oldest:");
  await platform.restart({ config: CONFIG(FILMS, changed) });
  const read = (view: string) => platform.service.get<ListAnswer>(`/api/db/shared/tables/${view}`);
  expect(Object.keys((await read("genres")).body.items[0] ?? {})).toEqual(["id", "films", "oldest"]);
  await platform.restart({
    config: CONFIG(FILMS, changed.replace("genres:", "kinds:")).replace('"genres"', '"kinds"'),
  });
  expect((await read("genres")).status).toBe(404);
  expect((await read("kinds")).body.total).toBe(2);
  expect((await read("films")).body.total).toBe(6);

  const stored = new Database(join(platform.dataDirectory, "databases", "shared.db"), { readonly: true });
  const tables = stored.query<{ name: string }, []>("SELECT name FROM sqlite_schema WHERE type = 'table'").all();
  stored.close();
  expect(tables.map(({ name }) => name).filter((name) => !name.startsWith("_"))).toEqual(["films", "log"]);
  // The files of a view's tables have nothing of it, so a column goes with its migration, and the view is named first.
  const without = FILMS.replace(
    `, genre: { type: "string" } }, access`,
    ` }, migrations: [{ version: 1, description: "no genre", up: "ALTER TABLE films DROP COLUMN genre" }], access`,
  );
  const config = join(temporaryDirectory(), "platform.config.ts");
  writeFileSync(config, CONFIG(without, VIEW));
  await platform.kill();
  const refused = await attemptStart({ configFile: config, dataDirectory: platform.dataDirectory });
  expect([refused.hasStarted, refused.stderr]).toEqual([
    false,
    expect.stringMatching(/databases\.shared\.views\.genres\.sql: .*genre/),
  ]);
  await platform.restart({
    config: CONFIG(without, VIEW.replaceAll("genre ", "title ").replaceAll('genre"', 'title"')),
  });
  expect((await read("films")).body.total).toBe(6);
  expect((await read("genres")).body.items[0]).toMatchObject({ id: "f0", films: 1 });
});
