import { Database } from "bun:sqlite";
import { afterAll, beforeAll, expect, test } from "bun:test";
import { existsSync, readdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import type { JsonObject } from "../../../src/kernel/json/json.ts";
import { type HttpClient, type SignedIn, signIn, type TestPlatform, testPlatform } from "../../support/index.ts";

const KIB = 1024;
const QUOTA = 200 * KIB;
const OPEN = "{ read: true, insert: true, update: true, delete: true }";
const TABLES = `{
  notes: { schema: { text: { type: "text" }, n: { type: "integer" } }, access: ${OPEN}, maxRecordSize: ${1024 * KIB} },
  found: { schema: { text: { type: "text" } }, fts: ["text"], access: ${OPEN} },
  grown: { schema: { text: { type: "text" } }, access: ${OPEN}, hooks: { beforeInsert: (_auth, record) => ({ ...record, text: "x".repeat(300_000) }) } },
}`;
const configOf = ({ perInstance = QUOTA, perUser = 3 }: { perInstance?: number; perUser?: number | null } = {}) => {
  const instances = `instance: true, access: { create: (auth) => auth !== null, open: true }, tables: ${TABLES}`;
  return `{
    databases: {
      shared: { tables: { calls: { schema: { kind: { type: "string" }, instance: { type: "string" }, outcome: { type: "string" } }, hooks: {
        async beforeInsert(_auth, { kind, instance, ...rest }, app) {
          const db = app.db("sized", instance);
          const work = { insert: () => db.table("notes").insert({ text: "x".repeat(300_000) }),
            small: () => db.table("notes").insert({ text: "x" }),
            transaction: () => db.transaction((tx) => { tx.table("notes").insert({ text: "x".repeat(300_000) }); return null; }) };
          return { ...rest, kind, instance, outcome: await work[kind]().then(() => "done", (cause) => cause.message) };
        } } } } },
      sized: { ${instances}, quota: { perInstance: ${perInstance} } },
      owned: { ${instances}${perUser === null ? "" : `, quota: { instancesPerUser: ${perUser} }`} },
    },
  }`;
};

let platform: TestPlatform;
let ann: SignedIn;
let ben: SignedIn;
beforeAll(async () => {
  platform = await testPlatform({ config: configOf() });
  ann = await signIn(platform);
  ben = await signIn(platform);
}, 60_000);
afterAll(() => platform.stop());

const at = (instance: string, path = "tables/notes") => `/api/db/sized/${instance}/${path}`;
const text = (kib: number): string => "x".repeat(kib * KIB);
const totalOf = async (instance: string, table = "notes") =>
  (await platform.service.get<{ total: number }>(at(instance, `tables/${table}`))).body.total;
const folder = (namespace: string) => join(platform.dataDirectory, "databases", namespace);
const fileOf = (namespace: string, id: string) => join(folder(namespace), `${id}.db`);
const create = async (client: HttpClient, id: string): Promise<number> =>
  (await client.post(`/api/db/owned/${id}/tables/notes`, { text: "x" })).status;
const remove = (id: string) => platform.service.delete(`/api/admin/instances/owned/${id}`);

/** Returns the owners for whom instances are counted. */
function creators(): Record<string, string> {
  using sqlite = new Database(join(platform.dataDirectory, "system.db"), { readonly: true });
  const rows = sqlite
    .query<{ instanceId: string; userId: string }, []>("SELECT instanceId, userId FROM instance_creators")
    .all();
  return Object.fromEntries(rows.map(({ instanceId, userId }) => [instanceId, userId]));
}

test("[TB448] every way to write is 413 over perInstance, says what is used and allowed, and changes nothing", async () => {
  expect((await ann.post(at("ways"), { id: "a", text: text(100) })).status).toBe(201);
  const more = { text: text(150) };
  const ways: [string, (client: HttpClient) => Promise<{ status: number; body: unknown }>][] = [
    ["insert", (client) => client.post(at("ways"), more)],
    ["upsert", (client) => client.post(`${at("ways")}?upsert=true`, { id: "b", ...more })],
    ["update", (client) => client.patch(`${at("ways")}/a`, { text: text(250) })],
    ["batch", (client) => client.post(`${at("ways")}/batch`, { inserts: [{ text: text(75) }, { text: text(75) }] })],
    [
      "batch by filter",
      (client) =>
        client.post(`${at("ways")}/batch-by-filter`, {
          filter: [["id", "==", "a"]],
          action: "update",
          data: { text: text(250) },
        }),
    ],
    [
      "transaction",
      (client) =>
        client.post(at("ways", "transaction"), { operations: [{ action: "insert", table: "notes", data: more }] }),
    ],
    ["hook", (client) => client.post(at("ways", "tables/grown"), { text: "" })],
    ["search", (client) => client.post(at("ways", "tables/found"), { text: "x".repeat(95_000) })],
  ];
  for (const [name, way] of ways) {
    for (const client of [ann, platform.service]) {
      const refused = await way(client);
      const message = expect.stringMatching(
        /^An instance of "sized" may hold 204800 bytes: 1[2-9]\d{4} are in use, and this write needs \d{5,} more$/,
      );
      expect({ name, ...refused }).toMatchObject({
        name,
        status: 413,
        body: { message, data: { quota: { code: "quota_exceeded", message } } },
      });
    }
  }
  expect([await totalOf("ways"), await totalOf("ways", "grown"), await totalOf("ways", "found")]).toEqual([1, 0, 0]);
  const { body } = await ann.get<{ text: string }>(`${at("ways")}/a`);
  expect(body.text).toHaveLength(100 * KIB);
});

test("[TB448] code of the config is refused as well", async () => {
  const call = async (kind: string) =>
    (await platform.service.post<{ outcome: string }>("/api/db/shared/tables/calls", { kind, instance: "code" })).body
      .outcome;
  expect(await call("insert")).toContain("may hold 204800 bytes");
  expect(existsSync(fileOf("sized", "code"))).toBe(false);
  expect(await call("small")).toBe("done");
  for (const kind of ["insert", "transaction"]) expect(await call(kind)).toContain("may hold 204800 bytes");
});

test("[TB448] a refused first write creates no instance", async () => {
  expect((await ann.post(at("never"), { text: text(300) })).status).toBe(413);
  expect(existsSync(fileOf("sized", "never"))).toBe(false);
});

test("[TB448] of writes at once only those pass that fit together", async () => {
  await ann.post(at("race"), { text: "x" });
  const answers = await Promise.all(Array.from({ length: 12 }, () => ann.post(at("race"), { text: text(40) })));
  const passed = answers.filter(({ status }) => status === 201).length;
  expect(answers.filter(({ status }) => status === 413)).toHaveLength(12 - passed);
  expect([passed > 1, passed * 40 * KIB < QUOTA]).toEqual([true, true]);
  expect(await totalOf("race")).toBe(passed + 1);
});

test("[TB449] what was deleted gives back, and a write that needs no more room is never refused", async () => {
  const fill = (id: string) => ann.post(at("back"), { id, text: text(50), n: 0 });
  expect([(await fill("a")).status, (await fill("b")).status, (await fill("c")).status]).toEqual([201, 201, 413]);
  expect((await ann.delete(`${at("back")}/a`)).status).toBe(200);
  expect((await fill("c")).status).toBe(201);
  // The quota becomes smaller than what is there.
  await platform.restart({ config: configOf({ perInstance: 64 * KIB }) });
  expect((await ann.post(at("back"), { text: text(20) })).status).toBe(413);
  expect((await ann.patch(`${at("back")}/b`, { n: 1 })).status).toBe(200);
  expect((await ann.patch(`${at("back")}/b`, { text: text(45) })).status).toBe(200);
  const deletion = { "Idempotency-Key": "a-key-of-a-deletion" };
  const deleted = await ann.fetch(`${at("back")}/batch`, {
    method: "POST",
    headers: { ...deletion, "Content-Type": "application/json" },
    body: JSON.stringify({ deletes: ["b"] }),
  });
  expect(deleted.status).toBe(200);
  expect((await ann.delete(`${at("back")}/c`)).status).toBe(200);
  expect((await ann.post(at("back"), { text: "small" })).status).toBe(201);
  await platform.restart({ config: configOf() });
});

test("[TB450] a user creates as many instances as allowed; service keys and the server any number", async () => {
  expect([await create(ann, "a1"), await create(ann, "a2"), await create(ann, "a3")]).toEqual([201, 201, 201]);
  const refused = await ann.post<JsonObject>("/api/db/owned/a4/tables/notes", { text: "x" });
  const message = 'The user has created 3 of at most 3 instances of "owned"';
  expect(refused).toMatchObject({
    status: 413,
    body: { message, data: { quota: { code: "quota_exceeded", message } } },
  });
  expect(existsSync(fileOf("owned", "a4"))).toBe(false);
  // Existing ones go on, whoever has created them.
  expect([await create(ann, "a1"), await create(ben, "a1"), await create(ben, "b1"), await create(ann, "b1")]).toEqual([
    ...[201, 201, 201, 201],
  ]);
  for (const id of ["s1", "s2", "s3", "s4"]) expect(await create(platform.service, id)).toBe(201);
  expect(creators()).toEqual({ a1: ann.id, a2: ann.id, a3: ann.id, b1: ben.id });
  // A key that acts as a user counts for the user.
  const acting = await platform.service.fetch("/api/db/owned/a4/tables/notes", {
    method: "POST",
    headers: { "X-Platform-Act-As": ann.id, "Content-Type": "application/json" },
    body: JSON.stringify({ text: "x" }),
  });
  expect(acting.status).toBe(413);
});

test("[TB450] a deleted instance gives back, to its creator", async () => {
  expect(await create(ann, "more")).toBe(413);
  expect((await remove("a1")).status).toBe(200);
  expect(await create(ben, "a1")).toBe(201);
  expect(await create(ann, "more")).toBe(201);
  expect(await create(ann, "evenmore")).toBe(413);
  expect(creators()).toEqual({ a1: ben.id, a2: ann.id, a3: ann.id, b1: ben.id, more: ann.id });
  for (const id of ["a1", "a2", "a3", "b1", "more"]) expect((await remove(id)).status).toBe(200);
  expect(creators()).toEqual({});
});

test("[TB451] of creations at once only as many pass as are allowed, and refused ones leave nothing", async () => {
  for (let round = 0; round < 4; round++) {
    const ids = Array.from({ length: 10 }, (_, index) => `race${round}-${index}`);
    const statuses = await Promise.all(ids.map((id) => create(ann, id)));
    expect(statuses.filter((status) => status === 201)).toHaveLength(3);
    expect(statuses.filter((status) => status === 413)).toHaveLength(7);
    expect(Object.keys(creators()).toSorted()).toEqual(
      readdirSync(folder("owned"))
        .filter((name) => name.startsWith("race") && name.endsWith(".db"))
        .map((name) => name.slice(0, -3))
        .toSorted(),
    );
    for (const id of Object.keys(creators())) await remove(id);
  }
});

test("[TB451] two users who create the same instance at once: it counts for one of them", async () => {
  for (let round = 0; round < 5; round++) {
    expect(await Promise.all([ann, ben, ann, ben].map((user) => create(user, "both")))).toEqual([201, 201, 201, 201]);
    expect(Object.keys(creators())).toEqual(["both"]);
    await remove("both");
  }
  expect(creators()).toEqual({});
});

test("[TB451] creations and deletions of one instance at once leave the count right", async () => {
  for (let round = 0; round < 5; round++) {
    const work = [create(ann, "flux"), remove("flux"), create(ben, "flux"), remove("flux"), create(ann, "flux")];
    await Promise.all(work);
    expect([Object.keys(creators()).includes("flux")]).toEqual([existsSync(fileOf("owned", "flux"))]);
    await remove("flux");
  }
});

test("[TB452] counts survive a SIGKILL; one without an instance refuses nobody", async () => {
  for (const id of ["k1", "k2", "k3"]) expect(await create(ann, id)).toBe(201);
  await platform.kill("SIGKILL");
  // As if it had been killed between the count and the file, or between the removal of a file and its count.
  for (const name of readdirSync(folder("owned"))) if (name.startsWith("k2.db")) rmSync(join(folder("owned"), name));
  await platform.restart();
  expect(await create(ann, "k4")).toBe(201);
  expect(await create(ann, "k5")).toBe(413);
  expect(creators()).toEqual({ k1: ann.id, k3: ann.id, k4: ann.id });
  // What was counted stays right while the quota is not declared.
  await platform.restart({ config: configOf({ perUser: null }) });
  expect(await create(ann, "k5")).toBe(201);
  expect((await remove("k1")).status).toBe(200);
  expect(await create(ben, "k1")).toBe(201);
  await platform.restart({ config: configOf() });
  expect(creators()).toEqual({ k3: ann.id, k4: ann.id });
  expect([await create(ann, "k6"), await create(ann, "k7")]).toEqual([201, 413]);
});
