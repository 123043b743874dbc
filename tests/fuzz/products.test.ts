import { afterAll, beforeAll, expect, test } from "bun:test";
import type { JsonObject, JsonValue } from "../../src/kernel/json/json.ts";
import { type SignedIn, signIn, type TestPlatform, testPlatform } from "../support/index.ts";
import { mutated, ODD_TEXTS, oddValue } from "../support/mutations.ts";
import { type Random, random, testSeed } from "../support/random.ts";
import { until } from "../support/until.ts";

// What products are made of, with any input: aggregates, expand, conditions of writes, transactions, idempotency keys and
// jobs. Every answer is one of those documented, tells nothing of others' records, and changes none.

const SEED = testSeed(20_282);
const ROUNDS = 900 * Number(process.env["PLATFORM_FUZZ_ROUNDS"] ?? 1);
const AT_ONCE = 8;
const CANARY = "the-secret-of-bob";
const OWN_RECORDS = 6;
const TABLES = ["projects", "tasks"] as const;

let platform: TestPlatform;
let ann: SignedIn;
let bob: SignedIn;
let before: string;
const db = "/api/db/shared";
const path = (table: string): string => `${db}/tables/${table}`;

beforeAll(async () => {
  platform = await testPlatform({
    config: `
      import { defineConfig } from "platform";
      const isMine = (auth, { table }) => auth !== null && table("owners").exists([["user", "==", auth.id]]) && [["owner", "==", auth.id]];
      const access = {
        read: (auth, _record, context) => isMine(auth, context),
        insert: (auth, record) => record.owner === auth?.id,
        update: (auth, record, next) => record.owner === auth?.id && next.owner === auth.id,
        delete: (auth, record) => record.owner === auth?.id,
      };
      export default defineConfig({
        databases: { shared: { tables: {
          owners: { schema: { user: { type: "string", unique: true } } },
          projects: { schema: { owner: { type: "string" }, title: { type: "text" }, n: { type: "number" }, at: { type: "datetime" } }, access },
          tasks: {
            schema: { owner: { type: "string" }, title: { type: "text" }, i: { type: "integer" }, b: { type: "boolean" }, j: { type: "json" },
              project: { type: "string", references: { table: "projects", onDelete: "restrict" } } },
            access,
          },
        } } },
        jobs: { keep: { retries: 0, run: async ({ data, app }) => app.kv("kept").set(data.key, { value: data.value }) } },
        kv: { kept: {} },
        routes: (api) => api.post("/keep", async ({ body, app }) => ({ id: await app.jobs.enqueue("keep", body) })),
        rateLimits: { auth: { requests: 1000000, window: 60 } },
      });`,
  });
  ann = await signIn(platform);
  bob = await signIn(platform);
  for (const { id } of [ann, bob]) await platform.service.post(path("owners"), { user: id });
  for (const { id: owner } of [ann, bob]) {
    const [mark, title] = owner === ann.id ? ["a", "mine"] : ["b", CANARY];
    const numbers = Array.from({ length: OWN_RECORDS }, (_, index) => index);
    const projects = numbers.map((index) => ({
      ...{ id: `${mark}${index}`, owner, title, n: index / 2, at: "2026-03-29T00:30:00Z" },
    }));
    // Half of them refer to a project of the other one.
    const tasks = numbers.map((index) => ({
      ...{ id: `${mark}${index}`, owner, title, i: index, b: index % 2 === 0, j: { k: [index] } },
      project: `${index % 2 === 0 ? "a" : "b"}${index}`,
    }));
    expect((await platform.service.post(`${path("projects")}/batch`, { inserts: projects })).status).toBe(200);
    if (owner === bob.id)
      expect((await platform.service.post(`${path("tasks")}/batch`, { inserts: tasks })).status).toBe(200);
    else before = JSON.stringify(tasks);
  }
  const tasks = JSON.parse(before) as JsonValue[]; // of ann, once the projects of bob are there
  expect((await platform.service.post(`${path("tasks")}/batch`, { inserts: tasks })).status).toBe(200);
  before = await recordsOfBob();
});
afterAll(() => platform.stop());

const recordsOfBob = async (): Promise<string> => {
  const lists = await Promise.all(TABLES.map((name) => bob.get(path(name))));
  return JSON.stringify(lists.map(({ body }) => body["items"]));
};

const FIELDS = ["id", "owner", "title", "n", "at", "i", "b", "j", "j.k", "project", "createdAt", "nothing"];
const OPERATORS = ["==", "!=", ">", "<=", "contains", "startsWith", "in", "not in", "LIKE"];
const FUNCTIONS = ["count", "sum", "avg", "min", "max", "total", "group_concat", "COUNT", ""];
const PATHS = [
  "project",
  "project.tasks(project)",
  "tasks(project)",
  "tasks(project).project",
  "owner",
  "projects(owner)",
];
const KEYS = ["k1", "k2", "k3", "a".repeat(128), "a".repeat(129), "k 1"];
const UNITS = ["minute", "hour", "day", "week", "month", "year", "century", "", "DAY"];
const ZONES = [
  "UTC",
  "Europe/Berlin",
  "europe/berlin",
  "+02:00",
  "../etc/localtime",
  "Mars/Olympus",
  "",
  "Asia/Kathmandu",
];

const several = (r: Random, most: number, one: () => string): string =>
  Array.from({ length: 1 + r.below(most) }, one).join(r.pick([",", ",", ",", ", ", ";", ",,"]));
const oddly = (r: Random, text: string): string => (r.chance(0.06) ? r.pick(ODD_TEXTS) : text);

function conditions(r: Random): JsonValue {
  if (r.chance(0.3)) return [["title", r.pick(["==", "!="]), r.pick(["mine", CANARY.slice(0, 4)])]];
  if (r.chance(0.06)) return oddValue(r);
  return Array.from({ length: r.below(r.chance(0.05) ? 60 : 3) }, (): JsonValue => {
    if (r.chance(0.06)) return oddValue(r);
    return [
      r.pick(FIELDS),
      r.pick(OPERATORS),
      r.chance(0.4) ? oddValue(r) : r.pick<JsonValue>(["mine", 1, true, null, ["a1", 1]]),
    ];
  });
}

const anId = (r: Random): string => r.pick(["a0", "a1", "b0", "b1", "a9", "", "a/0", "a".repeat(257)]);

function record(r: Random): JsonObject {
  const made: JsonObject = { owner: r.chance(0.8) ? ann.id : bob.id, title: r.pick(["mine", "more"]) };
  if (r.chance(0.5)) made["id"] = anId(r);
  if (r.chance(0.3)) made["project"] = anId(r);
  return r.chance(0.4) ? mutated(r, made) : made;
}

function operation(r: Random): JsonObject {
  const action = r.pick(["insert", "update", "upsert", "delete"]);
  const made: JsonObject = { table: oddly(r, r.pick(["projects", "tasks", "owners"])), action: oddly(r, action) };
  if (action !== "delete") made["data"] = action === "update" ? mutated(r, { title: "more" }) : record(r);
  if (action === "update" || action === "delete") made["id"] = anId(r);
  if (r.chance(0.3)) made["if"] = conditions(r);
  if (action === "upsert" && r.chance(0.3)) made["conflictTarget"] = oddly(r, r.pick(["id", "user", "title"]));
  return r.chance(0.2) ? mutated(r, made) : made;
}

interface Sent {
  method: string;
  to: string;
  query: Record<string, string>;
  body?: JsonObject;
  headers?: Record<string, string>;
}

function request(r: Random): Sent {
  const table = path(r.pick(TABLES));
  const query: Record<string, string> = {};
  const maybe = (name: string, value: () => string, probability = 0.4): void => {
    if (r.chance(probability)) query[name] = oddly(r, value());
  };
  const key = (): { headers?: Record<string, string> } =>
    r.chance(0.4) ? { headers: { "Idempotency-Key": r.pick(KEYS) } } : {};
  switch (r.below(6)) {
    case 0:
      maybe(
        "select",
        () => several(r, 4, () => `${r.pick(FUNCTIONS)}(${r.pick(FIELDS)})`.replace("count(id)", "count()")),
        0.8,
      );
      maybe("groupBy", () => several(r, 2, () => `${r.pick(FIELDS)}${r.chance(0.3) ? `:${r.pick(UNITS)}` : ""}`));
      maybe("sort", () => several(r, 2, () => `${r.pick(["count()", "owner", "i"])}:${r.pick(["asc", "desc", "up"])}`));
      maybe("timezone", () => r.pick(ZONES));
      maybe("filter", () => JSON.stringify(conditions(r)));
      maybe("limit", () => r.pick(["1", "1000", "-1", "1e3", ""]));
      return { method: "GET", to: `${table}/aggregate`, query };
    case 1:
      maybe("expand", () => several(r, 3, () => oddly(r, r.pick(PATHS))), 0.95);
      maybe("filter", () => JSON.stringify(conditions(r)), 0.2);
      maybe("fields", () => r.pick(["id", "title,project", "expand"]), 0.2);
      return { method: "GET", to: r.chance(0.5) ? table : `${table}/${encodeURIComponent(anId(r))}`, query };
    case 2:
      maybe("if", () => JSON.stringify(conditions(r)), 0.8);
      return {
        method: r.pick(["PATCH", "DELETE"]),
        to: `${table}/b${r.below(OWN_RECORDS)}`,
        query,
        body: { title: "more" },
        ...key(),
      };
    case 3:
      maybe("if", () => JSON.stringify(conditions(r)), 0.8);
      return {
        method: "PATCH",
        to: `${table}/a${r.below(OWN_RECORDS)}`,
        query,
        body: r.chance(0.3) ? mutated(r, { title: "more" }) : { title: "more" },
        ...key(),
      };
    case 4:
      return { method: "POST", to: table, query, body: record(r), ...key() };
    default: {
      const operations = Array.from({ length: 1 + r.below(4) }, () => operation(r));
      const body: JsonObject = { operations };
      return {
        method: "POST",
        to: `${db}/transaction`,
        query,
        body: r.chance(0.1) ? mutated(r, body) : body,
        ...key(),
      };
    }
  }
}

async function send({ method, to, query, body, headers = {} }: Sent): Promise<{ status: number; text: string }> {
  const parameters = Object.keys(query).length === 0 ? "" : `?${new URLSearchParams(query)}`;
  const json =
    body === undefined || method === "DELETE"
      ? {}
      : { body: JSON.stringify(body), headers: { ...headers, "content-type": "application/json" } };
  const answer = await ann.fetch(`${to}${parameters}`, { method, headers, ...json });
  return { status: answer.status, text: await answer.text() };
}

const errorsLogged = (): string[] =>
  `${platform.stdout()}\n${platform.stderr()}`.split("\n").filter((line) => /"level":"(?:ERROR|FATAL)"/.test(line));

test(`[TB301, TB304, TB320, TB402, TB414] aggregates, expand, conditions, keys and transactions survive any input (seed ${SEED})`, async () => {
  const r = random(SEED);
  const statuses = new Map<number, number>();
  for (let round = 0; round < ROUNDS; round += AT_ONCE) {
    const requests = Array.from({ length: AT_ONCE }, () => request(r));
    const answers = await Promise.all(requests.map(send));
    for (const [index, { status, text }] of answers.entries()) {
      const sent = JSON.stringify(requests[index]).slice(0, 3_000);
      statuses.set(status, (statuses.get(status) ?? 0) + 1);
      const isExpected = [200, 201, 400, 403, 404, 409, 412, 422, 431].includes(status);
      expect({ sent, status, text, isExpected }).toEqual({ sent, status, text, isExpected: true });
      // An answer may repeat what the request named, but nothing of others' records.
      const isTold = text.includes(CANARY) || (status < 300 && text.includes(bob.id) && !sent.includes(bob.id));
      expect({ sent, text, isTold }).toEqual({ sent, text, isTold: false });
    }
  }
  for (const status of [200, 201, 400, 403, 404, 409, 412, 422]) {
    expect({ status, isSeen: statuses.has(status) }).toEqual({ status, isSeen: true });
  }
  expect(await recordsOfBob()).toBe(before);
  expect(errorsLogged()).toEqual([]);
}, 600_000);

test(`[JB12] a job gets any JSON as it was given (seed ${SEED})`, async () => {
  const r = random(SEED + 1);
  const values = Array.from({ length: 60 }, () => oddValue(r));
  for (const [index, value] of values.entries()) {
    const text = JSON.stringify({ key: `v${index}`, value });
    const answer = await ann.fetch("/api/functions/keep", {
      ...{ method: "POST", headers: { "content-type": "application/json" }, body: text },
    });
    const told = await answer.text();
    // Too deep for JSON as it is accepted here.
    if (answer.status === 400) continue;
    expect({ text: text.slice(0, 200), status: answer.status, told }).toMatchObject({ status: 200 });
    await until(`v${index} is kept`, async () => {
      const { body } = await platform.service.post("/api/kv/kept", { action: "get", key: `v${index}` });
      return JSON.stringify(body["value"]) === JSON.stringify({ value });
    });
  }
  expect(errorsLogged()).toEqual([]);
}, 120_000);
