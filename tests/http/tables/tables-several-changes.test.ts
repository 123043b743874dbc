import { afterEach, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import type { JsonObject } from "../../../src/kernel/json/json.ts";
import {
  type ListAnswer,
  platformCommand,
  type TestPlatform,
  testEnvironment,
  testPlatform,
} from "../../support/index.ts";

// Fields of several references that come, go and change, in files that have records.

let platform: TestPlatform | null = null;
afterEach(async () => {
  await platform?.stop();
  platform = null;
});

const TAGS = `tags: { schema: { name: { type: "string" } } }`;
const config = (docs: string, more = "") => `{ databases: { shared: { tables: { ${TAGS}, docs: ${docs} ${more} } } } }`;
const several = (more = "") => `{ type: "references", references: "tags" ${more} }`;
const path = (table: string) => `/api/db/shared/tables/${table}`;
const start = async (docs: string) => {
  platform = await testPlatform({ config: config(docs) });
  await platform.service.post(`${path("tags")}/batch`, { inserts: [{ id: "a" }, { id: "b" }, { id: "c" }] });
  return platform;
};
const having = async (id: string, field = "tags", table = "docs") => {
  const filter = encodeURIComponent(JSON.stringify([[field, "has", id]]));
  const { body } = await (platform as TestPlatform).service.get<ListAnswer>(`${path(table)}?filter=${filter}`);
  return body.items.map((one) => one["id"]);
};
const failure = (to: string) =>
  (platform as TestPlatform).restart({ config: to }).then(
    () => "started",
    (cause: Error) => cause.message,
  );

test("[TB658] a field of several references is added, renamed, given another table, and removed", async () => {
  const { service, restart } = await start(`{ schema: { n: { type: "integer" } } }`);
  await service.post(path("docs"), { id: "old", n: 1 });
  await restart({ config: config(`{ schema: { n: { type: "integer" }, tags: ${several()} } }`) });
  expect((await service.get<JsonObject>(`${path("docs")}/old`)).body["tags"]).toEqual([]);
  await service.patch(`${path("docs")}/old`, { tags: ["b", "a"] });
  await service.post(path("docs"), { id: "new", tags: ["a"] });
  const renamed = (up: string, schema: string) =>
    config(`{ schema: { n: { type: "integer" }, ${schema} }, migrations: [${up}] }`);
  const first = `{ version: 1, description: "labels", up: 'ALTER TABLE docs RENAME COLUMN tags TO labels' }`;
  await restart({ config: renamed(first, `labels: ${several()}`) });
  expect(await having("a", "labels")).toEqual(["new", "old"]);
  expect((await service.get<JsonObject>(`${path("docs")}/old`)).body["labels"]).toEqual(["b", "a"]);
  expect((await service.patch(`${path("docs")}/old`, { labels: { $op: "remove", value: "a" } })).status).toBe(200);
  expect(await having("a", "labels")).toEqual(["new"]);
  const other = `{ schema: { n: { type: "integer" }, labels: { type: "references", references: "docs" } }, migrations: [${first}] }`;
  expect(await failure(config(other))).toContain(
    "shared.docs.labels: 2 records refer to records of docs that do not exist",
  );
  const second = `{ version: 2, description: "one", up: "UPDATE docs SET labels = json_array('c') WHERE id = 'new'" }`;
  await restart({ config: renamed(`${first}, ${second}`, `labels: ${several()}`) });
  expect([await having("a", "labels"), await having("c", "labels")]).toEqual([[], ["new"]]);
  const third = `{ version: 3, description: "gone", up: 'ALTER TABLE docs DROP COLUMN labels' }`;
  await restart({ config: renamed(`${first}, ${second}, ${third}`, `m: { type: "integer" }`) });
  expect((await service.delete(`${path("tags")}/c`)).status).toBe(200);
});

test("[TB658] another field becomes several references by a migration; values that do not fit are named", async () => {
  const { service, restart } = await start(
    `{ schema: { tag: { type: "string", references: "tags" }, list: { type: "json" } } }`,
  );
  await service.post(path("docs"), { id: "x", tag: "a", list: ["b", "c"] });
  await service.post(path("docs"), { id: "y" });
  const to = (migrations: string, more = "") =>
    config(`{ schema: { tag: ${several()}, list: ${several(more)} }, migrations: [${migrations}] }`);
  expect(await failure(to(""))).toContain("shared.docs.tag: was string and is now references");
  const one = `{ version: 1, description: "several", up: "UPDATE docs SET tag = CASE WHEN tag IS NULL THEN '[]' ELSE json_array(tag) END" }`;
  const broken = (value: string) =>
    `${one}, { version: 2, description: "broken", up: "UPDATE docs SET list = '${value}' WHERE id = 'x'" }`;
  expect(await failure(to(broken("no json")))).toContain(
    "shared.docs.list: must be a JSON array of ids, none of them twice",
  );
  expect(await failure(to(broken('[\\"b\\",\\"b\\"]')))).toContain(
    "none of them twice and have at most 100 ids, and 1 records",
  );
  expect(await failure(to(broken('[\\"none\\"]')))).toContain(
    "shared.docs.list: 1 records refer to records of tags that do not exist",
  );
  expect(await failure(to(one, ", max: 1"))).toContain("have at most 1 ids, and 1 records have another value");
  await restart({ config: to(one) });
  expect((await service.get<JsonObject>(`${path("docs")}/x`)).body).toMatchObject({ tag: ["a"], list: ["b", "c"] });
  expect((await service.get<JsonObject>(`${path("docs")}/y`)).body).toMatchObject({ tag: [], list: [] });
  expect([await having("a", "tag"), await having("c", "list")]).toEqual([["x"], ["x"]]);
  expect(await failure(to(one, ", required: true"))).toContain("have an id");
  expect(await failure(to(one, ", max: 1"))).toContain("have at most 1 ids");
});

test("[TB658] the table of such a field is renamed by a migration", async () => {
  const { service, restart } = await start(`{ schema: { tags: ${several()} } }`);
  await service.post(path("docs"), { id: "x", tags: ["a"] });
  await restart({
    config: `{ databases: { shared: { tables: { ${TAGS}, papers: { schema: { tags: ${several()} }, migrations: [
      { version: 1, description: "papers", up: "ALTER TABLE docs RENAME TO papers" }] } } } } }`,
  });
  expect(await having("a", "tags", "papers")).toEqual(["x"]);
  expect((await service.delete(`${path("tags")}/a`)).status).toBe(200);
  expect((await service.get<JsonObject>(`${path("papers")}/x`)).body["tags"]).toEqual([]);
});

test("[TB659] exports and imports have the ids in order, as JSON and as CSV", async () => {
  const { service, url, serviceKey, configFile } = await start(
    `{ schema: { tags: ${several()}, n: { type: "integer" } } }`,
  );
  await service.post(path("docs"), { id: "x", tags: ["c", "a"], n: 1 });
  await service.post(path("docs"), { id: "y", n: 2 });
  const directory = dirname(configFile);
  for (const ending of ["csv", "ndjson"]) {
    const file = join(directory, `docs.${ending}`);
    const run = async (...args: string[]) => {
      const command = Bun.spawn(
        [...platformCommand(), ...args, "--url", url, "--key", serviceKey, "--config", configFile],
        { env: testEnvironment(), stdout: "pipe", stderr: "pipe" },
      );
      return [await command.exited, await new Response(command.stderr).text()];
    };
    expect(await run("export", "shared/docs", file)).toEqual([0, expect.anything()]);
    if (ending === "csv") expect(readFileSync(file, "utf8")).toContain('"[""c"",""a""]"');
    for (const id of ["x", "y"]) await service.delete(`${path("docs")}/${id}`);
    expect(await run("import", "shared/docs", file)).toEqual([0, expect.anything()]);
    expect((await service.get<JsonObject>(`${path("docs")}/x`)).body["tags"]).toEqual(["c", "a"]);
    expect((await service.get<JsonObject>(`${path("docs")}/y`)).body["tags"]).toEqual([]);
    expect(await having("a")).toEqual(["x"]);
  }
});
