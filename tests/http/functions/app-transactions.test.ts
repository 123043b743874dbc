import { afterAll, beforeAll, expect, test } from "bun:test";
import type { JsonValue } from "../../../src/kernel/json/json.ts";
import { type TestPlatform, testPlatform, until } from "../../support/index.ts";

let platform: TestPlatform;

/** Each case is a function of `app`, called by the hook of `probes`. */
const CONFIG = `
import { defineConfig, Refusal } from "platform";
const messageOf = (work) => { try { work(); return "did not throw"; } catch (error) { return (error.status ?? "") + " " + error.message; } };
const cases = {
  transfer: (app) => app.db("shared").transaction((tx) => {
    const accounts = tx.table("accounts");
    const [from, to] = [accounts.get("a"), accounts.first([["owner", "==", "bea"]])];
    accounts.update(from.id, { balance: from.balance - 30 });
    accounts.update(to.id, { balance: { $op: "increment", value: 30 } });
    const entry = tx.table("entries").insert({ account: "a", amount: 30 });
    const kept = tx.table("entries").upsert({ id: "last", account: "b", amount: 1 });
    tx.table("entries").upsert({ id: "last", account: "b", amount: 2 });
    return { seen: accounts.list([]).map(({ id, balance }) => [id, balance]), entry: entry.amount, kept: kept.amount,
      exists: tx.table("entries").exists([["amount", "==", 2]]), none: accounts.get("none"), first: accounts.first([["balance", ">", 1e6]]),
      limited: accounts.list([], { limit: 1 }).length };
  }),
  undone: async (app) => {
    const error = new Error("enough");
    const thrown = await app.db("shared").transaction((tx) => {
      tx.table("accounts").update("a", { balance: 0 });
      tx.table("entries").delete("last");
      throw error;
    }).catch((cause) => cause === error);
    return { thrown, balance: (await app.db("shared").table("accounts").get("a")).balance, last: (await app.db("shared").table("entries").get("last")) !== null };
  },
  caught: (app) => app.db("shared").transaction((tx) => {
    const said = [
      messageOf(() => tx.table("accounts").insert({ id: "a", owner: "x" })),
      messageOf(() => tx.table("accounts").insert({ balance: 1 })),
      messageOf(() => tx.table("accounts").update("none", { owner: "x" })),
      messageOf(() => tx.table("accounts").delete("none")),
      messageOf(() => tx.table("accounts").delete("a")),
      messageOf(() => tx.table("refusing").insert({})),
      messageOf(() => tx.table("nothing")),
      messageOf(() => tx.table("accounts").upsert({ owner: "x" })),
      messageOf(() => tx.table("accounts").list([["nothing", "==", 1]])),
      messageOf(() => tx.table("accounts").list([], { limit: -1 })),
      messageOf(() => tx.table("accounts").update("a", { balance: NaN })),
    ];
    tx.table("entries").insert({ id: "after", account: "a", amount: 5 });
    return said;
  }),
  waiting: async (app) => {
    const said = [];
    for (const table of ["slow", "slowUpdate"]) {
      said.push(await app.db("shared").transaction((tx) => {
        tx.table("entries").insert({ id: "no-" + table, account: "a" });
        if (table === "slow") return tx.table("slow").insert({});
        return tx.table("slowUpdate").update("s", { n: 2 });
      }).catch((error) => error.message));
      said.push(await app.db("shared").table("entries").get("no-" + table));
    }
    return said;
  },
  promise: async (app) => {
    let late;
    const said = await app.db("shared").transaction(async (tx) => {
      tx.table("entries").insert({ id: "promised", account: "a" });
      await null;
      late = messageOf(() => tx.table("entries").insert({ id: "late", account: "a" }));
    }).catch((error) => error.message);
    const ids = [await app.db("shared").table("entries").get("promised"), await app.db("shared").table("entries").get("late")];
    return { said, late, ids };
  },
  copies: async (app) => {
    const record = { id: "copy", account: "a", doc: { list: [1] } };
    const seen = await app.db("shared").transaction((tx) => {
      const made = tx.table("entries").insert(record);
      record.doc.list.push("spoilt");
      made.doc.list.push("spoilt");
      const got = tx.table("entries").get("copy");
      got.doc.list.push("spoilt");
      return tx.table("entries").get("copy").doc;
    });
    return { seen, stored: (await app.db("shared").table("entries").get("copy")).doc };
  },
  after: (app) => app.db("shared").transaction((tx) => {
    messageOf(() => { tx.table("noisy").insert({ id: "undone" }); tx.table("noisy").insert({ id: "undone" }); });
    messageOf(() => tx.table("noisy").insert({ id: "undone" }));
    return tx.table("noisy").insert({ id: "made" }).id;
  }),
  nobody: (app) => app.as(null).db("shared").transaction((tx) => [
    tx.table("open").insert({ id: "o", n: 1 }).n,
    messageOf(() => tx.table("open").update("o", { n: 2 })),
    messageOf(() => tx.table("accounts").get("a")),
    messageOf(() => tx.table("accounts").list([])),
    messageOf(() => tx.table("awaited").insert({})),
    tx.table("open").list([]).map(({ id }) => id),
    tx.table("open").get("hidden"),
  ]),
  instance: async (app) => {
    const rooms = app.db("rooms", "fresh");
    const looked = await rooms.transaction((tx) => tx.table("notes").list([]).length);
    const failed = await rooms.transaction((tx) => { tx.table("notes").insert({ n: 1 }); throw new Error("no"); }).catch((error) => error.message);
    const made = await app.db("rooms", "made").transaction((tx) => tx.table("notes").insert({ n: 1 }).n);
    const wrong = await app.db("rooms").transaction(() => 1).catch((error) => error.status);
    return { looked, failed, made, count: await app.db("rooms", "made").table("notes").count(), wrong };
  },
};
export default defineConfig({ databases: {
  shared: { tables: {
    accounts: { schema: { owner: { type: "string", required: true }, balance: { type: "integer", default: 0 } } },
    entries: { schema: { account: { type: "string", references: "accounts" }, amount: { type: "integer" }, doc: { type: "json" } }, access: { read: true } },
    refusing: { hooks: { beforeInsert() { throw new Refusal("not now", { status: 422 }); } } },
    slow: { hooks: { async beforeInsert() {} } },
    slowUpdate: { schema: { n: { type: "integer" } }, hooks: { async beforeUpdate() {} } },
    heard: { schema: { what: { type: "string" } } },
    open: { schema: { n: { type: "integer" } }, access: { read: () => [["n", "<", 5]], insert: true } },
    awaited: { access: { insert: async () => true } },
    noisy: { hooks: { afterInsert: (_auth, record, app) => app.db("shared").table("heard").insert({ id: record.id, what: "inserted" }) } },
    probes: { schema: { what: { type: "string" }, result: { type: "json" } }, access: { read: true, insert: true }, hooks: {
      async beforeInsert(_auth, record, app) { return { ...record, result: await cases[record.what](app) }; } } },
  } },
  rooms: { instance: true, access: { open: true }, tables: { notes: { schema: { n: { type: "integer" } }, access: { read: true } } } },
} });`;

beforeAll(async () => {
  platform = await testPlatform({ config: CONFIG });
  const accounts = [
    { id: "a", owner: "ann", balance: 100 },
    { id: "b", owner: "bea", balance: 5 },
  ];
  const seeded = await platform.service.post("/api/db/shared/tables/accounts/batch", { inserts: accounts });
  expect(seeded.status).toBe(200);
  expect((await platform.service.post("/api/db/shared/tables/slowUpdate", { id: "s", n: 1 })).status).toBe(201);
});
afterAll(() => platform.stop());

const probe = async (what: string): Promise<JsonValue> => {
  const { status, body } = await platform.post("/api/db/shared/tables/probes", { what });
  expect([what, status, body]).toEqual([what, 201, expect.anything()]);
  return body["result"] ?? null;
};

test("[TB310] a transaction reads and writes all tables of its file, and sees what it has done", async () => {
  expect(await probe("transfer")).toEqual({
    seen: [
      ["a", 70],
      ["b", 35],
    ],
    entry: 30,
    kept: 1,
    exists: true,
    none: null,
    first: null,
    limited: 1,
  });
  const { body } = await platform.service.get("/api/db/shared/tables/entries?sort=amount");
  expect((body["items"] as { amount: number }[]).map(({ amount }) => amount)).toEqual([2, 30]);
});

test("[TB310] what its function throws undoes everything, and is thrown on", async () => {
  expect(await probe("undone")).toEqual({ thrown: true, balance: 70, last: true });
});

test("[TB311] an operation that fails changes nothing, and the function may go on", async () => {
  const said = (await probe("caught")) as string[];
  expect(said.map((one) => one.split(" ")[0])).toEqual([
    "409",
    "400",
    "404",
    "404",
    "409",
    "422",
    "404",
    "400",
    "400",
    "400",
    "400",
  ]);
  expect((await platform.service.get("/api/db/shared/tables/entries/after")).status).toBe(200);
  expect((await platform.service.get("/api/db/shared/tables/accounts/a")).body).toMatchObject({ balance: 70 });
});

test("[TB312] a hook that returns a promise is an error that says so, and so is a function that does", async () => {
  const said = (await probe("waiting")) as JsonValue[];
  expect(said).toEqual([
    expect.stringContaining("slow returned a promise: inside a transaction nothing can be awaited"),
    null,
    expect.stringContaining("slowUpdate returned a promise"),
    null,
  ]);
  expect(await probe("promise")).toEqual({
    said: "The function of a transaction must be synchronous, and it returned a promise",
    late: " The transaction is over: its function has returned",
    ids: [null, null],
  });
});

test("[TB313] records go in and out of a transaction as copies", async () => {
  expect(await probe("copies")).toMatchObject({ seen: { list: [1] }, stored: { list: [1] } });
});

test("[TB311] hooks after a write run for what a transaction has done, once", async () => {
  expect(await probe("after")).toBe("made");
  const heard = async () => (await platform.service.get("/api/db/shared/tables/heard?sort=id")).body["items"];
  await until("both hooks have run", async () => ((await heard()) as unknown[]).length === 2);
  expect(await heard()).toMatchObject([{ id: "made" }, { id: "undone" }]);
});

test("[TB315] app.as has the rights of its user in a transaction, and cannot await a rule", async () => {
  expect((await platform.service.post("/api/db/shared/tables/open", { id: "hidden", n: 9 })).status).toBe(201);
  expect(await probe("nobody")).toEqual([
    1,
    expect.stringMatching(/^401 /),
    expect.stringMatching(/^401 /),
    expect.stringMatching(/^401 /),
    expect.stringContaining("an access rule of shared.awaited returned a promise"),
    ["o"],
    null,
  ]);
});

test("[TB314] a transaction creates an instance only where it changes something", async () => {
  expect(await probe("instance")).toEqual({ looked: 0, failed: "no", made: 1, count: 1, wrong: 404 });
  const found = await Array.fromAsync(new Bun.Glob("**/fresh.db").scan(platform.dataDirectory));
  expect(found).toEqual([]);
});
