import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { existsSync } from "node:fs";
import { join } from "node:path";
import type { JsonObject } from "../../../src/kernel/json/json.ts";
import {
  createAdministrator,
  type ErrorAnswer,
  type ListAnswer,
  SERVICE_KEY,
  type SignedIn,
  signIn,
  type TestPlatform,
  testPlatform,
} from "../../support/index.ts";
import { testSeed } from "../../support/random.ts";
import { ask, type Caller, type RulesWorld, recordOf, rulesWorld } from "../../support/rules-world.ts";

const TRY = "/api/admin/rules/try";
const key = (name: string) => `${name}-key-0123456789abcdefghijklmnopqrstuv`;

const CONFIG = `
  const role = (auth, { table }) => table("members").first([["userId", "==", auth?.id ?? ""]])?.role;
  export default {
    databases: {
      shared: {
        tables: {
          members: { schema: { userId: { type: "string", unique: true }, role: { type: "string" } } },
          notes: {
            schema: { text: { type: "string", required: true, max: 20 }, owner: { type: "string" }, stars: { type: "integer", default: 0 } },
            access: {
              read: (auth) => auth !== null && [["owner", "==", auth.id]],
              insert: (auth, note) => auth !== null && note.owner === auth.id,
              update: (auth, note, next, context) => role(auth, context) === "editor" && next.owner === note.owner,
              delete: async (auth, note, context) => { await null; return role(auth, context) === "owner" },
            },
            hooks: { beforeInsert: () => { throw new Error("a hook ran") }, afterDelete: () => { throw new Error("a hook ran") } },
          },
          broken: {
            schema: { text: { type: "string" } },
            access: {
              read: () => { throw new TypeError("auth is not a person") },
              insert: (auth, record, { table }) => table("members").exists([["role", "==", "owner"]]),
              update: () => new Promise(() => {}),
              delete: (auth, record, { table }) => Array.from({ length: 300 }, (_, n) => table("members").get("m" + n)).length > 0,
            },
          },
        },
      },
      teams: {
        instance: true,
        access: { create: (auth, id) => id === "new-" + auth?.id, open: (auth, id, { table }) => auth !== null && table("members").get(auth.id) !== null },
        tables: { members: { schema: {}, access: { read: true, insert: true } } },
      },
    },
    rateLimits: { auth: { requests: 100000, window: 60 } },
    serviceKeys: {
      full: { key: "${key("full")}" },
      scoped: { key: "${key("scoped")}", scopes: ["*:*:*:*"] },
      tables: { key: "${key("tables")}", scopes: ["db:*:*:read", "system:*:*:read"] },
    },
  };`;

interface Lookup {
  rule: string;
  table: string;
  method: string;
  id: string | null;
  filter: string | null;
  found: number;
  ms: number;
}
interface Result {
  operation: string;
  allowed: boolean;
  status: number;
  decidedBy: string;
  rule: string | null;
  answer: unknown;
  lookups: Lookup[];
  lookupCount: number;
  ms: number;
  error: string | null;
}

let platform: TestPlatform;
let ann: SignedIn;
let bob: SignedIn;
const NOTES = "/api/db/shared/tables/notes";
const notes = { namespace: "shared", table: "notes" };
beforeAll(async () => {
  platform = await testPlatform({ config: CONFIG });
  ann = await signIn(platform);
  bob = await signIn(platform);
  await platform.service.post("/api/db/shared/tables/members", { id: "m1", userId: ann.id, role: "editor" });
  await platform.service.post("/api/db/shared/tables/broken", { id: "b1", text: "x" });
  await platform.service.post("/api/db/teams/red/tables/members", { id: ann.id });
});
afterAll(() => platform.stop());

const tried = async (body: object): Promise<Record<string, Result>> => {
  const answer = await platform.service.post<{ results: Result[] }>(TRY, body as never);
  expect(answer.status).toBe(200);
  return Object.fromEntries(answer.body.results.map((result) => [result.operation, result]));
};
const note = (owner: string) => ({ text: "hello", owner });

describe("a trial of rules", () => {
  test("[TB461] says for each operation whether it is allowed, by which rule, and what the rule returned", async () => {
    const mine = await tried({ ...notes, as: ann.id, record: note(ann.id), data: { text: "new" } });
    expect(Object.keys(mine)).toEqual(["read", "insert", "update", "delete"]);
    expect(mine["read"]).toMatchObject({
      allowed: true,
      status: 200,
      decidedBy: "read",
      answer: [["owner", "==", ann.id]],
      error: null,
    });
    expect(mine["read"]?.rule).toContain("auth !== null && [[");
    expect(mine["insert"]).toMatchObject({ allowed: true, status: 201, answer: true });
    expect(mine["update"]).toMatchObject({ allowed: true, status: 200, decidedBy: "update" });
    expect(mine["delete"]).toMatchObject({ allowed: false, status: 403, decidedBy: "delete", answer: false });
    for (const { ms } of Object.values(mine)) expect(ms).toBeGreaterThan(0);

    // A record that the read rule hides is neither changed nor deleted: there it is the read rule that decides.
    const others = await tried({ ...notes, as: ann.id, record: note(bob.id) });
    expect(others["read"]).toMatchObject({ allowed: false, status: 404, decidedBy: "read" });
    expect(others["update"]).toMatchObject({ allowed: false, status: 404, decidedBy: "read" });
    expect(others["update"]?.answer).toEqual([["owner", "==", ann.id]]);
    expect(others["insert"]).toMatchObject({ allowed: false, status: 403, decidedBy: "insert" });

    const nobody = await tried({ ...notes, as: "anonymous", record: note(ann.id) });
    expect(Object.values(nobody).map(({ status }) => status)).toEqual([401, 401, 401, 401]);
  });

  test("[TB461] without a rule it is denied, and operations can be chosen", async () => {
    const results = await tried({
      namespace: "shared",
      table: "members",
      as: ann.id,
      id: "m1",
      operations: ["delete", "read"],
    });
    expect(Object.keys(results)).toEqual(["delete", "read"]);
    expect(results["read"]).toMatchObject({ allowed: false, status: 403, decidedBy: "read", rule: null, lookups: [] });
  });

  test("[TB461] an update is asked with the record as it would become", async () => {
    const results = await tried({ ...notes, as: ann.id, record: note(ann.id), data: { owner: bob.id } });
    expect(results["update"]).toMatchObject({ allowed: false, status: 403, decidedBy: "update" });
  });

  test("[TB462] lookups say table, id or filter, and whether there was something, of awaited rules too", async () => {
    const { update, delete: removal, read } = await tried({ ...notes, as: ann.id, record: note(ann.id) });
    const lookup = { namespace: "shared", instanceId: null, table: "members", method: "first", id: null, error: null };
    const filter = JSON.stringify([["userId", "==", ann.id]]);
    expect(read?.lookups).toEqual([]);
    expect(update?.lookups).toMatchObject([{ ...lookup, rule: "update", filter, found: 1 }]);
    expect(removal?.lookups).toMatchObject([{ ...lookup, rule: "delete", filter, found: 1 }]);
    const bobs = await tried({ ...notes, as: bob.id, record: note(bob.id) });
    expect(bobs["update"]?.lookups).toMatchObject([{ found: 0 }]);
    const open = await tried({ namespace: "teams", instanceId: "red", table: "members", as: ann.id, id: ann.id });
    expect(open["read"]?.lookups).toMatchObject([
      { rule: "open", instanceId: "red", method: "get", id: ann.id, found: 1 },
    ]);
  });

  test("[TB462] lookups are counted beyond those that are listed", async () => {
    const { delete: removal } = await tried({ namespace: "shared", table: "broken", as: ann.id, id: "b1" });
    expect(removal?.lookups.length).toBe(200);
    expect(removal?.lookupCount).toBe(300);
  });

  test("[TB463] instances are opened, and asked for with create where there is none", async () => {
    const members = { namespace: "teams", table: "members" };
    const refused = await tried({ ...members, instanceId: "red", as: bob.id, id: ann.id });
    expect(refused["read"]).toMatchObject({ allowed: false, status: 403, decidedBy: "open" });
    expect(refused["read"]?.rule).toContain('table("members").get(auth.id)');
    const instanceId = `new-${bob.id}`;
    const made = await tried({ ...members, instanceId, as: bob.id, record: {}, operations: ["insert", "read"] });
    expect(made["insert"]).toMatchObject({ allowed: true, status: 201 });
    expect(made["read"]).toMatchObject({ allowed: false, decidedBy: "open" });
    const denied = await tried({ ...members, instanceId: "blue", as: bob.id, record: {}, operations: ["insert"] });
    expect(denied["insert"]).toMatchObject({ allowed: false, status: 403, decidedBy: "create" });
    expect(existsSync(join(platform.dataDirectory, "databases/teams", `${instanceId}.db`))).toBe(false);
  });

  test("[TB463] writes nothing, and runs no hook", async () => {
    const before = (await platform.service.get<ListAnswer>("/api/db/shared/tables/members")).body;
    const members = { namespace: "shared", table: "members" };
    await tried({ ...members, as: ann.id, id: "m1", data: { role: "owner" } });
    await tried({ ...notes, as: ann.id, record: note(ann.id), data: { text: "changed" } });
    expect((await platform.service.get<ListAnswer>("/api/db/shared/tables/members")).body).toEqual(before);
    expect((await platform.service.get<ListAnswer>(NOTES)).body.total).toBe(0);
    expect(platform.stderr()).not.toContain("a hook ran");
    const { body } = await platform.service.get<{ entries: { action: string }[] }>(
      "/api/admin/audit?target=db/shared/notes",
    );
    expect(body.entries).toEqual([]);
  });

  test("[TB464] a rule that throws or does not settle denies, and says why; no lookup without an index", async () => {
    const startedAt = Date.now();
    const broken = await tried({ namespace: "shared", table: "broken", as: ann.id, id: "b1" });
    expect(broken["read"]).toMatchObject({
      allowed: false,
      status: 403,
      error: "TypeError: auth is not a person",
    });
    expect(broken["insert"]?.allowed).toBe(false);
    expect(broken["insert"]?.error).toContain("No index of databases.shared.tables.members");
    expect(broken["insert"]?.lookups[0]).toMatchObject({ found: 0, method: "exists" });
    expect(broken["update"]).toMatchObject({ allowed: false, error: "DeadlineError: took longer than 5000 ms" });
    expect(Date.now() - startedAt).toBeLessThan(20_000);
    // Requests say the same, and log it: a trial does not.
    expect((await ann.get("/api/db/shared/tables/broken/b1")).status).toBe(403);
    expect(platform.stderr().match(/an access rule threw/g)?.length).toBe(1);
  });

  test("[TB465] what it cannot try is refused by name", async () => {
    const refused = async (body: object) => {
      const answer = await platform.service.post<ErrorAnswer>(TRY, body as never);
      return [answer.status, Object.keys(answer.body.data ?? {})];
    };
    const as = ann.id;
    expect(await refused({ ...notes, as })).toEqual([400, ["id"]]);
    expect(await refused({ ...notes, as, id: "n1", record: note(as) })).toEqual([400, ["id"]]);
    expect(await refused({ ...notes, as, id: "n1" })).toEqual([404, []]);
    expect(await refused({ ...notes, as, record: { text: 5 } })).toEqual([400, ["text"]]);
    expect(await refused({ ...notes, as, record: note(as), data: { text: "x".repeat(21) } })).toEqual([400, ["text"]]);
    expect(await refused({ ...notes, as, record: note(as), operations: ["drop"] })).toEqual([400, ["operations.0"]]);
    expect(await refused({ ...notes, as, record: note(as), operations: [] })).toEqual([400, ["operations"]]);
    expect(await refused({ namespace: "shared", table: "none", as, id: "n1" })).toEqual([404, []]);
    expect(await refused({ namespace: "teams", table: "members", as, id: "n1" })).toEqual([404, []]);
    expect(await refused({ namespace: "teams", instanceId: "../x", table: "members", as, id: "n" })).toEqual([400, []]);
    expect(await refused({ ...notes, as: "no-such-user", record: note(as) })).toEqual([404, []]);
    expect(await refused({ ...notes, record: note(as) })).toEqual([400, ["as"]]);
  });

  test("[TB460] is for the root key alone: nothing is told to other keys, to users and to those whom it acts as", async () => {
    const body = { ...notes, as: ann.id, record: note(ann.id) } as never;
    const root = await createAdministrator(platform, SERVICE_KEY);
    expect((await root.post(TRY, body)).status).toBe(200);
    for (const name of ["full", "scoped", "tables"]) {
      const answer = await platform.withKey(key(name)).post<ErrorAnswer>(TRY, body);
      expect({ name, status: answer.status, body: answer.body }).toEqual({
        name,
        status: 403,
        body: { code: 403, message: "Access denied" } as never,
      });
      // Nor what is wrong with a request.
      expect((await platform.withKey(key(name)).post(TRY, {})).status).toBe(403);
      const session = await createAdministrator(platform, key(name));
      expect((await session.post(TRY, body)).status).toBe(403);
    }
    expect((await platform.post(TRY, body)).status).toBe(401);
    expect((await ann.post(TRY, body)).status).toBe(401);
    const acting = { headers: { "x-platform-act-as": ann.id } };
    expect((await platform.service.post(TRY, body, acting)).status).toBe(401);
  });
});

test("[TB461] under random rules it says what requests are answered", async () => {
  const world = await rulesWorld(testSeed(20_263), 16);
  try {
    const differences: object[] = [];
    const compared = { requests: 0 };
    const people = world.callers.filter(
      ({ key: serviceKey, token, name }) =>
        serviceKey === null && !name.startsWith("root-as") && (token !== null || name === "nobody"),
    );
    for (const table of world.tables) {
      const [namespace = "", instance, name] =
        table.address.split("/").length === 3
          ? table.address.split("/")
          : [table.address.split("/")[0], undefined, table.name];
      for (const caller of people) {
        for (const id of [...table.records.keys()].slice(0, 4)) {
          const stored = table.records.get(id) ?? {};
          const about = {
            namespace,
            ...(instance === undefined ? {} : { instanceId: instance }),
            table: name,
            as: caller.auth?.id ?? "anonymous",
          };
          const fresh = recordOf(world.r, table.name, `new-${id}`, world.owners);
          const said = async (body: object) =>
            (await world.platform.service.post<{ results: Result[] }>(TRY, { ...about, ...body } as never)).body
              .results;
          const [read, update, removal] = await said({ id, data: { n: 7 }, operations: ["read", "update", "delete"] });
          const [insert] = await said({ record: fresh, operations: ["insert"] });
          const real = await requestsOf(world, caller, table.path, { stored, fresh });
          compared.requests += 4;
          const trial = [read?.status, insert?.status, update?.status, removal?.status];
          if (!Bun.deepEquals(trial, real))
            differences.push({ table: table.rules, caller: caller.name, stored, fresh, trial, real });
          await world.platform.service.post(`${table.path}?upsert=true`, stored);
          await world.platform.service.delete(`${table.path}/new-${id}`);
        }
      }
    }
    expect(differences).toEqual([]);
    expect(compared.requests).toBeGreaterThan(500);
  } finally {
    await world.stop();
  }
});

/** The statuses of the requests themselves, each on the record as the trial saw it. */
async function requestsOf(
  { platform: { service } }: RulesWorld,
  caller: Caller,
  path: string,
  { stored, fresh }: { stored: JsonObject; fresh: JsonObject },
): Promise<number[]> {
  const read = await ask(caller, "GET", `${path}/${stored["id"]}`);
  const insert = await ask(caller, "POST", path, fresh);
  const update = await ask(caller, "PATCH", `${path}/${stored["id"]}`, { n: 7 });
  await service.post(`${path}?upsert=true`, stored);
  const removal = await ask(caller, "DELETE", `${path}/${stored["id"]}`);
  return [read, insert, update, removal].map(({ status }) => status);
}
