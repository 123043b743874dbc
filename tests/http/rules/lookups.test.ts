import { afterAll, beforeAll, expect, test } from "bun:test";
import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { type ListAnswer, type SignedIn, signIn, type TestPlatform, testPlatform, until } from "../../support/index.ts";

let platform: TestPlatform;
let ann: SignedIn;
let bob: SignedIn;
let eve: SignedIn;
const team = (table: string, id = "one") => `/api/db/teams/${id}/tables/${table}`;
const shared = (table: string) => `/api/db/shared/tables/${table}`;

const CONFIG = `
  const role = (auth, { table }) => table("members").get(auth?.id ?? "")?.role;
  const projects = (auth, { db }) => db("shared").table("memberships").list([["userId", "==", auth.id]]).map((m) => m.projectId);
  export default {
    databases: {
      teams: {
        instance: true,
        access: {
          create: (auth, id, { table, namespace, instanceId }) =>
            auth !== null && namespace === "teams" && instanceId === id && table("members").get(auth.id) === null,
          open: (auth, id, { table }) => auth !== null && table("members").get(auth.id) !== null,
        },
        tables: {
          members: {
            schema: { role: { type: "string", required: true } },
            indexes: [{ fields: ["role"] }],
            access: {
              read: true,
              insert: (auth, member, context) =>
                role(auth, context) === "owner" ||
                (member.id === auth.id && member.role === "owner" && !context.table("members").exists([["role", "==", "owner"]])),
              update: (auth, _member, _next, context) => role(auth, context) === "owner",
              delete: (auth, _member, context) => role(auth, context) === "owner",
            },
          },
          tasks: {
            schema: { title: { type: "string" } },
            fts: ["title"],
            access: {
              read: true,
              insert: (auth, _task, context) => ["owner", "editor"].includes(role(auth, context)),
              update: (auth, _task, _next, context) => ["owner", "editor"].includes(role(auth, context)),
            },
          },
        },
      },
      shared: { tables: {
        memberships: {
          schema: { userId: { type: "string" }, projectId: { type: "string" }, note: { type: "json" } },
          indexes: [{ fields: ["userId"] }],
          access: { read: true, insert: true, delete: true },
        },
        issues: {
          schema: { projectId: { type: "string" }, title: { type: "string" } },
          fts: ["title"],
          access: {
            read: (auth, _issue, context) => auth !== null && [["projectId", "in", projects(auth, context)]],
            insert: true,
            update: async (auth, issue, next, context) => projects(auth, context).includes(issue.projectId),
          },
        },
        noIndex: { access: { read: (auth, _r, { table }) => table("memberships").list([["projectId", "==", "p"]]).length >= 0 } },
        noFilter: { access: { read: (auth, _r, { table }) => table("memberships").list([]).length >= 0 } },
        noTable: { access: { read: (auth, _r, { table }) => table("nothing").get("x") === null } },
        noInstance: { access: { read: (auth, _r, { db }) => db("teams").table("members").get("x") === null } },
        elsewhere: { access: { read: (auth, _r, { db }) =>
          ["none", "../shared", "tables", ""].every((id) => db("teams", id).table("members").get("x") === null) } },
        changing: { access: { read: (auth, _r, { table }) => {
          const [one] = table("memberships").list([["userId", "==", auth.id]]);
          if (one !== undefined) one.note.deep = 5;
          return true;
        } } },
        repeating: { access: { read: (auth, _r, { table }) => {
          const first = table("memberships").get("m");
          for (let n = 0; n < 10_001; n++) if (table("memberships").get("m") !== first) return false;
          return true;
        } } },
        ordered: {
          schema: { group: { type: "string" } },
          indexes: [{ fields: ["group"] }],
          access: { insert: true, read: (auth, _r, { table }) => {
            const { first, list, exists } = table("ordered");
            const mine = [["group", "==", "g"]];
            const ids = (limit) => list(mine, { limit }).map(({ id }) => id).join();
            return exists(mine) && !exists([["group", "==", "none"]]) && first(mine).id === "a" &&
              [ids(0), ids(1), ids(2), ids(3), ids(9)].join(" ") === " a a,b a,b,c a,b,c" && [["group", "==", "g"]];
          } },
        },
        greedy: { access: { read: (auth, _r, { table }) => {
          try { for (let n = 0; n < 10_001; n++) table("memberships").get("m" + n); } catch {}
          return true;
        } } },
      } },
    },
  }`;

beforeAll(async () => {
  platform = await testPlatform({ config: CONFIG });
  [ann, bob, eve] = await Promise.all([signIn(platform), signIn(platform), signIn(platform)]);
  expect((await ann.post(team("members"), { id: ann.id, role: "owner" })).status).toBe(201);
});
afterAll(() => platform.stop());

test("[TB200] rules look up the members of their instance", async () => {
  expect((await bob.get(team("tasks"))).status).toBe(403);
  expect((await platform.get(team("tasks"))).status).toBe(401);
  expect((await bob.post(team("members"), { id: bob.id, role: "owner" })).status).toBe(403);
  expect((await ann.post(team("members"), { id: bob.id, role: "reader" })).status).toBe(201);
  expect((await bob.get(team("tasks"))).status).toBe(200);
  expect((await bob.post(team("tasks"), { title: "no" })).status).toBe(403);
  expect((await ann.patch(`${team("members")}/${bob.id}`, { role: "editor" })).status).toBe(200);
  expect((await bob.post(team("tasks"), { title: "yes" })).status).toBe(201);
  expect((await bob.get(team("tasks", "two"))).status).toBe(403);
  expect((await eve.get(team("tasks"))).status).toBe(403);
});

test("[TB201] a rule that returns a filter without reading the record filters lists, counts and searches", async () => {
  await ann.post(shared("memberships"), { userId: ann.id, projectId: "red", note: { deep: 1 } });
  for (const projectId of ["red", "red", "blue"])
    await ann.post(shared("issues"), { projectId, title: `issue ${projectId}` });
  const listed = await ann.get<ListAnswer>(
    `${shared("issues")}?sort=title:desc&filter=${encodeURIComponent('[["title","!=","x"]]')}`,
  );
  expect([listed.status, listed.body.total]).toEqual([200, 2]);
  expect((await ann.get(`${shared("issues")}/count`)).body).toEqual({ total: 2 });
  expect((await ann.get<ListAnswer>(`${shared("issues")}/search?q=issue`)).body.items).toHaveLength(2);
  expect((await bob.get(`${shared("issues")}/count`)).body).toEqual({ total: 0 });
  expect((await platform.get(`${shared("issues")}/count`)).status).toBe(401);
});

test("[TB202] a lookup that no index answers denies, and the log says which to declare", async () => {
  expect((await ann.get(shared("noIndex"))).status).toBe(403);
  expect((await ann.get(shared("noFilter"))).status).toBe(403);
  await until("the log says so", () => platform.stderr().includes('declare indexes: [{ fields: [\\"projectId\\"] }]'));
});

test("[TB205] instances that do not exist are empty and not made; what is not declared denies", async () => {
  expect((await ann.get(shared("elsewhere"))).status).toBe(200);
  expect(existsSync(join(platform.dataDirectory, "databases/teams/none.db"))).toBe(false);
  expect(readdirSync(join(platform.dataDirectory, "databases/teams")).filter((name) => name.endsWith(".db"))).toEqual([
    "one.db",
  ]);
  expect((await ann.get(shared("noTable"))).status).toBe(403);
  expect((await ann.get(shared("noInstance"))).status).toBe(403);
});

test("[TB203] [TB204] an operation of a batch is decided by what the ones before it have done", async () => {
  const at = (id: string) => team("members", `batch-${id}`);
  const owner = { id: ann.id, role: "owner" };
  const together = await ann.post(`${at("a")}/batch`, { inserts: [owner, { id: "m1", role: "editor" }] });
  expect(together.status).toBe(200);
  expect((await ann.post(`${at("b")}/batch`, { inserts: [{ id: "m1", role: "editor" }, owner] })).status).toBe(403);
  const gone = await ann.post(`${at("a")}/batch`, { deletes: [ann.id, "m1"] });
  expect(gone.status).toBe(403);
  expect((await ann.get<ListAnswer>(at("a"))).body.items).toHaveLength(2);
  const demoted = {
    updates: [
      { id: ann.id, data: { role: "reader" } },
      { id: "m1", data: { role: "owner" } },
    ],
  };
  expect((await ann.post(`${at("a")}/batch`, demoted)).status).toBe(403);
  expect((await ann.get(`${at("a")}/m1`)).body["role"]).toBe("editor");
});

test("[TB207] too many lookups of a request are 503, also if the rule catches the error", async () => {
  expect((await ann.get(shared("greedy"))).status).toBe(503);
  await until("the log says so", () => platform.stderr().includes("The access rules made more than 10000 lookups"));
});

test("[TB200] lists and first records come by id", async () => {
  const inserts = ["c", "a", "b"].map((id) => ({ id, group: "g" }));
  expect((await ann.post(`${shared("ordered")}/batch`, { inserts })).status).toBe(200);
  expect((await ann.get<ListAnswer>(shared("ordered"))).body.total).toBe(3);
});

test("[TB208] the same lookup again is none more", async () => {
  await ann.post(shared("memberships"), { id: "m", userId: "nobody", projectId: "none" });
  expect((await ann.get(shared("repeating"))).status).toBe(200);
});

test("[TB208] the records of a lookup are frozen", async () => {
  const [status] = [(await bob.get(shared("changing"))).status];
  await eve.post(shared("memberships"), { userId: eve.id, projectId: "x", note: { deep: 1 } });
  expect([status, (await eve.get(shared("changing"))).status]).toEqual([200, 403]);
  expect(
    (
      await eve.get<ListAnswer>(
        `${shared("memberships")}?filter=${encodeURIComponent(`[["userId","==","${eve.id}"]]`)}`,
      )
    ).body.items[0]?.["note"],
  ).toEqual({ deep: 1 });
});

test("[TB209] a filter of a thousand values that a lookup has found", async () => {
  const mine = Array.from({ length: 500 }, (_, n) => ({ userId: bob.id, projectId: `p${n}` }));
  const others = Array.from({ length: 500 }, (_, n) => ({ userId: bob.id, projectId: `q${n}` }));
  for (const inserts of [mine, others])
    expect((await ann.post(`${shared("memberships")}/batch`, { inserts })).status).toBe(200);
  for (const projectId of ["p7", "q499", "r1"])
    await ann.post(shared("issues"), { id: `of-${projectId}`, projectId, title: "thousand" });
  expect((await bob.get<ListAnswer>(shared("issues"))).body.total).toBe(2);
  expect((await bob.get(`${shared("issues")}/count`)).body).toEqual({ total: 2 });
  expect((await bob.get<ListAnswer>(`${shared("issues")}/search?q=thousand`)).body.items).toHaveLength(2);
  expect((await bob.get(`${shared("issues")}/of-q499`)).status).toBe(200);
  expect((await bob.get(`${shared("issues")}/of-r1`)).status).toBe(404);
  expect((await bob.patch(`${shared("issues")}/of-p7`, { title: "seen" })).body["title"]).toBe("seen");
  expect((await bob.patch(`${shared("issues")}/of-r1`, { title: "no" })).status).toBe(404);
});
