import { afterAll, beforeAll, expect, test } from "bun:test";
import type { JsonObject } from "../../../src/kernel/json/json.ts";
import { type TestPlatform, testPlatform } from "../../support/index.ts";
import { random, testSeed } from "../../support/random.ts";
import { type Auth, covers, FACTS, type GeneratedRule, randomRecord, randomRule } from "../../support/rules.ts";
import { ask, type Caller, FACTS_TABLE } from "../../support/rules-world.ts";

// Expanded records are decided like records that are read by themselves: random rules, records and callers, and the oracle
// of tests/support/rules.ts.

const SEED = testSeed(20_262);
const TABLES = 24 * Number(process.env["PLATFORM_FUZZ_ROUNDS"] ?? 1);
const RECORDS = 10;
const OWNERS = ["ann", "bob", "cyd"];
const PASSWORD = "correct horse battery";
const KEY = "key-hubs-0123456789abcdef";
const base = "/api/db/shared/tables";
/** Tables of an instance, which refer to those of the other file. */
const board = "/api/db/boards/one/tables";

interface Ruled {
  name: string;
  read: GeneratedRule | null;
  records: JsonObject[];
}

let platform: TestPlatform;
let tables: Ruled[];
let callers: Caller[];

beforeAll(async () => {
  const r = random(SEED);
  tables = Array.from({ length: TABLES }, (_, index) => ({
    name: `t${index}`,
    read: randomRule(r, OWNERS, ["record"], r.chance(0.6) ? "by filter" : "may look at the record"),
    records: Array.from({ length: RECORDS }, (_, at) => ({
      id: `r${at}`,
      ...randomRecord(r, OWNERS),
      secret: `canary:t${index}:r${at};`,
    })),
  }));
  const to = (table: string) => `{ type: "string", references: "${table}" }`;
  const several = (table: string) => `{ type: "references", references: "${table}" }`;
  const source = tables.map(
    ({ name, read }) => `
    ${name}: { schema: { owner: { type: "string" }, n: { type: "integer" }, s: { type: "text" }, b: { type: "boolean" }, j: { type: "json" }, refs: { type: "references", references: "facts" },
      secret: { type: "string" }, hub: ${to("hubs")}, hubs: ${several("hubs")} }, access: { ${read === null ? "" : `read: ${read.source}`} } },
    refs_${name}: { schema: { to: ${to(name)}, all: ${several(name)}, hub: ${to("hubs")} }, access: { read: true } },`,
  );
  const far = (table: string) => `{ references: "shared/${table}", onDelete: "setNull" }`;
  const severalFar = (table: string) => `{ type: "references", references: "shared/${table}", onDelete: "remove" }`;
  const farSource = tables.map(
    ({ name }) => `refs_${name}: { schema: { to: ${far(name)}, all: ${severalFar(name)} }, access: { read: true } },`,
  );
  const referring = tables.flatMap(({ name }) => [`db:shared:refs_${name}:read`, `db:boards:refs_${name}:read`]);
  const scopes = ["db:shared:hubs:read", ...referring];
  platform = await testPlatform({
    config: `{ serviceKeys: { hubs: { key: "${KEY}", scopes: ${JSON.stringify(scopes)} } },
      databases: { shared: { tables: { hubs: { schema: {}, access: { read: true } }, ${FACTS_TABLE} ${source.join("")} } },
        boards: { instance: true, access: { open: true }, tables: { ${farSource.join("")} } } } }`,
  });
  const users = ["ann", "bob"].map((id) => ({
    id,
    email: `${id}@example.com`,
    password: PASSWORD,
    role: id === "bob" ? "editor" : "user",
  }));
  expect((await platform.service.post("/api/admin/auth/users/import", { users })).status).toBe(200);
  expect((await platform.service.post("/api/db/shared/tables/facts/batch", { inserts: FACTS })).status).toBe(200);
  const people = await Promise.all(
    users.map(async ({ id, email, role }): Promise<Caller> => {
      const { body } = await platform.post<{ accessToken: string }>("/api/auth/signin", { email, password: PASSWORD });
      const auth: Auth = { id, role, custom: {} };
      return {
        name: id,
        client: platform.as(body.accessToken),
        auth,
        key: null,
        scopes: null,
        token: body.accessToken,
      };
    }),
  );
  callers = [
    { name: "nobody", client: platform, auth: null, key: null, scopes: null, token: null },
    ...people,
    { name: "root", client: platform.service, auth: null, key: platform.serviceKey, scopes: ["read"], token: null },
    { name: "hubs", client: platform.withKey(KEY), auth: null, key: KEY, scopes: [], token: null },
  ];
  expect((await platform.service.post(`${base}/hubs`, { id: "h" })).status).toBe(201);
  for (const { name, records } of tables) {
    const all = [
      [`${base}/${name}`, records.map((record) => ({ ...record, hub: "h", hubs: ["h"] }))],
      [`${base}/refs_${name}`, records.map(({ id }) => ({ id: `to-${id}`, to: id, hub: "h" }))],
      [`${base}/refs_${name}`, [{ id: "all", all: records.map(({ id }) => id).reverse() }]],
      [`${board}/refs_${name}`, records.map(({ id }) => ({ id: `to-${id}`, to: id }))],
      [`${board}/refs_${name}`, [{ id: "all", all: records.map(({ id }) => id).reverse() }]],
    ] as const;
    for (const [table, inserts] of all) {
      const answer = await platform.service.post(`${table}/batch`, { inserts: inserts as JsonObject[] });
      expect([table, answer.status]).toEqual([table, 200]);
    }
  }
});
afterAll(() => platform.stop());

type Related = { items: (JsonObject & { expand?: Record<string, JsonObject | null> })[]; hasMore: boolean };
type Expanded = JsonObject & { expand: Record<string, Related> };

/** Ways to the records of a table along references; each answers with the ids that it shows. */
const WAYS: Record<string, (name: string) => { path: string; ids(body: JsonObject): unknown[] }> = {
  "the records that a list refers to": (name) => ({
    path: `${base}/refs_${name}?expand=to`,
    ids: (body) => (body as unknown as Related).items.flatMap(({ expand }) => expand?.["to"]?.["id"] ?? []),
  }),
  "the record that a record refers to": (name) => ({
    path: `${base}/refs_${name}/to-r0?expand=to`,
    ids: (body) => [(body as { expand: Record<string, JsonObject> }).expand["to"]?.["id"] ?? []].flat(),
  }),
  "the records that refer to a record": (name) => ({
    path: `${base}/hubs/h?expand=${name}(hub)`,
    ids: (body) => (body as Expanded).expand[`${name}(hub)`]?.items.map(({ id }) => id) ?? [],
  }),
  "the records that one refers to by several references": (name) => ({
    path: `${base}/refs_${name}/all?expand=all`,
    ids: (body) =>
      (body as { expand: Record<string, JsonObject[]> }).expand["all"]?.map(({ id }) => id).reverse() ?? [],
  }),
  "the records that refer to one by several references": (name) => ({
    path: `${base}/hubs/h?expand=${name}(hubs)`,
    ids: (body) => (body as Expanded).expand[`${name}(hubs)`]?.items.map(({ id }) => id) ?? [],
  }),
  "the records of another file that a list refers to": (name) => ({
    path: `${board}/refs_${name}?expand=to`,
    ids: (body) => (body as unknown as Related).items.flatMap(({ expand }) => expand?.["to"]?.["id"] ?? []),
  }),
  "the records of another file that one refers to": (name) => ({
    path: `${board}/refs_${name}/all?expand=all`,
    ids: (body) =>
      (body as { expand: Record<string, JsonObject[]> }).expand["all"]?.map(({ id }) => id).reverse() ?? [],
  }),
  "two steps": (name) => ({
    path: `${base}/hubs?expand=refs_${name}(hub).to`,
    ids: (body) => {
      const [hub] = (body as unknown as { items: Expanded[] }).items;
      return hub?.expand[`refs_${name}(hub)`]?.items.flatMap(({ expand }) => expand?.["to"]?.["id"] ?? []) ?? [];
    },
  }),
};

test(`[TB404] [TB912] expanded records are decided like records that are read by themselves (seed ${SEED})`, async () => {
  let hiddenCount = 0;
  for (const { name, read, records } of tables) {
    for (const caller of callers) {
      const isReadable = (record: JsonObject): boolean =>
        caller.scopes === null ? covers(read, caller.auth, record) : caller.scopes.includes("read");
      const readable = records.filter(isReadable).map(({ id }) => String(id));
      hiddenCount += records.length - readable.length;
      for (const [way, of] of Object.entries(WAYS)) {
        const { path, ids } = of(name);
        const must = way === "the record that a record refers to" ? readable.filter((id) => id === "r0") : readable;
        const heard = await ask(caller, "GET", path);
        const about = { way, table: name, read: read?.source, caller: caller.name };
        expect({ ...about, status: heard.status, ids: ids(heard.body) }).toEqual({ ...about, status: 200, ids: must });
        expect({ ...about, secrets: heard.secretsOf }).toEqual({ ...about, secrets: must });
      }
    }
  }
  expect(hiddenCount).toBeGreaterThan(0);
});
