import { afterAll, beforeAll, expect, test } from "bun:test";
import { join } from "node:path";
import type { JsonObject } from "../../../src/kernel/json/json.ts";
import {
  type ListAnswer,
  signIn,
  type TestPlatform,
  temporaryDirectory,
  testPlatform,
  until,
} from "../../support/index.ts";
import { attemptStart } from "../../support/start-attempt.ts";
import { connect, subscribe } from "./realtime-support.ts";

// Relations in lookups of rules, and in the filters of triggers and webhooks.

const CONFIG = `import { field, none, not, some } from "platform";
const text = { type: "string" };
const open = () => [["teamId", "==", field("teamId")], ["isOpen", "==", true]];
const log = (trigger) => ({ app, event, after, before }) => app.db("log").table("runs").insert({ trigger, event, docId: (after ?? before).id });
export default {
  databases: {
    log: { tables: { runs: {} } },
    shared: { tables: {
      teams: { schema: { teamId: { ...text, unique: true }, isOpen: { type: "boolean" } }, access: {} },
      members: { schema: { teamId: text, userId: text }, indexes: [{ fields: ["userId"] }], access: { insert: true } },
      docs: {
        schema: { teamId: text, title: text },
        access: {
          read: (auth, _record, context) => auth !== null && context.table("members").exists([["userId", "==", auth.id], some("teams", open())]) && [],
          insert: (auth, record, context) => {
            const members = context.table("members").list([["userId", "==", auth.id], some("teams", open())]);
            return members.some(({ teamId }) => teamId === record.teamId);
          },
        },
      },
      wrong: { schema: {}, access: { read: (auth, _record, context) => context.table("members").exists([["userId", "==", "a"], some("nobody", [])]) && [] } },
    } },
  },
  triggers: {
    inOpen: { on: { table: "shared.docs" }, filter: [some("teams", open())], run: log("inOpen") },
    inClosed: { on: { table: "shared.docs" }, filter: not(some("teams", open())), run: log("inClosed") },
    wide: { on: { table: "shared.docs", events: ["insert"] }, filter: [["title", "==", "wide"], none("members", [["userId", "==", "crowd"], ["teamId", "==", field("id")]])], run: log("wide") },
  },
};`;

let platform: TestPlatform;
beforeAll(async () => {
  platform = await testPlatform({ config: CONFIG });
});
afterAll(() => platform.stop());

const PATH = "/api/db/shared/tables";
const insert = async (table: string, record: JsonObject) =>
  expect((await platform.service.post(`${PATH}/${table}`, record)).status).toBe(201);
const setOpen = (teamId: string, isOpen: boolean) =>
  platform.service.post(`${PATH}/teams?upsert=true&conflictTarget=teamId`, { teamId, isOpen });
const runsOf = async (docId: string) => {
  const filter = JSON.stringify([["docId", "==", docId]]);
  const { body } = await platform.service.get<ListAnswer>("/api/db/log/tables/runs", { query: { filter } });
  return body.items.map(({ trigger, event }) => `${trigger} ${event}`).sort();
};

test("[TB608] a lookup of a rule takes relations, and sees what they depend on change", async () => {
  const ann = await signIn(platform);
  const read = async () => (await platform.as(ann.token).get(`${PATH}/docs`)).status;
  const write = async (teamId: string) => (await platform.as(ann.token).post(`${PATH}/docs`, { teamId })).status;
  await insert("members", { teamId: "t1", userId: ann.id });
  expect([await read(), await write("t1")]).toEqual([403, 403]);
  await setOpen("t1", true);
  expect([await read(), await write("t1"), await write("t2")]).toEqual([200, 201, 403]);
  await setOpen("t1", false);
  expect([await read(), await write("t1")]).toEqual([403, 403]);
});

test("[TB608] inside of a batch a relation of a lookup sees what the batch has written", async () => {
  const ann = await signIn(platform);
  await setOpen("t3", true);
  const doc = (id: string, teamId: string) => ({ table: "docs", action: "insert", data: { id, teamId } });
  const join = { table: "members", action: "insert", data: { teamId: "t3", userId: ann.id } };
  const run = async (...operations: JsonObject[]) =>
    (await platform.as(ann.token).post("/api/db/shared/transaction", { operations })).status;
  expect(await run(doc("early", "t3"), join)).toBe(403);
  expect(await run(join, doc("in-t3", "t3"))).toBe(200);
  expect(await run(doc("again", "t3"), doc("in-t4", "t4"))).toBe(403);
  const { body } = await platform.service.get<ListAnswer>(`${PATH}/docs`, {
    query: { filter: JSON.stringify([["teamId", "in", ["t3", "t4"]]]) },
  });
  expect(body.items.map(({ id }) => id)).toEqual(["in-t3"]);
});

test("[TB608] [RT224] a subscription ends with what the relation of a lookup finds", async () => {
  const ann = await signIn(platform);
  await insert("members", { teamId: "t5", userId: ann.id });
  await setOpen("t5", true);
  const socket = await connect(platform, ann);
  await subscribe(socket, "realtime:shared:docs");
  await insert("docs", { id: "d1", teamId: "t5" });
  await socket.expect({ type: "db_change", changeType: "added", docId: "d1" });
  await setOpen("t5", false);
  await socket.expect({ type: "auth_refreshed", revokedChannels: ["realtime:shared:docs"] });
  await insert("docs", { id: "d2", teamId: "t5" });
  await setOpen("t5", true);
  await subscribe(socket, "realtime:shared:docs");
  await insert("docs", { id: "d3", teamId: "t5" });
  await socket.expect({ type: "db_change", changeType: "added", docId: "d3" });
  await socket.close();
});

test("[TB608] an unknown table in a relation of a lookup denies, and the log names it", async () => {
  const ann = await signIn(platform);
  expect((await platform.as(ann.token).get(`${PATH}/wrong`)).status).toBe(403);
  expect(platform.stderr()).toContain("nobody is not a table of shared");
});

test("[TB609] [TG4] a trigger's relation is asked in the transaction of the change", async () => {
  await setOpen("t7", true);
  await insert("docs", { id: "a", teamId: "t7" });
  await insert("docs", { id: "b", teamId: "t8" });
  // In one transaction: the team opens with its document, and closes again.
  const transaction = (operations: JsonObject[]) => platform.service.post("/api/db/shared/transaction", { operations });
  const opened = await transaction([
    { table: "teams", action: "insert", data: { teamId: "t9", isOpen: true } },
    { table: "docs", action: "insert", data: { id: "c", teamId: "t9" } },
  ]);
  expect(opened.status).toBe(200);
  await setOpen("t7", false);
  expect((await platform.service.patch(`${PATH}/docs/a`, { title: "new" })).status).toBe(200);
  expect((await platform.service.delete(`${PATH}/docs/c`)).status).toBe(200);
  await until(
    "all have run",
    async () => (await runsOf("a")).length + (await runsOf("b")).length + (await runsOf("c")).length === 5,
  );
  expect([await runsOf("a"), await runsOf("b"), await runsOf("c")]).toEqual([
    ["inClosed update", "inOpen insert"],
    ["inClosed insert"],
    ["inOpen delete", "inOpen insert"],
  ]);
});

test("[TB609] a relation that would examine more than 10,000 records fails the write", async () => {
  const members = Array.from({ length: 10_001 }, (_, n) => ({ teamId: `many${n}`, userId: "crowd" }));
  for (let from = 0; from < members.length; from += 500) {
    const operations = { inserts: members.slice(from, from + 500) };
    expect((await platform.service.post(`${PATH}/members/batch`, operations)).status).toBe(200);
  }
  const failed = await platform.service.post(`${PATH}/docs`, { id: "w", title: "wide" });
  expect(failed.status).toBe(500);
  expect((await platform.service.get(`${PATH}/docs/w`)).status).toBe(404);
  expect(platform.stderr()).toContain("would examine more than 10000 records");
});

for (const [what, on, filter, problem] of [
  ["an unknown table", `{ table: "shared.docs" }`, `[some("nobody", [])]`, "nobody is not a table of shared"],
  [
    "no index",
    `{ table: "shared.docs" }`,
    `[some("docs", [["title", "==", field("title")]])]`,
    "no index of docs answers it",
  ],
  ["a file", `{ bucket: "files" }`, `[some("docs", [["id", "==", field("key")]])]`, "or, and or not"],
] as const) {
  test(`[TB609] [TG17] a trigger whose relation names ${what} fails the start`, async () => {
    const config = `import { field, some } from "platform";
    export default {
      storage: { buckets: { files: {} } },
      databases: { shared: { tables: { docs: { schema: { title: { type: "string" } } } } } },
      triggers: { t: { on: ${on}, filter: ${filter}, run: () => {} } },
    };`;
    const directory = temporaryDirectory();
    const configFile = join(directory, "platform.config.ts");
    await Bun.write(configFile, config);
    const { exitCode, stderr } = await attemptStart({ configFile, dataDirectory: join(directory, "data") });
    expect([exitCode, stderr]).toEqual([1, expect.stringContaining(problem)]);
  });
}
