import { afterAll, beforeAll, expect, test } from "bun:test";
import { Validator } from "@seriousme/openapi-schema-validator";
import { Compile } from "typebox/schema";
import { signIn, type TestPlatform, testPlatform } from "../../support/index.ts";

const TABLES = {
  shared: {
    tables: {
      films: {
        schema: {
          title: { type: "string", required: true, max: 100 },
          year: { type: "integer", min: 1888, default: 2000 },
          rating: { type: "number" },
          isOld: { type: "boolean" },
          seenAt: { type: "datetime" },
          genre: { type: "string", enum: ["drama", "comedy"] },
          facts: { type: "json" },
        },
        fts: ["title"],
        access: { read: true, insert: true, update: true, delete: true },
      },
      filmsCount: { access: { read: true, insert: true } },
    },
  },
  team: { instance: true, tables: { notes: { schema: { text: { type: "text", required: true } } } } },
};

type Schema = Record<string, unknown>;
interface Document {
  paths: Record<string, Record<string, { operationId: string; parameters: { name: string }[]; responses: Schema }>>;
  components: { schemas: Record<string, Schema> };
}

let platform: TestPlatform;
let document: Document;
beforeAll(async () => {
  platform = await testPlatform({ config: { databases: TABLES, api: { schemaEndpoint: true } } });
  document = (await platform.get<Document>("/swagger/json")).body;
});
afterAll(() => platform.stop());

test("[TB160] each declared table has paths and record types of its own in a valid document", async () => {
  expect(await new Validator().validate(structuredClone(document) as never)).toEqual({ valid: true });
  const films = "/api/db/shared/tables/films";
  const methods = (path: string) => Object.keys(document.paths[path] ?? {}).sort();
  expect([films, `${films}/count`, `${films}/{id}`].map(methods)).toEqual([
    ["get", "post"],
    ["get"],
    ["delete", "get", "patch"],
  ]);
  expect(methods(`${films}/batch-by-filter`)).toEqual(["post"]);
  const instance = document.paths["/api/db/team/{instance}/tables/notes"]?.["get"];
  expect(instance?.parameters.map(({ name }) => name)).toContain("instance");
  const ids = Object.values(document.paths).flatMap((path) => Object.values(path).map((one) => one.operationId));
  expect(new Set(ids).size).toBe(ids.length);
  expect(ids).toContain("shared.films.list");
});

test("[TB160] the endpoints take and answer exactly what the types describe", async () => {
  const checker = (name: string) => Compile({ ...document.components.schemas[name] } as never);
  const [answered, inserted, updated] = ["", ".insert", ".update"].map((part) => checker(`shared.films${part}`));
  const film = { title: "Alien", rating: 8.5, isOld: null, seenAt: "2026-01-01T00:00:00.000Z", facts: { a: [1] } };
  const { status, body } = await platform.post<Schema>("/api/db/shared/tables/films", film);
  expect([status, inserted?.Check(film), answered?.Check(body)]).toEqual([201, true, true]);
  for (const wrong of [
    {},
    { title: 5 },
    { title: "a", year: 1.5 },
    { title: "a", genre: "x" },
    { title: "a", no: 1 },
  ]) {
    expect([wrong, inserted?.Check(wrong)]).toEqual([wrong, false]);
    expect((await platform.post("/api/db/shared/tables/films", wrong)).status).toBe(400);
  }
  expect(updated?.Check({ title: "Aliens", id: "ignored" })).toBe(true);
  expect(updated?.Check({ no: 1 })).toBe(false);
});

test("[TB160] results of a search hold to the type of their table", async () => {
  await platform.post("/api/db/shared/tables/films", { title: "Solaris" });
  const search = await platform.get<{ items: Schema[] }>("/api/db/shared/tables/films/search?q=solaris");
  expect(search.body.items).toHaveLength(1);
  expect(search.body.items[0]).toHaveProperty("highlights.title");
  expect(Compile({ ...document.components.schemas["shared.films"] } as never).Check(search.body.items[0])).toBe(true);
});

test("[TB160] `api.schemaEndpoint` decides who sees the tables: everybody, authenticated callers or nobody, as /api/schema does", async () => {
  const hasTables = ({ body }: { body: Document }) => "shared.films" in body.components.schemas;
  const closed = await testPlatform({ config: { databases: TABLES } });
  expect(hasTables(await closed.service.get<Document>("/swagger/json"))).toBe(false);
  await closed.stop();
  const serviceKeys = {
    films: { key: "films-key-of-twenty-characters", scopes: ["db:shared:films:read"] },
    system: { key: "system-key-of-twenty-characters", scopes: ["system:*:*:read"] },
  };
  const shown = await testPlatform({
    config: { databases: TABLES, serviceKeys, api: { schemaEndpoint: "authenticated" } },
  });
  const user = await signIn(shown);
  expect(hasTables(await shown.get<Document>("/swagger/json"))).toBe(false);
  expect(hasTables(await user.get<Document>("/swagger/json"))).toBe(true);
  expect(hasTables(await shown.service.get<Document>("/swagger/json"))).toBe(true);
  expect(hasTables(await shown.withKey(serviceKeys.system.key).get<Document>("/swagger/json"))).toBe(true);
  const films = shown.withKey(serviceKeys.films.key);
  expect(hasTables(await films.get<Document>("/swagger/json"))).toBe(false);
  expect((await films.get("/api/schema")).status).toBe(403);
  await shown.stop();
});

test("[TB408] record types have the references that a request may expand", async () => {
  const to = (table: string) => ({ type: "string", references: table });
  const own = await testPlatform({
    config: {
      api: { schemaEndpoint: true },
      databases: {
        shared: {
          tables: {
            people: { schema: { boss: to("people") }, access: { read: true } },
            posts: { schema: { author: to("people") }, access: { read: true } },
            taken: { schema: { expand: to("people") } },
            alone: { schema: { n: { type: "integer" } } },
          },
        },
      } as never,
    },
  });
  try {
    const { body } = await own.get<Document>("/swagger/json");
    expect(await new Validator().validate(structuredClone(body) as never)).toEqual({ valid: true });
    const expandOf = (name: string) =>
      (body.components.schemas[`shared.${name}`] as { properties: Record<string, Schema> }).properties["expand"];
    expect(Object.keys(expandOf("people")?.["properties"] as Schema)).toEqual([
      "boss",
      "people(boss)",
      "posts(author)",
      "taken(expand)",
    ]);
    expect(expandOf("posts")?.["properties"]).toEqual({
      author: { anyOf: [{ $ref: "#/components/schemas/shared.people" }, { type: "null" }] },
    });
    expect([expandOf("alone"), expandOf("taken")?.["type"]]).toEqual([undefined, ["string", "null"]]);
  } finally {
    await own.stop();
  }
});

test("[TB758] points are described, and the distance that `near` adds to their records", async () => {
  const at = { type: "geo", required: true } as const;
  const own = await testPlatform({
    config: {
      api: { schemaEndpoint: true },
      databases: {
        shared: {
          tables: { places: { schema: { at } }, taken: { schema: { at, distance: { type: "string" } } }, no: {} },
        },
      } as never,
    },
  });
  try {
    const { body } = await own.get<Document>("/swagger/json");
    expect(await new Validator().validate(structuredClone(body) as never)).toEqual({ valid: true });
    const propertiesOf = (name: string) =>
      (body.components.schemas[`shared.${name}`] as { properties: Record<string, Schema> }).properties;
    expect(propertiesOf("places")["at"]).toMatchObject({ type: "object", required: ["lat", "lng"] });
    expect(propertiesOf("places")["distance"]?.["type"]).toBe("number");
    expect(propertiesOf("taken")["distance"]?.["type"]).toEqual(["string", "null"]);
    expect(propertiesOf("no")["distance"]).toBeUndefined();
  } finally {
    await own.stop();
  }
});
