import { expect, test } from "bun:test";
import type { JsonObject } from "../../kernel/json/json.ts";
import type { Transport } from "../transport/types.ts";
import { createExpansions, KNOWN_MAX } from "./expansions.ts";
import type { Plan } from "./plan.ts";

const TURNS_OF_A_READ = 20;

test("[TC50] what records refer to is forgotten when they have left the query", async () => {
  const author = { id: "ann" };
  const transport = {
    async request(_: string, __: string, { query: { filter } }: { query: { filter: string } }) {
      const [[, , ids]] = JSON.parse(filter) as [[string, string, string[]]];
      return { items: ids.map((id) => ({ id, author: "ann", expand: { author } })) };
    },
  } as unknown as Transport;
  const plan = {
    query: { expand: ["author"] },
    parameters: { fields: null, expand: "author" },
    path: "/api/db/shared/tables/tasks",
    shown: (record: JsonObject) => record,
  } as unknown as Plan;
  let present = "";
  const expansions = createExpansions({
    transport,
    plan,
    retries: { later() {}, succeeded() {}, stop() {} },
    window: { get: (id) => (id === present ? { id } : undefined) },
    changed() {},
  });
  const shown = (id: string) => expansions.shown({ id, author: "ann" }, false);
  for (let index = 0; index <= KNOWN_MAX; index++) {
    present = `t${index}`;
    expect(shown(present)).toBeNull();
    for (let turn = 0; turn < TURNS_OF_A_READ; turn++) await Promise.resolve();
  }
  expect(shown(present)).toMatchObject({ id: present, expand: { author } });
  expect(shown("t0")).toBeNull();
  expansions.stop();
});
