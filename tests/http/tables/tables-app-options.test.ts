import { afterAll, beforeAll, expect, test } from "bun:test";
import type { JsonObject, JsonValue } from "../../../src/kernel/json/json.ts";
import { type TestPlatform, testPlatform } from "../../support/index.ts";

// What `app.db(…)` does with options that it does not have.

let platform: TestPlatform;
beforeAll(async () => {
  platform = await testPlatform({
    config: `
      const FILTER = [["owner", "==", "ann"]];
      const asked = {
        options: { filter: FILTER },
        array: FILTER,
        group: { or: [FILTER] },
        negated: { not: FILTER },
        misspelt: { filters: FILTER },
        where: { where: FILTER },
        none: {},
        undefinedMember: { filter: FILTER, sort: undefined },
      };
      const problem = (error) => ({ status: error.status, fields: Object.entries(error.data).map(([name, { code }]) => name + " " + code) });
      const ids = ({ items }) => items.map(({ id }) => id).sort();
      const methods = {
        list: (table, options) => table.list(options).then(ids),
        count: (table, options) => table.count(options),
        aggregate: (table, options) => table.aggregate(options).then(({ groups }) => groups[0]["count()"]),
        search: (table, options) => table.search("film", options).then(ids),
      };
      const answers = async (app) => {
        const table = app.db("shared").table("films");
        const found = {};
        for (const [name, method] of Object.entries(methods)) {
          found[name] = {};
          for (const [form, options] of Object.entries(asked)) {
            found[name][form] = await method(table, options).catch(problem);
          }
        }
        return found;
      };
      const schema = { owner: { type: "string" }, title: { type: "text" } };
      export default {
        databases: { shared: { tables: { films: { schema, fts: ["title"], access: { read: true } } } } },
        routes: (api) => api
          .get("/server", ({ app }) => answers(app), { access: true })
          .get("/user", ({ app, auth }) => answers(app.as(auth)), { access: true }),
      };`,
  });
  const inserts = ["ann", "bob", "bob"].map((owner, n) => ({ id: `${n}`, owner, title: "film" }));
  expect((await platform.service.post("/api/db/shared/tables/films/batch", { inserts })).status).toBe(200);
});
afterAll(() => platform.stop());

test("[TB850] options that a read of app.db does not have are 400 and named, as is a filter in their place", async () => {
  const refused = (...fields: string[]) => ({ status: 400, fields });
  const expected = (one: JsonValue, all: JsonValue): JsonObject => ({
    options: one,
    array: refused("filter invalid_value"),
    group: refused("or unknown_field"),
    negated: refused("not unknown_field"),
    misspelt: refused("filters unknown_field"),
    where: refused("where unknown_field"),
    none: all,
    undefinedMember: one,
  });
  for (const path of ["server", "user"]) {
    const { status, body } = await platform.get(`/api/functions/${path}`);
    expect(status).toBe(200);
    expect(body).toEqual({
      list: expected(["0"], ["0", "1", "2"]),
      count: expected(1, 3),
      aggregate: expected(1, 3),
      search: expected(["0"], ["0", "1", "2"]),
    });
  }
});
