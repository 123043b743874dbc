import { afterAll, beforeAll, expect, test } from "bun:test";
import type { JsonObject } from "../../../src/kernel/json/json.ts";
import { type HttpClient, type SignedIn, signIn, type TestPlatform, testPlatform } from "../../support/index.ts";

let platform: TestPlatform;
let ann: SignedIn;
let eve: SignedIn;
const path = (table: string) => `/api/db/shared/tables/${table}`;
/** Tables whose rules allow only the owner to change a record, each in another form. */
const OWNED = [
  "byRecord",
  "byFilter",
  "byAwaiting",
  "byEmptyFilter",
  "byUpdateAlone",
  "byWrapped",
  "sameRule",
  "fitting",
];
/** Tables whose read rule hides the record. */
const HIDDEN = ["hiddenByFilter", "hiddenByRecord", "hiddenByAwaiting", "hiddenFromAuthAlone", "unread"];

beforeAll(async () => {
  platform = await testPlatform({
    config: `
      import { defineConfig, Refusal } from "platform";
      const schema = { owner: { type: "string" }, slug: { type: "string", unique: true }, title: { type: "string" } };
      const own = (auth, record) => auth !== null && record.owner === auth.id;
      const ownAwaited = async (auth, record) => { await Bun.sleep(1); return own(auth, record); };
      const ownFilter = (auth) => auth !== null && [["owner", "==", auth.id]];
      const signedIn = (auth) => auth !== null;
      const hooks = { beforeUpdate(auth, record) { if (auth !== null && record.owner !== auth.id) throw new Refusal("a hook saw " + record.title); } };
      const t = (access) => ({ schema, access, hooks });
      export default defineConfig({ databases: { shared: { tables: {
        byRecord: t({ read: true, insert: own, update: own }),
        byFilter: t({ read: true, insert: signedIn, update: ownFilter }),
        byAwaiting: t({ read: true, insert: ownAwaited, update: ownAwaited }),
        byEmptyFilter: t({ read: true, insert: (auth) => [], update: (auth) => auth?.role === "admin" }),
        byUpdateAlone: t({ read: true, insert: signedIn, update: own }),
        byWrapped: t({ read: true, insert: signedIn, update: (...args) => own(...args) }),
        sameRule: t({ read: true, insert: ownFilter, update: ownFilter }),
        fitting: t({ read: true, insert: signedIn, update: (auth) => auth?.role === "admin", upsert: "matching" }),
        hiddenByFilter: t({ read: ownFilter, insert: own, update: (auth, record) => true }),
        hiddenByRecord: t({ read: own, insert: signedIn, update: (auth, record) => true }),
        hiddenByAwaiting: t({ read: ownAwaited, insert: own, update: async (auth, record) => true }),
        hiddenFromAuthAlone: t({ read: ownFilter, insert: signedIn, update: (auth) => auth?.role === "admin" }),
        unread: t({ insert: own, update: (auth, record) => true }),
        authAlone: { schema, access: { read: true, insert: signedIn, update: false } },
        either: { schema, access: { read: true, insert: own, update: own, upsert: "either" } },
      } } } });`,
  });
  ann = await signIn(platform, { email: "ann@example.com" });
  eve = await signIn(platform, { email: "eve@example.com" });
});
afterAll(() => platform.stop());

/** All kinds of upserts. */
const upserts = (client: HttpClient, table: string, record: JsonObject) => [
  () => client.post(`${path(table)}?upsert=true`, record),
  () => client.post(`${path(table)}/batch?upsert=true`, { inserts: [record] }),
  () => client.post(`${path(table)}?upsert=true&conflictTarget=slug`, record),
];

for (const table of [...OWNED, ...HIDDEN]) {
  test(`[TB35, TB140] an upsert does not take over records of others: ${table}`, async () => {
    const victim = { id: "victim", slug: "victim", owner: ann.id, title: "the secret title" };
    await platform.service.post(path(table), victim);
    const before = (await platform.service.get(`${path(table)}/victim`)).body;
    for (const upsert of upserts(eve, table, { id: "victim", slug: "victim", owner: eve.id })) {
      const answer = await upsert();
      const text = JSON.stringify(answer.body);
      expect([answer.status, text.includes("secret")]).toEqual([403, false]);
      expect(text).toContain("Access denied");
    }
    for (const upsert of upserts(platform, table, { id: "victim", slug: "victim", owner: eve.id })) {
      expect((await upsert()).status).toBe(401);
    }
    expect((await platform.service.get(`${path(table)}/victim`)).body).toEqual(before);
    expect((await platform.service.post(`${path(table)}?upsert=true`, { id: "victim", title: "t" })).status).toBe(200);
  });
}

test("[TB140] a record that may not be read is refused with the same text as one that may not be changed", async () => {
  const answers: string[] = [];
  for (const [table, id] of [
    ["byRecord", "visible"],
    ["hiddenByFilter", "hidden"],
  ] as const) {
    await platform.service.post(path(table), { id, slug: id, owner: ann.id });
    const { status, body } = await eve.post(`${path(table)}?upsert=true`, { id, slug: id, owner: eve.id });
    answers.push(`${status} ${JSON.stringify(body)}`);
  }
  expect(answers[1]).toBe(String(answers[0]));
});

test("[TB35] the owner upserts by the fitting rule", async () => {
  for (const table of [
    "byRecord",
    "byFilter",
    "byAwaiting",
    "byUpdateAlone",
    "byWrapped",
    "hiddenByFilter",
    "hiddenByAwaiting",
  ]) {
    const statuses: number[] = [];
    for (const upsert of upserts(ann, table, {
      id: `own-${table}`,
      slug: `own-${table}`,
      owner: ann.id,
      title: "mine",
    })) {
      statuses.push((await upsert()).status);
    }
    expect([table, ...statuses]).toEqual([table, 201, 200, 200]);
  }
});

test("[TB35] where auth alone decides both rules, or the table has either, one of the two is enough", async () => {
  for (const table of ["authAlone", "either"]) {
    await platform.service.post(path(table), { id: "one", slug: "one", owner: ann.id });
    const answer = await eve.post(`${path(table)}?upsert=true`, { id: "one", owner: eve.id });
    expect([table, answer.status]).toEqual([table, 200]);
  }
});

test("[TB35, CL12] a start warns of a table with either, by its name", () => {
  const log = platform.stderr() + platform.stdout();
  expect(log).toContain('databases.shared.tables.either.access has upsert: \\"either\\"');
  expect(log).not.toContain("tables.byRecord.access");
});
