import { afterAll, beforeAll, expect, test } from "bun:test";
import type { JsonObject, JsonValue } from "../../../src/kernel/json/json.ts";
import { type ListAnswer, platformCommand, testPlatform } from "../../support/index.ts";
import { testSeed } from "../../support/random.ts";
import { holds, randomTuple, type Tuple } from "../../support/rules.ts";
import {
  ask,
  type Caller,
  granted,
  type Heard,
  isHidden,
  may,
  type RuledTable,
  type RulesWorld,
  refused,
  rulesWorld,
  secretsIn,
  throughApp,
  throughMcp,
} from "../../support/rules-world.ts";

// Every access to a record is decided alike: random rules, records and callers, and an oracle that evaluates the rules
// (tests/support/rules.ts). Changes are in rules-equivalence-changes.test.ts, files in rules-equivalence-files.test.ts,
// sockets in tests/ws/rules/rules-equivalence.test.ts.
//
// A new way to read records is a new entry in WAYS: it answers with the ids that it gave, or with its refusal. Whatever
// else an answer holds, the secret of a record that its caller may not read must not be in it.

const SEED = testSeed(20_261);
const ROUNDS = Number(process.env["PLATFORM_FUZZ_ROUNDS"] ?? 1);
const TABLES_PER_ROUND = 24;
const PAGE = 4;

let world: RulesWorld;
beforeAll(async () => {
  world = await rulesWorld(SEED, TABLES_PER_ROUND * ROUNDS);
});
afterAll(() => world.stop());

type Outcome = { ids: string[]; refusedWith: number | null };
type Want = { table: RuledTable; caller: Caller; filter: Tuple[]; orFilter: Tuple[] };

const q = (parameters: Record<string, string | number>): string =>
  `?${new URLSearchParams(Object.entries(parameters).map(([name, value]): [string, string] => [name, String(value)]))}`;
const filters = ({ filter, orFilter }: Want) => ({
  filter: JSON.stringify(filter),
  orFilter: JSON.stringify(orFilter),
});
/** The filter of a request that has one alone. */
const wholeFilter = ({ filter, orFilter }: Want): JsonValue =>
  // Tuples are JSON.
  [...filter, ...(orFilter.length === 0 ? [] : [{ or: orFilter.map((tuple) => [tuple]) }])] as unknown as JsonValue;
const idsOf = (heard: Heard): string[] => (heard.body as unknown as ListAnswer).items.map((one) => String(one["id"]));
const outcome = (heard: Heard, ids = heard.status === 200 ? idsOf(heard) : []): Outcome => {
  if (heard.status !== 200) return { ids: [], refusedWith: heard.status };
  return { ids, refusedWith: null };
};

/** Follows pages until the end, or until one is refused. */
async function walk(first: string, next: (heard: Heard) => string | null, caller: Caller): Promise<Outcome> {
  const ids: string[] = [];
  for (let path: string | null = first; path !== null; ) {
    const heard = await ask(caller, "GET", path);
    if (heard.status !== 200) return { ids, refusedWith: heard.status };
    ids.push(...idsOf(heard));
    path = next(heard);
  }
  return { ids, refusedWith: null };
}

/** Each page's ids alone are judged: where the last page ends, pages backwards begin. */
const backwards = async (want: Want): Promise<Outcome> => {
  const { table, caller } = want;
  const before = (cursor: string) => `${table.path}${q({ ...filters(want), limit: PAGE, before: cursor })}`;
  const walked = await walk(
    before("zzz"),
    ({ body }) => (body["cursor"] === null ? null : before(String(body["cursor"]))),
    caller,
  );
  return { ...walked, ids: walked.ids.sort() };
};

interface Way {
  name: string;
  /** Pages that a rule looking at records refuses one by one. */
  isPaged?: boolean;
  /** Sorts or searches by what is in the records, which a rule that looks at records does not allow. */
  isByContent?: boolean;
  /** Evaluates the filter itself, record by record. */
  isOneByOne?: boolean;
  run(want: Want): Promise<Outcome>;
}

const WAYS: readonly Way[] = [
  {
    name: "a list",
    run: async (want) =>
      outcome(await ask(want.caller, "GET", `${want.table.path}${q({ ...filters(want), limit: 1000 })}`)),
  },
  {
    name: "a list by app.as",
    run: async (want) => {
      const { filter, orFilter, caller, table } = want;
      const plain = `${table.path}${q({ ...filters(want), limit: 1000 })}`;
      const options = { filter, orFilter, limit: 1000 } as unknown as JsonObject;
      const [path, method, body] = throughApp(caller, table, ["list", options], [plain, "GET"]);
      return outcome(await ask(caller, method, path, body));
    },
  },
  {
    name: "a search by app.as",
    isByContent: true,
    run: async (want) => {
      const { filter, orFilter, caller, table } = want;
      const plain = `${table.path}/search${q({ ...filters(want), q: "w", limit: 1000 })}`;
      const options = { filter, orFilter, limit: 1000 } as unknown as JsonObject;
      const [path, method, body] = throughApp(caller, table, ["search", "w", options], [plain, "GET"]);
      const heard = outcome(await ask(caller, method, path, body));
      return { ...heard, ids: heard.ids.sort() };
    },
  },
  {
    name: "a list by a tool for agents",
    run: async (want) => {
      const { caller, table } = want;
      const plain = `${table.path}${q({ ...filters(want), limit: 1000 })}`;
      const args = { filter: wholeFilter(want), limit: 100 };
      const [path, method, body] = throughMcp(caller, table, ["list_records", args], [plain, "GET"]);
      return outcome(await ask(caller, method, path, body));
    },
  },
  {
    name: "a search by a tool for agents",
    isByContent: true,
    run: async (want) => {
      const { caller, table } = want;
      const plain = `${table.path}/search${q({ ...filters(want), q: "w", limit: 1000 })}`;
      const args = { q: "w", filter: wholeFilter(want), limit: 100 };
      const [path, method, body] = throughMcp(caller, table, ["search_records", args], [plain, "GET"]);
      const heard = outcome(await ask(caller, method, path, body));
      return { ...heard, ids: heard.ids.sort() };
    },
  },
  {
    name: "a list of chosen fields in another order",
    isByContent: true,
    run: async (want) => {
      const query = q({ ...filters(want), fields: "secret", sort: "n:desc,s" });
      const heard = outcome(await ask(want.caller, "GET", `${want.table.path}${query}`));
      return { ...heard, ids: heard.ids.sort() };
    },
  },
  {
    name: "pages after a cursor",
    isPaged: true,
    run: (want) => {
      const page = q({ ...filters(want), limit: PAGE });
      const after = (cursor: unknown) => `${want.table.path}${page}&after=${encodeURIComponent(String(cursor))}`;
      const next = ({ body }: Heard) => (body["cursor"] === null ? null : after(body["cursor"]));
      return walk(`${want.table.path}${page}`, next, want.caller);
    },
  },
  { name: "pages before a cursor", isPaged: true, run: backwards },
  {
    name: "pages by offset",
    isPaged: true,
    run: (want) => {
      const { table, caller } = want;
      const page = (number: number) => `${table.path}${q({ ...filters(want), limit: PAGE, page: number })}`;
      const next = ({ body }: Heard) =>
        (body as unknown as ListAnswer).items.length < PAGE ? null : page(Number(body["page"]) + 1);
      return walk(page(1), next, caller);
    },
  },
  {
    name: "a search",
    isByContent: true,
    run: async (want) => {
      const heard = outcome(
        await ask(want.caller, "GET", `${want.table.path}/search${q({ ...filters(want), q: "w", limit: 1000 })}`),
      );
      return { ...heard, ids: heard.ids.sort() };
    },
  },
  {
    name: "a search by words and meaning",
    isByContent: true,
    run: async (want) => {
      const query = q({ ...filters(want), q: "w", mode: "hybrid", limit: 1000 });
      const heard = outcome(await ask(want.caller, "GET", `${want.table.path}/search${query}`));
      return { ...heard, ids: heard.ids.sort() };
    },
  },
  {
    name: "a search by words and meaning by app.as",
    isByContent: true,
    run: async (want) => {
      const { filter, orFilter, caller, table } = want;
      const plain = `${table.path}/search${q({ ...filters(want), q: "w", mode: "hybrid", limit: 1000 })}`;
      const options = { filter, orFilter, mode: "hybrid", limit: 1000 } as unknown as JsonObject;
      const [path, method, body] = throughApp(caller, table, ["search", "w", options], [plain, "GET"]);
      const heard = outcome(await ask(caller, method, path, body));
      return { ...heard, ids: heard.ids.sort() };
    },
  },
  {
    name: "the nearest of a record, and the record itself",
    isByContent: true,
    run: async (want) => {
      const { table, caller } = want;
      const records = [...table.records.values()];
      const own = records.find((record) => may(table, caller, "read", record)) ?? records[0] ?? {};
      const path = `${table.path}/${own["id"]}/nearest${q({ ...filters(want), limit: 100 })}`;
      const heard = await ask(caller, "GET", path);
      // Hidden behind a filter, as all others are.
      if (heard.status === 404) return { ids: [], refusedWith: null };
      const found = outcome(heard);
      const itself = heard.status === 200 && matches(want, own) ? [String(own["id"])] : [];
      return { ...found, ids: [...found.ids, ...itself].sort() };
    },
  },
  {
    name: "records one by one",
    isOneByOne: true,
    run: async (want) => {
      const matching = [...want.table.records.values()].filter((record) => matches(want, record));
      const answers = await Promise.all(
        matching.map(async ({ id }) => ({
          id: String(id),
          heard: await ask(want.caller, "GET", `${want.table.path}/${id}`),
        })),
      );
      const statuses = new Set(answers.map(({ heard }) => heard.status));
      // The statuses are checked below, record by record.
      expect([...statuses].filter((status) => ![200, 404, refused(want.caller)].includes(status))).toEqual([]);
      const isRefused = statuses.has(refused(want.caller));
      const ids = answers.filter(({ heard }) => heard.status === 200).map(({ id }) => id);
      return { ids: isRefused ? [] : ids, refusedWith: isRefused ? refused(want.caller) : null };
    },
  },
];

const matches = ({ filter, orFilter }: Want, record: JsonObject): boolean =>
  filter.every((tuple) => holds(tuple, record)) &&
  (orFilter.length === 0 || orFilter.some((tuple) => holds(tuple, record)));

/** The result that every way must have. */
function wanted(want: Want, way: Pick<Way, "isByContent" | "isOneByOne">): Outcome {
  const { table, caller } = want;
  const grant = granted(table, caller, "read");
  const isFiltered = want.filter.length + want.orFilter.length > 0 && way.isOneByOne !== true;
  if (grant === "record" && (isFiltered || way.isByContent === true)) return { ids: [], refusedWith: refused(caller) };
  const matching = [...table.records.values()].filter((record) => matches(want, record));
  const allowed = matching.filter((record) => may(table, caller, "read", record));
  const isDenied = grant === "none" || (grant === "record" && allowed.length < matching.length);
  if (isDenied) return { ids: [], refusedWith: refused(caller) };
  return { ids: allowed.map((record) => String(record["id"])), refusedWith: null };
}

test(`[TB55] every kind of read answers the same records (seed ${SEED})`, async () => {
  for (const table of world.tables) {
    for (const caller of world.callers) {
      const tuples = (most: number) =>
        Array.from({ length: world.r.below(most) }, () => randomTuple(world.r, world.owners));
      const want = { table, caller, filter: tuples(3), orFilter: tuples(3) };
      const about = { table: table.name, read: table.rules.read?.source, caller: caller.name, ...filters(want) };
      for (const way of WAYS) {
        const got = await way.run(want);
        const must = wanted(want, way);
        // A refused walk may have read complete pages before.
        if (way.isPaged === true && must.refusedWith !== null) got.ids = [];
        // One by one a rule without the record is asked even where nothing matches, and nothing is requested.
        const isUnasked =
          way.name === "records one by one" && [...table.records.values()].every((one) => !matches(want, one));
        if (!isUnasked) expect({ ...about, way: way.name, ...got }).toEqual({ ...about, way: way.name, ...must });
      }
      const counted = await ask(caller, "GET", `${table.path}/count${q(filters(want))}`);
      const must = wanted(want, { isByContent: true });
      const total = must.refusedWith === null ? must.ids.length : undefined;
      expect({ ...about, total: counted.body["total"] }).toEqual({ ...about, total });
      const aggregated = await ask(
        caller,
        "GET",
        `${table.path}/aggregate${q({ ...filters(want), groupBy: "secret" })}`,
      );
      expect({ ...about, secrets: aggregated.secretsOf, status: aggregated.status }).toEqual({
        ...about,
        secrets: [...must.ids].sort(),
        status: must.refusedWith ?? 200,
      });
    }
  }
});

test(`[TB48, TB49] each record is decided by its rule, and hidden records are answered like missing ones (seed ${SEED})`, async () => {
  for (const table of world.tables) {
    for (const caller of world.callers) {
      const { path } = table;
      const missing = await Promise.all(
        probes(path, "missing").map(([method, url, body]) => ask(caller, method, url, body)),
      );
      for (const [id, record] of table.records) {
        const grant = granted(table, caller, "read");
        const isAllowed = may(table, caller, "read", record);
        const status = isAllowed ? 200 : isHidden(table, caller, record) ? 404 : refused(caller);
        const heard = await ask(caller, "GET", `${path}/${id}`);
        const about = { read: table.rules.read?.source, caller: caller.name, record };
        expect({ ...about, status: heard.status }).toEqual({ ...about, status });
        expect(heard.secretsOf).toEqual(isAllowed ? [id] : []);
        expect((await ask(caller, "HEAD", `${path}/${id}`)).status).toBe(status);
        for (const get of ["get", "transaction get"]) {
          const [way, method, body] = throughApp(caller, table, [get, id], [`${path}/${id}`, "GET"]);
          const byApp = await ask(caller, method, way, body);
          expect({ ...about, get, status: byApp.status, secretsOf: byApp.secretsOf }).toEqual({
            ...about,
            get,
            status,
            secretsOf: isAllowed ? [id] : [],
          });
        }
        if (typeof grant === "string" || isAllowed) continue;
        const hidden = await Promise.all(probes(path, id).map(([method, url, body]) => ask(caller, method, url, body)));
        for (const [index, answer] of hidden.entries()) {
          const text = answer.text.replaceAll(`"${id}\\"`, '"missing\\"');
          expect({ ...about, text }).toEqual({ ...about, text: missing[index]?.text ?? "" });
        }
      }
    }
  }
});

/** Requests that name a record, and change none that the caller can see. */
const probes = (path: string, id: string): [method: string, path: string, body?: JsonObject][] => [
  ["GET", `${path}/${id}`],
  ["GET", `${path}/${id}?fields=secret`],
  ["GET", `${path}/${id}/nearest`],
  ["PATCH", `${path}/${id}`, { n: 1 }],
  ["DELETE", `${path}/${id}`],
  ["POST", `${path}/batch`, { updates: [{ id, data: {} }] }],
  ["POST", `${path}/batch`, { deletes: [id] }],
  ["POST", `${path}/batch-by-filter`, { action: "update", filter: [["id", "==", id]], data: { n: 1 } }],
  ["POST", `${path}/batch-by-filter`, { action: "delete", filter: [["id", "==", id]] }],
  ["PATCH", `${path}/${id}?if=${encodeURIComponent('[["n","==",1]]')}`, { n: 1 }],
  ["DELETE", `${path}/${id}?if=x`],
  ...["update", "delete"].map((action): [method: string, path: string, body: JsonObject] => {
    const operation: JsonObject = { table: path.slice(path.lastIndexOf("/") + 1), action, id, if: [["n", "==", 1]] };
    if (action === "update") operation["data"] = {};
    return ["POST", path.replace(/\/tables\/.*/, "/transaction"), { operations: [operation] }];
  }),
];

test(`[TB68] a reference to a hidden record is answered like one to a missing record (seed ${SEED})`, async () => {
  let hiddenCount = 0;
  for (const table of world.tables) {
    const root = world.callers.find(({ name }) => name === "root");
    if (root === undefined) throw new Error("no root");
    for (const caller of world.callers.filter(({ scopes }) => scopes === null || scopes.includes("insert"))) {
      const own = (await ask(root, "POST", table.linksPath, {})).body;
      const references = (to: string): [method: string, path: string, body: JsonObject][] => [
        ["POST", table.linksPath, { to }],
        ["POST", `${table.linksPath}?upsert=true`, { id: `${caller.name}-${to}`, to }],
        ["POST", `${table.linksPath}/batch`, { inserts: [{ to }] }],
        ["PATCH", `${table.linksPath}/${own["id"]}`, { to }],
      ];
      const missing = await Promise.all(references("missing").map((one) => ask(caller, ...one)));
      const isPatching = granted({ ...table, rules: LINKS }, caller, "update") === "all";
      for (const [id, record] of table.records) {
        const isInvisible = isHidden(table, caller, record);
        if (isInvisible) hiddenCount++;
        const answers = await Promise.all(references(id).map((one) => ask(caller, ...one)));
        for (const [index, answer] of answers.entries()) {
          const about = { index, caller: caller.name, read: table.rules.read?.source, record };
          const text = answer.text.replaceAll(`\\"${id}\\"`, '\\"missing\\"');
          if (isInvisible) expect({ ...about, text }).toEqual({ ...about, text: missing[index]?.text ?? "" });
          else if (index < 3 || isPatching)
            expect({ ...about, ok: answer.status < 300 }).toEqual({ ...about, ok: true });
        }
      }
    }
  }
  expect(hiddenCount).toBeGreaterThan(0);
});

const open = { source: "true", looksAtRecord: false, says: () => true };
const LINKS = { read: null, insert: open, update: open, delete: null };

test("[TB68] hooks and defaults may refer to records that are hidden from the caller", async () => {
  const hooked = await testPlatform({
    config: `{ databases: { shared: { tables: {
      teams: { schema: { name: { type: "string" } }, access: { read: () => [["id", "==", "none"]] } },
      notes: { schema: { team: { type: "string", references: "teams", default: "all" }, by: { type: "string", references: "teams" } },
        access: { read: true, insert: true, update: true },
        hooks: { beforeInsert: (auth, record) => ({ ...record, by: "all" }), beforeUpdate: (auth, record, changes) => ({ ...changes, by: "other" }) } } } } } }`,
  });
  const path = "/api/db/shared/tables/notes";
  for (const id of ["all", "other"]) await hooked.service.post("/api/db/shared/tables/teams", { id });
  expect(await hooked.post(path, { id: "n" })).toMatchObject({ status: 201, body: { team: "all", by: "all" } });
  expect((await hooked.post(path, { team: "other" })).body).toMatchObject({
    data: { team: { code: "unknown_reference" } },
  });
  expect(await hooked.patch(`${path}/n`, {})).toMatchObject({ status: 200, body: { by: "all" } });
  expect(await hooked.patch(`${path}/n`, { team: null })).toMatchObject({ status: 200, body: { by: "other" } });
  await hooked.stop();
});

test("[TB55, TB54] platform export contains what the key may read", async () => {
  const { platform, callers, tables } = world;
  const table = tables[2];
  if (table === undefined) throw new Error("no table");
  for (const caller of callers.filter(({ name }) => ["root", "only-read", "only-update"].includes(name))) {
    const child = Bun.spawn(
      [...platformCommand(), "export", table.address, "--url", platform.url, "--key", caller.key ?? ""],
      { cwd: platform.dataDirectory, stdin: "ignore", stdout: "pipe", stderr: "pipe" },
    );
    const text = await child.stdout.text();
    const isAllowed = granted(table, caller, "read") === "all";
    expect([caller.name, await child.exited]).toEqual([caller.name, isAllowed ? 0 : 1]);
    expect(secretsIn(text)).toEqual(isAllowed ? [...table.records.keys()].sort() : []);
  }
});
