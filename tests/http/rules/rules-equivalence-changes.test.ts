import { afterAll, beforeAll, expect, test } from "bun:test";
import type { JsonObject } from "../../../src/kernel/json/json.ts";
import type { ListAnswer } from "../../support/index.ts";
import { testSeed } from "../../support/random.ts";
import {
  type Action,
  ask,
  type Caller,
  granted,
  type Heard,
  isHidden,
  looksUp,
  may,
  type RuledTable,
  type RulesWorld,
  recordOf,
  refused,
  rulesWorld,
  throughApp,
  throughMcp,
} from "../../support/rules-world.ts";

// Every kind of change is decided alike, and its answer reveals nothing that the caller may not read.
//
// A new way is a new entry in WAYS: how it is asked, and what it needs, in the terms of the oracle. Each runs on a record
// of its own, so that all of them can be asked at once; afterwards the table is read as root, and compared.

const SEED = testSeed(20_262);
const ROUNDS = Number(process.env["PLATFORM_FUZZ_ROUNDS"] ?? 1);
const TABLES_PER_ROUND = 20;

let world: RulesWorld;
beforeAll(async () => {
  world = await rulesWorld(SEED, TABLES_PER_ROUND * ROUNDS);
});
afterAll(() => world.stop());

/** One attempt: by whom, on which record, to what. */
interface Attempt {
  table: RuledTable;
  caller: Caller;
  id: string;
  /** null: the id is free. */
  stored: JsonObject | null;
  /** The record as it would become. */
  next: JsonObject;
  n: number;
}

interface Verdict {
  status: number;
  /** The record afterwards; null: it does not exist. */
  after: JsonObject | null;
}

interface Way {
  name: string;
  kind: "insert" | "update" | "delete";
  request(attempt: Attempt): [path: string, method: string, body?: JsonObject];
  verdict(attempt: Attempt): Verdict;
  /** The answer's body. */
  says?(attempt: Attempt, heard: Heard): void;
}

const is = (attempt: Attempt, action: Action) => granted(attempt.table, attempt.caller, action);
const mayDo = ({ table, caller, stored, next }: Attempt, action: Action): boolean =>
  may(table, caller, action, action === "insert" ? next : (stored ?? next), next);

const refusal = (attempt: Attempt): Verdict => ({ status: refused(attempt.caller), after: attempt.stored });
const done = (attempt: Attempt, status = 200): Verdict => ({ status, after: attempt.next });

/** Whether nothing that one of these actions needs is granted at all, before any record is looked at. */
const hasNone = (attempt: Attempt, actions: readonly Action[]): boolean =>
  actions.every((action) => is(attempt, action) === "none");

const inserting = (attempt: Attempt): Verdict =>
  mayDo(attempt, "insert") ? done(attempt, 201) : { ...refusal(attempt), after: null };

const changing = (action: "update" | "delete", attempt: Attempt): Verdict => {
  const { table, caller, stored } = attempt;
  if (is(attempt, action) === "none") return refusal(attempt);
  if (stored !== null && isHidden(table, caller, stored)) {
    const isAnonymous = refused(caller) === 401;
    return { status: isAnonymous && is(attempt, action) === "record" ? 401 : 404, after: stored };
  }
  if (!mayDo(attempt, action)) return refusal(attempt);
  return { status: 200, after: action === "delete" ? null : attempt.next };
};

const changingByFilter = (action: "update" | "delete", attempt: Attempt): Verdict => {
  const { table, caller, stored } = attempt;
  if (is(attempt, action) === "none") return refusal(attempt);
  const isChanged = stored !== null && may(table, caller, "read", stored) && mayDo(attempt, action);
  return { status: 200, after: isChanged ? (action === "delete" ? null : attempt.next) : stored };
};

/** Whether a rule gave true or nothing by the caller alone; an empty filter would be a filter. */
const isByAuth = (attempt: Attempt, action: Action): boolean =>
  typeof is(attempt, action) === "string" &&
  is(attempt, action) !== "record" &&
  !looksUp(attempt.table, attempt.caller, action);

const upserting = (attempt: Attempt): Verdict => {
  const { table, caller, stored } = attempt;
  if (hasNone(attempt, ["insert", "update"])) return { ...refusal(attempt), after: stored };
  // Scopes decide for keys, whatever the rules of the table are.
  const isKey = caller.scopes !== null;
  const byAuth = table.upsert === null && isByAuth(attempt, "insert") && isByAuth(attempt, "update");
  const isEither = !isKey && (table.upsert === "either" || byAuth);
  if (stored === null) {
    const byUpdate = isEither && is(attempt, "update") === "all" && !looksUp(table, caller, "update");
    return mayDo(attempt, "insert") || byUpdate ? done(attempt, 201) : { ...refusal(attempt), after: null };
  }
  const isAskedToRead = !isKey && table.upsert !== "either" && !(isEither && is(attempt, "read") === "none");
  if (isAskedToRead && !may(table, caller, "read", stored)) return refusal(attempt);
  return mayDo(attempt, "update") || (isEither && mayDo(attempt, "insert")) ? done(attempt) : refusal(attempt);
};

/** A batch answers 200 where a single request would say 201. */
const batched = (verdict: Verdict): Verdict => ({ ...verdict, status: verdict.status === 201 ? 200 : verdict.status });

const byFilter = (action: "update" | "delete", attempt: Attempt, heard: Heard): void => {
  if (heard.status !== 200) return;
  const { table, caller, stored } = attempt;
  const isFound = stored !== null && may(table, caller, "read", stored);
  const succeeded = isFound && mayDo(attempt, action) ? 1 : 0;
  expect({ caller: caller.name, stored, ...heard.body }).toEqual({
    ...{ caller: caller.name, stored },
    ...{ processed: isFound ? 1 : 0, succeeded },
  });
};

const whole = ({ next }: Attempt): JsonObject => next;

/** With a condition on the stored record, which only callers that may read it have. */
const conditional = (action: "update" | "delete", attempt: Attempt, { isMet }: { isMet: boolean }): Verdict => {
  const verdict = changing(action, attempt);
  const { table, caller, stored } = attempt;
  if (verdict.status !== 200 || stored === null) return verdict;
  if (!may(table, caller, "read", stored)) return refusal(attempt);
  return isMet ? verdict : { status: 412, after: stored };
};

const condition = (id: string) => `if=${encodeURIComponent(JSON.stringify([["id", "==", id]]))}`;

/** A request of one operation on the attempt's table. */
const transaction = ({ table }: Attempt, operation: JsonObject): [path: string, method: string, body: JsonObject] => [
  table.path.replace(/\/tables\/.*/, "/transaction"),
  "POST",
  { operations: [{ table: table.name, ...operation }] },
];

const WAYS: readonly Way[] = [
  {
    name: "an insert by a tool for agents",
    kind: "insert",
    request: (attempt) =>
      throughMcp(
        attempt.caller,
        attempt.table,
        ["insert_record", { record: whole(attempt) }],
        [`${attempt.table.path}/batch`, "POST", { inserts: [whole(attempt)] }],
      ),
    verdict: (attempt) => batched(inserting(attempt)),
  },
  {
    name: "an update by a tool for agents",
    kind: "update",
    request: ({ caller, table, id, n }) =>
      throughMcp(caller, table, ["update_record", { id, changes: { n } }], [`${table.path}/${id}`, "PATCH", { n }]),
    verdict: (attempt) => changing("update", attempt),
  },
  {
    name: "a delete by a tool for agents",
    kind: "delete",
    request: ({ caller, table, id }) =>
      throughMcp(caller, table, ["delete_record", { id }], [`${table.path}/${id}`, "DELETE"]),
    verdict: (attempt) => changing("delete", attempt),
  },
  {
    name: "an update in a transaction by a tool for agents",
    kind: "update",
    request: (attempt) => {
      const { caller, table, id, n } = attempt;
      const operation = { action: "update", id, data: { n } };
      const tool = throughMcp(caller, table, ["transaction", {}], transaction(attempt, operation));
      const params = tool[2]?.["params"];
      if (params === undefined) return tool;
      const { namespace, instance } = (params as { arguments: Record<string, string> }).arguments;
      const place = instance === undefined ? { namespace } : { namespace, instance };
      const args = { ...place, operations: [{ table: table.name, ...operation }] } as JsonObject;
      return [tool[0], tool[1], { ...tool[2], params: { name: "transaction", arguments: args } }];
    },
    verdict: (attempt) => changing("update", attempt),
  },
  {
    name: "an insert in a transaction",
    kind: "insert",
    request: (attempt) => transaction(attempt, { action: "insert", data: whole(attempt) }),
    verdict: (attempt) => batched(inserting(attempt)),
  },
  {
    name: "an upsert of something new in a transaction",
    kind: "insert",
    request: (attempt) =>
      transaction(attempt, { action: "upsert", data: whole(attempt), if: [["id", "==", "something else"]] }),
    verdict: (attempt) => batched(upserting(attempt)),
  },
  {
    name: "an update in a transaction",
    kind: "update",
    request: (attempt) => transaction(attempt, { action: "update", id: attempt.id, data: { n: attempt.n } }),
    verdict: (attempt) => changing("update", attempt),
  },
  {
    name: "an upsert of a record in a transaction",
    kind: "update",
    request: (attempt) => transaction(attempt, { action: "upsert", data: { id: attempt.id, n: attempt.n } }),
    verdict: upserting,
  },
  {
    name: "a delete in a transaction",
    kind: "delete",
    request: (attempt) => transaction(attempt, { action: "delete", id: attempt.id }),
    verdict: (attempt) => changing("delete", attempt),
  },
  {
    name: "an insert in a transaction by app.as",
    kind: "insert",
    request: (attempt) =>
      throughApp(
        attempt.caller,
        attempt.table,
        ["transaction insert", whole(attempt)],
        [attempt.table.path, "POST", whole(attempt)],
      ),
    verdict: (attempt) => (attempt.caller.key === null ? batched(inserting(attempt)) : inserting(attempt)),
  },
  {
    name: "an update in a transaction by app.as",
    kind: "update",
    request: ({ caller, table, id, n }) =>
      throughApp(caller, table, ["transaction update", id, { n }], [`${table.path}/${id}`, "PATCH", { n }]),
    verdict: (attempt) => changing("update", attempt),
  },
  {
    name: "an upsert in a transaction by app.as",
    kind: "update",
    request: ({ caller, table, id, n }) =>
      throughApp(caller, table, ["transaction upsert", { id, n }], [`${table.path}?upsert=true`, "POST", { id, n }]),
    verdict: upserting,
  },
  {
    name: "a delete in a transaction by app.as",
    kind: "delete",
    request: ({ caller, table, id }) =>
      throughApp(caller, table, ["transaction delete", id], [`${table.path}/${id}`, "DELETE"]),
    verdict: (attempt) => changing("delete", attempt),
  },
  {
    name: "PATCH with a condition that is met",
    kind: "update",
    request: ({ table, id, n }) => [`${table.path}/${id}?${condition(id)}`, "PATCH", { n }],
    verdict: (attempt) => conditional("update", attempt, { isMet: true }),
  },
  {
    name: "PATCH with a condition that is not met",
    kind: "update",
    request: ({ table, id, n }) => [`${table.path}/${id}?${condition("x")}`, "PATCH", { n }],
    verdict: (attempt) => conditional("update", attempt, { isMet: false }),
  },
  {
    name: "DELETE with a condition that is met",
    kind: "delete",
    request: ({ table, id }) => [`${table.path}/${id}?${condition(id)}`, "DELETE"],
    verdict: (attempt) => conditional("delete", attempt, { isMet: true }),
  },
  {
    name: "a delete with a condition that is not met in a transaction",
    kind: "delete",
    request: (attempt) => transaction(attempt, { action: "delete", id: attempt.id, if: [["id", "==", "x"]] }),
    verdict: (attempt) => conditional("delete", attempt, { isMet: false }),
  },
  {
    name: "POST",
    kind: "insert",
    request: (attempt) => [attempt.table.path, "POST", whole(attempt)],
    verdict: inserting,
  },
  {
    name: "an insert by app.as",
    kind: "insert",
    request: (attempt) =>
      throughApp(
        attempt.caller,
        attempt.table,
        ["insert", whole(attempt)],
        [attempt.table.path, "POST", whole(attempt)],
      ),
    verdict: (attempt) => (attempt.caller.key === null ? batched(inserting(attempt)) : inserting(attempt)),
  },
  {
    name: "an insert in a batch",
    kind: "insert",
    request: (attempt) => [`${attempt.table.path}/batch`, "POST", { inserts: [whole(attempt)] }],
    verdict: (attempt) => batched(inserting(attempt)),
  },
  {
    name: "an upsert of something new",
    kind: "insert",
    request: (attempt) => [`${attempt.table.path}?upsert=true`, "POST", whole(attempt)],
    verdict: upserting,
  },
  {
    name: "an upsert of something new in a batch",
    kind: "insert",
    request: (attempt) => [`${attempt.table.path}/batch?upsert=true`, "POST", { inserts: [whole(attempt)] }],
    verdict: (attempt) => batched(upserting(attempt)),
  },
  {
    name: "PATCH",
    kind: "update",
    request: ({ table, id, n }) => [`${table.path}/${id}`, "PATCH", { n }],
    verdict: (attempt) => changing("update", attempt),
  },
  {
    name: "an update by app.as",
    kind: "update",
    request: ({ caller, table, id, n }) =>
      throughApp(caller, table, ["update", id, { n }], [`${table.path}/${id}`, "PATCH", { n }]),
    verdict: (attempt) => changing("update", attempt),
  },
  {
    name: "an upsert by app.as",
    kind: "update",
    request: ({ caller, table, id, n }) =>
      throughApp(caller, table, ["upsert", { id, n }], [`${table.path}?upsert=true`, "POST", { id, n }]),
    verdict: upserting,
  },
  {
    name: "an update in a batch",
    kind: "update",
    request: ({ table, id, n }) => [`${table.path}/batch`, "POST", { updates: [{ id, data: { n } }] }],
    verdict: (attempt) => changing("update", attempt),
  },
  {
    name: "an update by filter",
    kind: "update",
    request: ({ table, id, n }) => [
      `${table.path}/batch-by-filter`,
      "POST",
      { action: "update", filter: [["id", "==", id]], data: { n } },
    ],
    verdict: (attempt) => changingByFilter("update", attempt),
    says: (attempt, heard) => byFilter("update", attempt, heard),
  },
  {
    name: "an upsert of a record",
    kind: "update",
    request: ({ table, id, n }) => [`${table.path}?upsert=true`, "POST", { id, n }],
    verdict: upserting,
  },
  {
    name: "an upsert by another unique field",
    kind: "update",
    request: ({ table, id, n }) => [`${table.path}?upsert=true&conflictTarget=slug`, "POST", { slug: `slug-${id}`, n }],
    verdict: upserting,
  },
  {
    name: "an upsert of a record in a batch",
    kind: "update",
    request: ({ table, id, n }) => [`${table.path}/batch?upsert=true`, "POST", { inserts: [{ id, n }] }],
    verdict: upserting,
  },
  {
    name: "DELETE",
    kind: "delete",
    request: ({ table, id }) => [`${table.path}/${id}`, "DELETE"],
    verdict: (attempt) => changing("delete", attempt),
  },
  {
    name: "a delete by app.as",
    kind: "delete",
    request: ({ caller, table, id }) => throughApp(caller, table, ["delete", id], [`${table.path}/${id}`, "DELETE"]),
    verdict: (attempt) => changing("delete", attempt),
  },
  {
    name: "a delete in a batch",
    kind: "delete",
    request: ({ table, id }) => [`${table.path}/batch`, "POST", { deletes: [id] }],
    verdict: (attempt) => changing("delete", attempt),
  },
  {
    name: "a delete by filter",
    kind: "delete",
    request: ({ table, id }) => [
      `${table.path}/batch-by-filter`,
      "POST",
      { action: "delete", orFilter: [["slug", "==", `slug-${id}`]] },
    ],
    verdict: (attempt) => changingByFilter("delete", attempt),
    says: (attempt, heard) => byFilter("delete", attempt, heard),
  },
];

/** A fresh record for each way, or a free id where it inserts. */
async function attemptsOf(table: RuledTable, caller: Caller, root: Caller): Promise<(Attempt & { way: Way })[]> {
  const attempts = WAYS.map((way, index) => {
    const id = `w${index}-${caller.name}`;
    const record = recordOf(world.r, table.name, id, world.owners);
    const n = world.r.below(6);
    const isNew = way.kind === "insert";
    // Values that the caller sent are not secret to it.
    const next: JsonObject = isNew ? { ...record, secret: "mine" } : { ...record, n };
    return { way, table, caller, id, stored: isNew ? null : record, next, n };
  });
  const inserts = attempts.flatMap(({ stored }) => (stored === null ? [] : [stored]));
  expect((await ask(root, "POST", `${table.path}/batch`, { inserts })).status).toBe(200);
  return attempts;
}

/** The fields of a record that the test has set. */
const withoutTimes = ({ createdAt: _1, updatedAt: _2, stamp: _3, ...record }: JsonObject): JsonObject => record;

test(`[TB55, TB67] every kind of change allows the same, and answers what may be read (seed ${SEED})`, async () => {
  const root = world.callers.find(({ name }) => name === "root");
  if (root === undefined) throw new Error("no root");
  const statuses = new Map<number, number>();
  for (const table of world.tables) {
    for (const caller of world.callers) {
      const attempts = await attemptsOf(table, caller, root);
      const heard = await Promise.all(
        attempts.map((attempt) => {
          const [path, method, body] = attempt.way.request(attempt);
          return ask(caller, method, path, body);
        }),
      );
      const filter = JSON.stringify([["id", "in", attempts.map(({ id }) => id)]]);
      const left = (await ask(root, "GET", `${table.path}?filter=${encodeURIComponent(filter)}`)).body;
      const found = new Map((left as unknown as ListAnswer).items.map((one) => [one["id"], withoutTimes(one)]));
      for (const [index, attempt] of attempts.entries()) {
        const answer = heard[index];
        if (answer === undefined) throw new Error("no answer");
        const { way, id, stored } = attempt;
        const verdict = way.verdict(attempt);
        const rules = Object.fromEntries(Object.entries(table.rules).map(([name, rule]) => [name, rule?.source]));
        const about = { way: way.name, caller: caller.name, upsert: table.upsert, rules, stored };
        const got = { ...about, status: answer.status, after: found.get(id) ?? null };
        expect(got).toEqual({ ...about, ...verdict });
        statuses.set(answer.status, (statuses.get(answer.status) ?? 0) + 1);
        way.says?.(attempt, answer);
        const isShown = stored !== null && verdict.after !== null && may(table, caller, "read", verdict.after);
        const mayTell = isShown && way.kind === "update" && answer.status === 200 && way.says === undefined;
        expect({ ...about, secretsOf: answer.secretsOf }).toEqual({ ...about, secretsOf: mayTell ? [id] : [] });
        // What a hook has set shows wherever the record may be read, of new records too.
        const isWritten =
          verdict.after !== null && answer.status < 300 && way.kind !== "delete" && way.says === undefined;
        const stamps = isWritten && may(table, caller, "read", verdict.after ?? {}) ? [`stamp:${id};`] : [];
        const told = [...answer.text.matchAll(/stamp:[\w-]+;/g)].map(([stamp]) => stamp);
        expect({ ...about, stamps: told }).toEqual({ ...about, stamps });
      }
    }
  }
  // Some rules allow and some deny.
  for (const status of [200, 201, 401, 403, 404]) expect(statuses.get(status) ?? 0).toBeGreaterThan(0);
});

test(`[TB23, TB55] a duplicate value is reported as such, only to callers that may insert it (seed ${SEED})`, async () => {
  let conflicts = 0;
  for (const table of world.tables) {
    const [taken] = table.records.keys();
    for (const caller of world.callers) {
      for (const field of ["id", "slug"] as const) {
        const fresh = recordOf(world.r, table.name, `c-${caller.name}`, world.owners);
        const body: JsonObject = {
          ...fresh,
          secret: "mine",
          [field]: field === "id" ? (taken ?? "") : `slug-${taken}`,
        };
        const attempt = { table, caller, id: String(body["id"]), stored: null, next: body, n: 0 };
        const requests: [path: string, body: JsonObject][] = [
          [table.path, body],
          [`${table.path}/batch`, { inserts: [body] }],
        ];
        for (const [path, inserts] of requests) {
          const heard = await ask(caller, "POST", path, inserts);
          const isAllowed = mayDo(attempt, "insert");
          const about = { caller: caller.name, insert: table.rules.insert?.source, field, path };
          expect({ ...about, status: heard.status }).toEqual({ ...about, status: isAllowed ? 409 : refused(caller) });
          expect(heard.secretsOf).toEqual([]);
          if (!isAllowed) continue;
          conflicts++;
          const named = Object.keys((heard.body["data"] ?? {}) as JsonObject); // as specified
          expect(named).toEqual([path === table.path ? field : `inserts.0.${field}`]);
        }
      }
    }
  }
  expect(conflicts).toBeGreaterThan(10);
});
