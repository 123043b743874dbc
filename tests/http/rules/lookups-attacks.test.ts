import { afterAll, beforeAll, expect, test } from "bun:test";
import type { JsonObject } from "../../../src/kernel/json/json.ts";
import { type ListAnswer, type SignedIn, signIn, type TestPlatform, testPlatform, until } from "../../support/index.ts";
import { postInTwo } from "../../support/split-request.ts";

let platform: TestPlatform;
let ann: SignedIn;

const CONFIG = `
  const isMember = (auth, table) => auth !== null && table("members").get(auth.id) !== null;
  const mine = (auth, table) => isMember(auth, table) ? [["isOpen", "==", true]] : false;
  const said = (rule, isAllowed) => (console.error(rule + ": " + isAllowed), isAllowed);
  export default { databases: { rooms: {
    instance: true,
    access: {
      create: (auth, _room, { db }) => said("create", isMember(auth, db("teams").table)),
      open: (auth, _room, { table }) => said("open", isMember(auth, table)),
    },
    tables: { members: {}, notes: { access: { read: true, insert: true } } },
  }, teams: { tables: { members: {} } }, shared: { tables: {
    notes: {
      schema: { text: { type: "string" } },
      access: {
        read: true,
        insert: (auth, _note, { db }) => said("insert", isMember(auth, db("teams").table)),
      },
    },
    members: { schema: {}, access: { insert: true, delete: true, read: true } },
    projects: {
      schema: { isOpen: { type: "boolean" } },
      access: { read: async (auth, _project, { table }) => mine(auth, table) || [["isOpen", "==", false]] },
    },
    tasks: { schema: { projectId: { type: "string", references: "projects" } }, access: { read: true, insert: true } },
    accounts: {
      schema: { balance: { type: "integer", max: 1000 }, ownerId: { type: "string" } },
      access: {
        read: (auth, account) => account.ownerId === auth?.id,
        update: (auth, account) => account.ownerId === auth?.id,
      },
    },
    admins: { schema: {}, access: { insert: true, delete: true } },
    papers: {
      schema: { ownerId: { type: "string" }, text: { type: "string" } },
      access: {
        read: async (auth, _paper, { table }) => table("admins").get(auth?.id ?? "") !== null || [["ownerId", "==", auth?.id ?? ""]],
        update: true,
        delete: true,
      },
    },
    counters: {
      schema: { n: { type: "integer", max: 10 } },
      access: { update: true },
    },
  } } } };`;

beforeAll(async () => {
  platform = await testPlatform({ config: CONFIG });
  ann = await signIn(platform);
});
afterAll(() => platform.stop());

const tables = "/api/db/shared/tables";
const insert = async (table: string, record: JsonObject): Promise<void> => {
  expect((await platform.service.post(`${tables}/${table}`, record)).status).toBe(201);
};
const increment = (value: number) => ({ balance: { $op: "increment", value } });

test("[TB113] an increment beyond a field's bounds tells nothing of a record that may be neither read nor changed", async () => {
  await insert("accounts", { id: "hers", balance: 700, ownerId: "somebody" });
  await insert("accounts", { id: "own", balance: 700, ownerId: ann.id });
  const patch = (id: string, value: number) => ann.patch(`${tables}/accounts/${id}`, increment(value));
  const [within, beyond] = [await patch("hers", 300), await patch("hers", 301)];
  expect([within.status, beyond.status]).toEqual([403, 403]);
  expect(beyond.body).toEqual(within.body);
  expect((await patch("own", 301)).status).toBe(400);
  expect((await patch("own", 300)).body["balance"]).toBe(1000);
  for (const [path, bodyOf] of [
    ["/accounts/batch", (value: number) => ({ updates: [{ id: "hers", data: increment(value) }] })],
    [
      "/transaction",
      (value: number) => ({
        operations: [{ table: "accounts", action: "update", id: "hers", data: increment(value) }],
      }),
    ],
  ] as const) {
    const url = path === "/transaction" ? "/api/db/shared/transaction" : tables + path;
    const answers = [await ann.post(url, bodyOf(300)), await ann.post(url, bodyOf(301))];
    expect(answers.map(({ status }) => status)).toEqual([403, 403]);
    expect(answers[1]?.body).toEqual(answers[0]?.body ?? {});
  }
});

test("[TB113] who may change every record and read none is told nothing of where an increment leads", async () => {
  await insert("counters", { id: "c", n: 9 });
  const increment = () => ann.patch(`${tables}/counters/c`, { n: { $op: "increment", value: 1 } });
  const first = await increment();
  await platform.service.patch(`${tables}/counters/c`, { n: 10 });
  const second = await increment();
  expect([first.status, second.status]).toEqual([403, 403]);
  expect(second.body).toEqual(first.body);
});

test("[TB68] each reference of a transaction is decided by what the operations before it did, also by an awaited rule", async () => {
  await insert("projects", { id: "open", isOpen: true });
  const task = (id: string) => ({ table: "tasks", action: "insert", data: { id, projectId: "open" } });
  const member = { table: "members", action: "insert", data: { id: ann.id } };
  const leave = { table: "members", action: "delete", id: ann.id };
  const transact = (...operations: JsonObject[]) => ann.post("/api/db/shared/transaction", { operations });
  const refused = await transact(task("t0"), member);
  expect([refused.status, Object.keys((refused.body["data"] ?? {}) as object)]).toEqual([
    400,
    ["operations.0.data.projectId"],
  ]);
  expect((await transact(member, task("t1"))).status).toBe(200);
  const left = await transact(task("t2"), leave, task("t3"));
  expect([left.status, Object.keys((left.body["data"] ?? {}) as object)]).toEqual([
    400,
    ["operations.2.data.projectId"],
  ]);
  expect((await transact(task("t4"), leave)).status).toBe(200);
  expect((await transact(task("t5"))).status).toBe(400);
});

test("[TB204] [TB48] who may read every record by a lookup, and loses that, changes no record that is hidden by then", async () => {
  await insert("papers", { id: "hers", ownerId: "somebody", text: "hers" });
  await insert("papers", { id: "mine", ownerId: ann.id, text: "mine" });
  const admin = { table: "admins", action: "insert", data: { id: ann.id } };
  const demoted = { table: "admins", action: "delete", id: ann.id };
  const changed = (id: string) => ({ table: "papers", action: "update", id, data: { text: "changed" } });
  const deleted = (id: string) => ({ table: "papers", action: "delete", id });
  const transact = async (...operations: JsonObject[]) =>
    (await ann.post("/api/db/shared/transaction", { operations })).status;
  expect(await transact(changed("hers"))).toBe(404);
  expect(await transact(admin)).toBe(200);
  expect(await transact(demoted, changed("hers"))).toBe(404);
  expect(await transact(demoted, deleted("hers"))).toBe(404);
  expect(await transact(demoted, admin, changed("hers"), demoted, changed("mine"))).toBe(200);
  const { items } = (await platform.service.get<ListAnswer>(`${tables}/papers`)).body;
  expect(items.map(({ text }) => text)).toEqual(["changed", "changed"]);
});

/** Posts a note whose body ends after `meanwhile`, which begins when a rule has been asked, as it says. Gives the status. */
async function postSlowly(
  path: string,
  asked: string,
  meanwhile: () => Promise<unknown>,
  others: Readonly<Record<string, string>> = {},
): Promise<number> {
  // The start tries the rules as well.
  const timesSaid = (text: string) => platform.stderr().split(text).length;
  const saidBefore = timesSaid(asked);
  const [begin, rest] = ['{"text":', '"late"}'];
  const headers = { authorization: `Bearer ${ann.token}`, ...others };
  const request = postInTwo(platform.url + path, { headers, begin, restBytes: rest.length });
  await until("the rule has been asked", () => timesSaid(asked) > saidBefore);
  await meanwhile();
  return request.end(rest);
}

test("[TB203] [TB204] a right that a rule looked up in another file is gone when it is lost while the body comes", async () => {
  const member = "/api/db/teams/tables/members";
  expect((await platform.service.post(member, { id: ann.id })).status).toBe(201);
  const left = () => platform.service.delete(`${member}/${ann.id}`);
  expect(await postSlowly(`${tables}/notes`, "insert: true", left)).toBe(403);
  expect((await ann.get<ListAnswer>(`${tables}/notes`)).body.total).toBe(0);
});

test("[TB204] an instance is closed to who loses the right to open it while the body comes", async () => {
  const room = "/api/db/rooms/one/tables";
  expect((await platform.service.post(`${room}/members`, { id: ann.id })).status).toBe(201);
  const left = () => platform.service.delete(`${room}/members/${ann.id}`);
  expect(await postSlowly(`${room}/notes`, "open: true", left)).toBe(403);
  expect((await platform.service.get<ListAnswer>(`${room}/notes`)).body.total).toBe(0);
});

test("[TB204] no instance is created by who loses the right to create it while the body comes", async () => {
  const [room, member] = ["/api/db/rooms/new/tables", "/api/db/teams/tables/members"];
  const left = () => platform.service.delete(`${member}/${ann.id}`);
  await left();
  expect((await platform.service.post(member, { id: ann.id })).status).toBe(201);
  expect(await postSlowly(`${room}/notes`, "create: true", left)).toBe(403);
  expect((await platform.service.get<JsonObject>("/api/admin/instances/rooms?prefix=new")).body["instances"]).toEqual(
    [],
  );
  await platform.service.post(member, { id: ann.id });
  expect(await postSlowly(`${room}/notes`, "create: true", async () => {})).toBe(201);
});

test("[TB326] [TB204] no replay of an instance for who loses the right to open it while the body comes", async () => {
  const room = "/api/db/rooms/replayed/tables";
  expect((await platform.service.post(`${room}/members`, { id: ann.id })).status).toBe(201);
  const post = (meanwhile: () => Promise<unknown>) =>
    postSlowly(`${room}/notes`, "open: true", meanwhile, { "idempotency-key": "once" });
  expect(await post(async () => {})).toBe(201);
  expect(await post(async () => {})).toBe(201);
  expect(await post(() => platform.service.delete(`${room}/members/${ann.id}`))).toBe(403);
  expect((await platform.service.get<ListAnswer>(`${room}/notes`)).body.total).toBe(1);
});
