import { afterAll, beforeAll, expect, test } from "bun:test";
import { readdirSync } from "node:fs";
import { join } from "node:path";
import type { JsonObject } from "../../../src/kernel/json/json.ts";
import { type TestPlatform, testPlatform, until } from "../../support/index.ts";

/** Each case is called by the hook of `probes`, which answers with its result. */
const CONFIG = `
  import { defineConfig } from "platform";
  import { t } from "elysia";
  const said = (work) => { try { work(); return "did not throw"; } catch (error) { return (error.status ?? "") + " " + error.message; } };
  const cases = {
    done: (app) => app.db("shared").transaction((tx) => {
      tx.table("orders").insert({ id: "o1" });
      return { id: tx.enqueue("charge", { order: "o1" }) };
    }),
    undone: (app) => app.db("shared").transaction((tx) => {
      tx.table("orders").insert({ id: "o2" });
      tx.enqueue("charge", { order: "o2" });
      throw new Error("undone");
    }).catch((error) => ({ error: error.message })),
    wrong: (app) => app.db("shared").transaction((tx) => ({ said: [
      said(() => tx.enqueue("nothing", {})),
      said(() => tx.enqueue("charge", { order: 5 })),
      said(() => tx.enqueue("charge", { order: "o" }, { delay: -1 })),
      said(() => tx.enqueue("charge", { order: "o" }, { retries: 9 })),
      said(() => tx.enqueue("charge", { order: "x".repeat(2 ** 20) })),
    ] })),
    key: async (app) => {
      for (const order of ["k1", "k2"]) {
        await app.db("shared").transaction((tx) => tx.enqueue("charge", { order }, { key: "same", delay: 1 }));
      }
      return {};
    },
    user: (app) => app.as({ id: "u", email: null, emailVerified: false, role: "user", isAnonymous: true, custom: {} })
      .db("shared").transaction((tx) => ({ said: said(() => tx.enqueue("charge", { order: "user" })) })),
    instance: async (app) => {
      await app.db("spaces", "new").transaction((tx) => tx.enqueue("charge", { order: "instance" }));
      await app.db("spaces", "none").transaction(() => null);
      return {};
    },
  };
  export default defineConfig({
    databases: {
      shared: { tables: {
        orders: {}, charges: {},
        probes: { access: { read: true, insert: true }, hooks: { beforeInsert: async (_auth, record, app) =>
          ({ ...record, result: await cases[record.name](app) }) } },
      } },
      spaces: { instance: true, tables: { orders: {} } },
    },
    jobs: { charge: { data: t.Object({ order: t.String() }), run: async ({ id, data, app }) => {
      await app.db("shared").table("charges").upsert({ id, order: data.order });
    } } },
  });`;

let platform: TestPlatform;
beforeAll(async () => {
  platform = await testPlatform({ config: CONFIG });
});
afterAll(() => platform.stop());

async function result(name: string): Promise<JsonObject> {
  const { status, body } = await platform.service.post<{ result: JsonObject }>("/api/db/shared/tables/probes", {
    name,
  });
  expect([name, status]).toEqual([name, 201]);
  return body.result;
}

async function charges(): Promise<JsonObject[]> {
  return (await platform.service.get<{ items: JsonObject[] }>("/api/db/shared/tables/charges")).body.items;
}
const charged = (order: string) =>
  until(`${order} is charged`, async () => (await charges()).some((charge) => charge["order"] === order));

test("[TG19] a job of a transaction runs if and only if the transaction commits", async () => {
  expect(await result("undone")).toEqual({ error: "undone" });
  const { id } = await result("done");
  await charged("o1");
  expect((await charges()).map((charge) => [charge["id"], charge["order"]])).toEqual([[id ?? "", "o1"]]);
});

test("[TG19] name, data and options are checked at once; a user has no jobs", async () => {
  const { said } = await result("wrong");
  const wanted = [
    "404 There is no job",
    "400 ",
    "400 delay must be",
    "400 retries is not an option",
    "413 data must be at most",
  ];
  for (const [index, words] of wanted.entries()) expect((said as string[])[index]).toStartWith(words);
  expect((await result("user"))["said"]).toStartWith("403");
});

test("[TG19] a key keeps a second job away, and a transaction that only enqueues creates its instance", async () => {
  await result("key");
  await result("instance");
  await charged("instance");
  await charged("k1");
  expect((await charges()).filter((charge) => charge["order"] === "k2")).toEqual([]);
  const files = readdirSync(join(platform.dataDirectory, "databases/spaces"));
  expect([files.includes("new.db"), files.includes("none.db")]).toEqual([true, false]);
});
