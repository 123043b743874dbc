import { afterAll, beforeAll, expect, test } from "bun:test";
import type { JsonObject } from "../../../src/kernel/json/json.ts";
import { type ErrorAnswer, type ListAnswer, type TestPlatform, testPlatform } from "../../support/index.ts";

let platform: TestPlatform;
beforeAll(async () => {
  platform = await testPlatform({
    config: `import { defineConfig, json } from "platform";
      interface Address { city: string; zip?: string }
      export default defineConfig({
        api: { schemaEndpoint: true },
        databases: { shared: { tables: { people: {
          schema: { home: { type: json<Address>(), required: true }, tags: { type: json<string[]>(), default: [] } },
          access: { read: true, insert: true, update: true },
        } } } },
      });`,
  });
});
afterAll(() => platform.stop());

const P = "/api/db/shared/tables/people";

test("[TB690] a JSON field with a type of its own is a JSON field: any JSON is stored, and filtered by its paths", async () => {
  const home = { city: "Wien", more: [1, null] };
  const { status, body } = await platform.post<JsonObject>(P, { home });
  expect([status, body]).toEqual([201, expect.objectContaining({ home, tags: [] })]);
  expect((await platform.post(P, { home: "nowhere", tags: 3 })).status).toBe(201);
  const found = await platform.get<ListAnswer>(P, { query: { filter: '[["home.city","==","Wien"]]' } });
  expect(found.body.items).toEqual([expect.objectContaining({ home })]);
  const schema = JSON.stringify((await platform.service.get("/api/schema")).body);
  expect(schema).toContain('"home":{"type":"json"');
});

test("[TB21] a required JSON field that is null, or missing, is 400", async () => {
  for (const body of [{ home: null }, {}]) {
    const answer = await platform.post<ErrorAnswer>(P, body);
    expect([answer.status, answer.body.data?.["home"]?.code]).toEqual([400, "required"]);
  }
  const { body } = await platform.post<JsonObject>(P, { home: 1 });
  expect((await platform.patch(`${P}/${body["id"]}`, { home: null })).status).toBe(400);
  expect((await platform.patch(`${P}/${body["id"]}`, { tags: null })).status).toBe(200);
});
