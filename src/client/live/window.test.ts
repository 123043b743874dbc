import { expect, test } from "bun:test";
import fc from "fast-check";
import type { JsonObject } from "../../kernel/json/json.ts";
import type { Runtime } from "../runtime.ts";
import type { Transport } from "../transport/types.ts";
import type { Change } from "./feeds.ts";
import { createLoading, type Loading } from "./loading.ts";
import { type Plan, planOf } from "./plan.ts";
import { RecordWindow } from "./window.ts";

// Far more than a window has, so that windows overflow and lose records.
const IDS = Array.from("abcdefghijklmnopqrst");
const RANK_MAX = 12;

/** Record to write; `n` null and `on` true delete it. */
interface Written {
  id: string;
  n: number | null;
  on: boolean;
}

interface WorldParts {
  limit: number;
  spare: number;
  rank: "asc" | "desc";
  /** Initial contents of the table. */
  contents: readonly Written[];
}

/** Table with its commits, and a client that receives changes and lists with a delay. */
class World {
  readonly plan: Plan;
  readonly window: RecordWindow;
  readonly #loading: Loading;
  /** Contents after each commit. */
  readonly #states: ReadonlyMap<string, JsonObject>[] = [new Map()];
  /** Changes of each commit. */
  readonly #commits: Change[][] = [[]];
  #delivered = 0;
  #requests: { readonly parameters: Record<string, unknown>; readonly from: number; answer(value: unknown): void }[] =
    [];

  constructor({ limit, spare, rank, contents }: WorldParts) {
    const query = { namespace: "shared", instance: null, table: "t", or: [], fields: null, expand: [] };
    const sort = [["n", rank]] as const;
    this.plan = { ...planOf({ ...query, conditions: [["on", "==", true]], sort, limit }), spare };
    this.window = new RecordWindow(this.plan);
    const runtime: Runtime = { now: () => 0, random: () => 0, uuid: () => "", after: () => () => {} };
    const request = (_method: string, _path: string, { query }: { query: Record<string, unknown> }) =>
      new Promise((answer) => this.#requests.push({ parameters: query, from: this.#delivered, answer }));
    const transport = { request } as unknown as Transport;
    this.#loading = createLoading({ runtime, transport }, this.plan, {
      take: (page, { isFirst, changes }) => {
        if (isFirst) this.window.replace(page);
        else this.window.extend(page);
        this.#apply(changes);
      },
      failed: (failure) => {
        throw new Error(`failed: ${failure.status}`);
      },
      wanted: () => (this.window.isShort ? this.window.wanted : null),
    });
    this.write(contents.map((one, index) => ({ ...one, id: IDS[index] ?? one.id })));
    this.#delivered = 1;
    this.#loading.begin();
  }

  write(changes: readonly Written[]): void {
    const state = new Map(this.#states.at(-1));
    const commit = changes.map(({ id, n, on }): Change => {
      const record = { id, n, on };
      if (n === null && on) state.delete(id);
      else state.set(id, record);
      return n === null && on ? { id, kind: "remove" } : { id, kind: "put", record };
    });
    this.#states.push(state);
    this.#commits.push(commit);
  }

  /** Delivers the next commit's changes as the subscription shows them: records that do not match are removed. */
  deliver(): boolean {
    const index = this.#delivered + 1;
    const changes = this.#commits[index];
    if (changes === undefined) return false;
    this.#delivered = index;
    const shown = changes.map(
      (change): Change =>
        change.kind === "put" && !this.plan.matches(change.record) ? { id: change.id, kind: "remove" } : change,
    );
    this.#loading.note(shown);
    this.#apply(shown);
    this.#loading.continue();
    return true;
  }

  /** Answers the oldest list with a state between that delivered at the request, and the newest. */
  async answer(age: number): Promise<boolean> {
    const request = this.#requests.shift();
    if (request === undefined) return false;
    const newest = this.#states.length - 1;
    const at = request.from + Math.round((newest - request.from) * age);
    request.answer(this.#list(at, request.parameters));
    await Promise.resolve();
    await Promise.resolve();
    return true;
  }

  /** Reloads the list, as after a new subscription. */
  resync(): void {
    this.#loading.begin();
  }

  async settle(): Promise<void> {
    for (let steps = 0; steps < 1_000; steps++) {
      if (!(this.deliver() || (await this.answer(1)))) return;
    }
    throw new Error("it never comes to rest");
  }

  get expected(): { ids: unknown[]; hasMore: boolean } {
    const all = this.#sorted(this.#states.length - 1);
    return { ids: all.slice(0, this.plan.limit), hasMore: all.length > this.plan.limit };
  }

  get shown(): { ids: unknown[]; hasMore: boolean } {
    return { ids: this.window.records.slice(0, this.plan.limit), hasMore: this.window.hasMore };
  }

  #apply(changes: readonly Change[]): void {
    for (const change of changes) {
      if (change.kind === "put") this.window.put(change.record);
      else this.window.remove(change.id);
    }
  }

  #sorted(at: number): JsonObject[] {
    const records = [...(this.#states[at]?.values() ?? [])];
    return records.filter((record) => this.plan.matches(record)).sort(this.plan.compare);
  }

  #list(at: number, { limit, after }: Record<string, unknown>) {
    const rest = this.#sorted(at).filter(
      (record) => typeof after !== "string" || this.plan.compare(record, JSON.parse(after)) > 0,
    );
    const items = rest.slice(0, Number(limit));
    const hasMore = rest.length > items.length;
    return { items, hasMore, cursor: hasMore ? JSON.stringify(items.at(-1)) : null };
  }
}

const change = fc.record({
  id: fc.constantFrom(...IDS),
  n: fc.option(fc.integer({ min: 0, max: RANK_MAX }), { freq: 4 }),
  // Most match, so that there is something behind the window.
  on: fc.integer({ min: 0, max: 4 }).map((value) => value > 0),
});
/** Many are deleted at once, so that windows run short. */
const purge = fc
  .subarray(IDS, { minLength: 5, maxLength: 14 })
  .map((ids) => ({ do: "write" as const, changes: ids.map((id): Written => ({ id, n: null, on: true })) }));
const step = fc.oneof(
  { weight: 1, arbitrary: purge },
  {
    weight: 4,
    arbitrary: fc.record({ do: fc.constant("write" as const), changes: fc.array(change, { maxLength: 4 }) }),
  },
  { weight: 4, arbitrary: fc.record({ do: fc.constant("deliver" as const) }) },
  {
    weight: 3,
    arbitrary: fc.record({ do: fc.constant("answer" as const), age: fc.double({ min: 0, max: 1, noNaN: true }) }),
  },
  { weight: 1, arbitrary: fc.record({ do: fc.constant("resync" as const) }) },
);

test("[TC51] whatever the order in which lists and changes arrive, a window ends as the list", async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.integer({ min: 1, max: 5 }),
      fc.integer({ min: 1, max: 3 }),
      fc.constantFrom("asc" as const, "desc" as const),
      fc.array(change, { minLength: 20, maxLength: 20 }),
      fc.array(step, { maxLength: 60 }),
      async (limit, spare, rank, contents, steps) => {
        const world = new World({ limit, spare, rank, contents });
        for (const one of steps) {
          if (one.do === "write") world.write(one.changes);
          else if (one.do === "deliver") world.deliver();
          else if (one.do === "answer") await world.answer(one.age);
          else world.resync();
        }
        await world.settle();
        expect(world.shown).toEqual(world.expected);
      },
    ),
    { numRuns: 2_000 },
  );
});

const windowOf = (limit: number) => {
  const query = { namespace: "shared", instance: null, table: "t", conditions: [], or: [], fields: null, expand: [] };
  return new RecordWindow(planOf({ ...query, sort: [["n", "asc"]], limit }));
};

test("[TC52] records that have not changed keep their identity", () => {
  const window = windowOf(10);
  const [first, second] = [
    { id: "a", n: 1, tags: ["x"] },
    { id: "b", n: 2, tags: [] },
  ];
  window.replace({ records: [first, second], cursor: null });
  window.replace({
    records: [
      { id: "a", n: 1, tags: ["x"] },
      { id: "b", n: 3, tags: [] },
    ],
    cursor: null,
  });
  expect(window.records[0]).toBe(first);
  expect(window.records[1]).toEqual({ id: "b", n: 3, tags: [] });
  expect(window.put({ tags: ["x"], n: 1, id: "a" })).toBe(false);
  expect(window.records[0]).toBe(first);
});

test("[TC51] a window keeps no more than its limit and twice its spare records", () => {
  const window = windowOf(10);
  window.replace({ records: [], cursor: null });
  for (let n = 0; n < 100; n++) window.put({ id: String(n), n: 100 - n });
  expect(window.records.length).toBeLessThanOrEqual(16);
  expect(window.records.slice(0, 10).map((record) => record["n"])).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9, 10]);
  expect(window.hasMore).toBe(true);
});

test("[TC51] a record that has moved behind the end before the next page is read is there once", () => {
  const window = windowOf(2);
  const [a, b, c] = [1, 2, 3].map((n) => ({ id: `r${n}`, n }));
  if (a === undefined || b === undefined || c === undefined) throw new Error("three records");
  window.replace({ records: [a, b, c], cursor: "3" });
  window.remove("r1");
  expect([window.isShort, window.wanted]).toEqual([true, { count: 3, after: "3" }]);
  // The list is newer than the changes that have arrived.
  window.extend({
    records: [
      { id: "r4", n: 4 },
      { id: "r2", n: 5 },
    ],
    cursor: null,
  });
  expect(window.records.map((record) => record["id"])).toEqual(["r3", "r4", "r2"]);
  expect(window.put({ id: "r2", n: 5 })).toBe(false);
  expect([window.isShort, window.hasMore]).toEqual([false, true]);
});
