import { afterAll, beforeAll, expect, test } from "bun:test";
import type { JsonObject } from "../../../src/kernel/json/json.ts";
import { type ErrorAnswer, type SignedIn, signIn, type TestPlatform, testPlatform } from "../../support/index.ts";

// What a write tells a caller that may write and not read: what was sent, whichever way the write came, whether it succeeds
// or fails. Two records that differ in what is hidden get the same answer.

const CONFIG = `
  const hooks = {
    beforeInsert: (auth, record) => ({ ...record, stamp: "canary-of-a-hook", note: record.note === "long" ? "canary-too-long" : record.note,
      team: record.note === "lost" ? "canary-of-nobody" : null }),
    beforeUpdate: (auth, record, changes) => ({ ...changes,
      ...(changes.note === "long" ? { note: "canary-too-long" } : {}), ...(changes.note === "rewrite" ? { note: "canary" } : {}) }),
  };
  const schema = {
    visible: { type: "integer", check: "visible <= \\"hidden\\" OR 'note' = ''" },
    hidden: { type: "integer" },
    bounded: { type: "integer", max: 1000 },
    free: { type: "integer" },
    code: { type: "string" },
    area: { type: "string" },
    note: { type: "string", max: 8 },
    stamp: { type: "string" },
    long: { type: "text" },
    more: { type: "text" },
    team: { type: "string", references: "teams" },
  };
  const indexes = [{ fields: ["code", "area"], unique: true }];
  export default { serviceKeys: {
    writer: { key: "key-of-a-writer-0123456789", scopes: ["db:shared:*:insert", "db:shared:*:update"] },
  }, databases: { shared: { tables: {
    teams: {},
    boxes: { schema, indexes, hooks, access: { insert: true, update: true } },
    mine: { schema, indexes, hooks, access: { insert: true, update: true, read: true } },
    papers: { access: { insert: true, update: true } },
  } } } };`;

let platform: TestPlatform;
let ann: SignedIn;
beforeAll(async () => {
  platform = await testPlatform({ config: CONFIG });
  ann = await signIn(platform);
});
afterAll(() => platform.stop());

type Client = Pick<TestPlatform, "fetch">;
interface Heard {
  status: number;
  text: string;
  /** The record of a success. */
  record: JsonObject;
}

async function ask(client: Client, method: string, path: string, body: JsonObject, key?: string): Promise<Heard> {
  const headers: Record<string, string> = { "content-type": "application/json" };
  if (key !== undefined) headers["idempotency-key"] = key;
  const response = await client.fetch(`/api/db/shared/${path}`, { method, headers, body: JSON.stringify(body) });
  const text = await response.text();
  const answer = JSON.parse(text) as JsonObject;
  const [record = answer] = ["inserted", "updated", "results"].flatMap((name) => (answer[name] ?? []) as JsonObject[]);
  return { status: response.status, text, record };
}

type Way = (client: Client, table: string, data: JsonObject) => Promise<Heard>;
const transact = (client: Client, operation: JsonObject) =>
  ask(client, "POST", "transaction", { operations: [operation] });

let keys = 0;
const INSERTS: Record<string, Way> = {
  POST: (client, table, data) => ask(client, "POST", `tables/${table}`, data),
  "POST with an idempotency key": (client, table, data) => ask(client, "POST", `tables/${table}`, data, `k${keys++}`),
  "an upsert": (client, table, data) => ask(client, "POST", `tables/${table}?upsert=true`, data),
  "a batch": (client, table, data) => ask(client, "POST", `tables/${table}/batch`, { inserts: [data] }),
  "a batch of upserts": (client, table, data) =>
    ask(client, "POST", `tables/${table}/batch?upsert=true`, { inserts: [data] }),
  "a transaction": (client, table, data) => transact(client, { table, action: "insert", data }),
  "an upsert in a transaction": (client, table, data) => transact(client, { table, action: "upsert", data }),
};

type Change = (client: Client, table: string, id: string, data: JsonObject) => Promise<Heard>;
const UPDATES: Record<string, Change> = {
  PATCH: (client, table, id, data) => ask(client, "PATCH", `tables/${table}/${id}`, data),
  "a batch": (client, table, id, data) => ask(client, "POST", `tables/${table}/batch`, { updates: [{ id, data }] }),
  "a transaction": (client, table, id, data) => transact(client, { table, action: "update", id, data }),
};
/** An upsert takes no operators. */
const UPSERTS: Record<string, Change> = {
  "an upsert": (client, table, id, data) => ask(client, "POST", `tables/${table}?upsert=true`, { id, ...data }),
  "an upsert in a batch": (client, table, id, data) =>
    ask(client, "POST", `tables/${table}/batch?upsert=true`, { inserts: [{ id, ...data }] }),
  "an upsert in a transaction": (client, table, id, data) =>
    transact(client, { table, action: "upsert", data: { id, ...data } }),
};

let ids = 0;
const stored = async (table: string, fields: JsonObject): Promise<string> => {
  const id = `r${ids++}`;
  expect((await platform.service.post(`/api/db/shared/tables/${table}`, { id, ...fields })).status).toBe(201);
  return id;
};
const increment = (value: number) => ({ $op: "increment", value });
const writers = (): [name: string, client: Client][] => [
  ["a user", ann],
  ["nobody", platform],
  ["a service key", platform.withKey("key-of-a-writer-0123456789")],
];

test("[TB67] an insert answers the id and what was sent, and nothing that a hook or a default has set", async () => {
  for (const [name, way] of Object.entries(INSERTS)) {
    for (const [caller, client] of writers()) {
      if (caller === "nobody" && name.includes("idempotency")) continue;
      const data = { id: `i${ids++}`, visible: 1, hidden: 2, note: "short" };
      const { status, record } = await way(client, "boxes", data);
      expect({ name, caller, ok: status < 300, record }).toEqual({ name, caller, ok: true, record: data });
    }
    const { record } = await way(ann, "mine", { id: `i${ids++}`, note: "short" });
    expect([name, record["stamp"], typeof record["createdAt"]]).toEqual([name, "canary-of-a-hook", "string"]);
  }
});

test("[TB67, TB323] the replay of an insert tells no more than its answer", async () => {
  const body = { id: `i${ids++}`, note: "short" };
  const send = () => ask(ann, "POST", "tables/boxes", body, "replayed");
  expect((await send()).record).toEqual(body);
  expect((await send()).record).toEqual({ id: body.id });
});

test("[TB67] a change answers a value as it was sent, and not what a hook has made of it", async () => {
  for (const [name, way] of Object.entries({ ...UPDATES, ...UPSERTS })) {
    const id = await stored("boxes", { hidden: 7, free: 5 });
    const { record } = await way(ann, "boxes", id, { note: "rewrite" });
    expect([name, record]).toEqual([name, { id, note: "rewrite" }]);
  }
});

/** Changes whose outcome depends on what is hidden: the first record would take the change, the second one would not. */
const DEPENDING: [what: string, table: string, takes: JsonObject, refuses: JsonObject, change: JsonObject][] = [
  ["a check with a field that is not sent", "boxes", { hidden: 9 }, { hidden: 3 }, { visible: 5 }],
  ["an increment within bounds or not", "boxes", { bounded: 1 }, { bounded: 999 }, { bounded: increment(10) }],
  ["a large increment", "boxes", { free: 1 }, { free: 2 ** 53 - 1 }, { free: increment(2 ** 52) }],
  [
    "an increment that a check compares",
    "boxes",
    { visible: 1, hidden: 9 },
    { visible: 9, hidden: 9 },
    { visible: increment(2) },
  ],
  ["a member of any type", "papers", { n: 1 }, { n: "text" }, { n: increment(1) }],
];

test("[TB113] who may not read a record learns nothing by changes that depend on stored values", async () => {
  for (const [what, table, takes, refuses, change] of DEPENDING) {
    const ways = JSON.stringify(change).includes("$op") ? UPDATES : { ...UPDATES, ...UPSERTS };
    for (const [name, way] of Object.entries(ways)) {
      for (const [caller, client] of writers()) {
        const heard: string[] = [];
        for (const fields of [takes, refuses]) {
          const id = await stored(table, fields);
          const { status, text } = await way(client, table, id, change);
          heard.push(`${status} ${text.replaceAll(id, "ID")}`);
        }
        const about = { what, name, caller };
        expect({ ...about, heard: heard[1] }).toEqual({ ...about, heard: heard[0] ?? "" });
        expect({ ...about, status: heard[0]?.slice(0, 3) }).toEqual({
          ...about,
          status: caller === "nobody" ? "401" : "403",
        });
      }
    }
  }
  // Who sends all that a check compares, or increments what has no bounds, changes the record.
  const id = await stored("boxes", { hidden: 3, free: 5 });
  for (const change of [{ visible: 5, hidden: 9 }, { free: increment(2) }]) {
    expect((await ask(ann, "PATCH", `tables/boxes/${id}`, change)).status).toBe(200);
  }
  const now = (await platform.service.get<JsonObject>(`/api/db/shared/tables/boxes/${id}`)).body;
  expect([now["visible"], now["hidden"], now["free"]]).toEqual([5, 9, 7]);
});

test("[TB113] who may read the record is told what leaves the bounds", async () => {
  const id = await stored("mine", { bounded: 999, hidden: 3 });
  const beyond = await ann.patch<ErrorAnswer>(`/api/db/shared/tables/mine/${id}`, { bounded: increment(10) });
  expect([beyond.status, beyond.body.data?.["bounded"]?.message]).toEqual([
    400,
    "bounded must be at most 1000, got 1009",
  ]);
  const checked = await ann.patch<ErrorAnswer>(`/api/db/shared/tables/mine/${id}`, { visible: 5 });
  expect([checked.status, checked.body.data?.["visible"]?.code]).toEqual([400, "check_failed"]);
});

const LONG = "x".repeat(600_000);
/** Changes that a stored record refuses: what the error may name. */
const REFUSED: [
  what: string,
  fields: () => Promise<JsonObject>,
  change: JsonObject,
  status: number,
  named: string[],
][] = [
  ["a record that is too large", async () => ({ more: LONG }), { code: "c", long: LONG }, 400, ["long"]],
  [
    "a unique index with a hidden field",
    async () => {
      await stored("boxes", { code: `canary-${ids}`, area: "north" });
      return { code: `canary-${ids - 1}` };
    },
    { area: "north" },
    409,
    ["area"],
  ],
  ["a value that a hook has set", async () => ({}), { note: "long" }, 400, ["note"]],
];

test("[TB117] the error of a change names what was sent, and no stored value, size or field beside it", async () => {
  for (const [what, fieldsOf, change, status, named] of REFUSED) {
    for (const [name, way] of Object.entries({ ...UPDATES, ...UPSERTS })) {
      for (const [caller, client] of writers()) {
        const id = await stored("boxes", await fieldsOf());
        const heard = await way(client, "boxes", id, change);
        const data = Object.keys((JSON.parse(heard.text) as ErrorAnswer).data ?? {}).map((field) =>
          field.split(".").at(-1),
        );
        expect({ what, name, caller, status: heard.status, data }).toEqual({ what, name, caller, status, data: named });
        for (const hidden of ["canary", "at least", "more", "code"]) {
          const about = { what, name, caller, text: heard.text.replaceAll('"code":', "") };
          expect({ ...about, tells: about.text.includes(hidden) && hidden }).toEqual({ ...about, tells: false });
        }
      }
    }
  }
});

test("[TB117] the error of an insert quotes nothing that a hook has set", async () => {
  for (const [name, way] of Object.entries(INSERTS)) {
    for (const note of ["long", "lost"]) {
      const { status, text } = await way(ann, "boxes", { id: `i${ids++}`, note });
      expect([name, note, status, text.includes("canary")]).toEqual([name, note, 400, false]);
    }
  }
});
