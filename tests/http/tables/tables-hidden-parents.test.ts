import { afterAll, beforeAll, expect, test } from "bun:test";
import type { JsonObject } from "../../../src/kernel/json/json.ts";
import { type ErrorAnswer, type SignedIn, signIn, type TestPlatform, testPlatform } from "../../support/index.ts";

// A project is visible to its members, and a membership refers to its project: the first one is made together with it.

let platform: TestPlatform;
let ann: SignedIn;
beforeAll(async () => {
  platform = await testPlatform({
    config: `
      const mine = (auth, table) => table("memberships").list([["userId", "==", auth?.id ?? ""]]).map(({ projectId }) => projectId);
      export default { databases: { shared: { tables: {
        projects: {
          schema: { slug: { type: "string", unique: true }, name: { type: "string" }, parent: { type: "string", references: "projects" } },
          access: { read: (auth, _project, { table }) => [["id", "in", mine(auth, table)]], insert: (auth) => auth !== null, update: (auth) => auth !== null },
        },
        memberships: {
          schema: { projectId: { type: "string", references: "projects" }, slug: { type: "string", references: { table: "projects", column: "slug" } },
            userId: { type: "string" } },
          indexes: [{ fields: ["userId"] }],
          access: { read: (auth) => [["userId", "==", auth?.id ?? ""]], insert: (auth, one) => one.userId === auth?.id },
        },
      } } } };`,
  });
  ann = await signIn(platform);
});
afterAll(() => platform.stop());

const TABLES = "/api/db/shared/tables";
const transact = (...operations: JsonObject[]) =>
  ann.post<ErrorAnswer & { results: JsonObject[] }>("/api/db/shared/transaction", { operations });
const project = (id: string, data: JsonObject = {}) => ({
  table: "projects",
  action: "insert",
  data: { id, slug: `slug-${id}`, ...data },
});
const membership = (data: JsonObject) => ({
  table: "memberships",
  action: "insert",
  data: { userId: ann.id, ...data },
});
const hidden = (id: string) => `projectId: there is no record of projects with id "${id}" that you may read`;

test("[TB116] a membership is made in one transaction with its project, which its maker may read from then on", async () => {
  const made = await transact(project("p1"), membership({ projectId: "p1" }));
  expect(made.status).toBe(200);
  expect((await ann.get(`${TABLES}/projects/p1`)).status).toBe(200);
  // By another unique field than the id, and after an update or upsert as after an insert.
  const later = [
    [project("p2"), membership({ slug: "slug-p2" })],
    [{ table: "projects", action: "upsert", data: { id: "p3" } }, membership({ projectId: "p3" })],
    [project("p4"), project("p5", { parent: "p4" })],
  ];
  for (const operations of later) expect((await transact(...operations)).status).toBe(200);
});

test("[TB116] a batch refers to what it has inserted, and nothing else that is hidden", async () => {
  const batch = (inserts: JsonObject[]) => ann.post<ErrorAnswer>(`${TABLES}/projects/batch`, { inserts });
  expect((await batch([{ id: "b1" }, { id: "b2", parent: "b1" }])).status).toBe(200);
  const refused = await batch([{ id: "b3", parent: "b1" }]);
  expect([refused.status, refused.body.data?.["inserts.0.parent"]?.code]).toEqual([400, "unknown_reference"]);
});

test("[TB116] a record that another request has written, or that comes later or was deleted, may not be referred to", async () => {
  await platform.service.post(`${TABLES}/projects`, { id: "old" });
  for (const [id, operations] of [
    ["old", [membership({ projectId: "old" })]],
    ["old", [project("n1"), membership({ projectId: "old" })]],
    ["late", [membership({ projectId: "late" }), project("late")]],
    ["nothing", [project("n2"), membership({ projectId: "nothing" })]],
  ] as const) {
    const { status, body } = await transact(...operations);
    const place = `operations.${operations.findIndex(({ table }) => table === "memberships")}`;
    expect([status, body.message]).toEqual([400, `${place}: ${hidden(id)}`]);
  }
  const single = await ann.post<ErrorAnswer>(`${TABLES}/memberships`, { userId: ann.id, projectId: "old" });
  expect([single.status, single.body.message]).toEqual([400, hidden("old")]);
});
