import { expect, test } from "bun:test";
import { TURN_MS } from "../../kernel/limits.ts";
import type { Logger } from "../../kernel/logger.ts";
import { chain } from "../../kernel/maybe-promise.ts";
import type { LookedAt } from "../access/lookups/lookups.ts";
import type { StandingRight } from "./standing-rights.ts";
import { StandingRights } from "./standing-rights.ts";

const FILE = { namespace: "shared", instanceId: null };
const place = (id: string): LookedAt => ({ ...FILE, table: "members", fields: ["id"], values: [id] });
const change = (id: string) => [[{ table: "members", id, before: { id }, after: null }]];

function world() {
  let now = 0;
  const due: (() => void)[] = [];
  const clock = {
    now: () => now,
    after: (_delayMs: number, work: () => void) => {
      due.push(work);
      return () => {};
    },
  };
  const pass = (ms: number): void => {
    now += ms;
  };
  const turn = (): void => {
    for (const work of due.splice(0)) work();
  };
  const logged: string[] = [];
  const logger = { error: (message: string) => void logged.push(message) } as unknown as Logger; // the part that is used
  const rights = new StandingRights({ clock, logger });
  const asked: string[] = [];
  const answered: string[] = [];
  const log: string[] = [];
  /** Returns a right whose rule looks up one member. */
  const grant = (name: string, member: string, ask: () => void | Promise<void> = () => {}): StandingRight => {
    const right = rights.begin();
    right.watch.lookedAt(place(member));
    right.owner = {
      ask(watch) {
        asked.push(name);
        watch.lookedAt(place(member));
        return chain(ask(), () => () => void answered.push(name));
      },
      touched: () => void log.push(`${name} touched`),
      hold() {
        log.push(`${name} held`);
        return () => void log.push(`${name} released`);
      },
    };
    return right;
  };
  return { pass, turn, rights, asked, answered, log, logged, grant };
}

test("[SK221] a commit marks the rights that it concerns, and they are asked when it is announced", () => {
  const { rights, asked, log, grant } = world();
  const ann = grant("ann", "a");
  const bob = grant("bob", "b");
  rights.committed(FILE, change("a"));
  expect([ann.isStale, bob.isStale]).toEqual([true, false]);
  expect(asked).toEqual([]);
  rights.announced(FILE, change("a"));
  expect(asked).toEqual(["ann"]);
  rights.announced(FILE, change("a"));
  expect(asked).toEqual(["ann"]);
  expect(log).toEqual(["ann touched"]);
});

test("[SK221] a later commit of another file does not wait for the announcement of an earlier one", () => {
  const { rights, asked, grant } = world();
  const ann = grant("ann", "a");
  rights.committed(FILE, change("a"));
  expect(rights.review([ann])).toBeNull();
  expect(asked).toEqual(["ann"]);
  rights.announced(FILE, change("a"));
  expect(asked).toEqual(["ann"]);
});

test("[SK221] many rights are asked over several turns, each once, and held until they are", async () => {
  const { pass, turn, rights, asked, log, grant } = world();
  const all = Array.from({ length: 10 }, (_, index) => grant(`r${index}`, "a", () => pass(1)));
  rights.committed(FILE, change("a"));
  const before = rights.review(all);
  expect(asked.length).toBe(TURN_MS);
  rights.announced(FILE, change("a"));
  const held = log.filter((entry) => entry.endsWith("held")).length;
  expect(held).toBe(10 - asked.length);
  // A right that is needed now is evaluated ahead of the queue.
  const last = all[9];
  if (last === undefined) throw new Error("ten rights were granted");
  expect(rights.settle(last)).toBeNull();
  expect(asked.at(-1)).toBe("r9");
  turn();
  turn();
  await before;
  expect(new Set(asked).size).toBe(10);
  expect(asked.length).toBe(10);
  expect(log.filter((entry) => entry.endsWith("released")).length).toBe(held);
});

test("[SK221] a commit while a rule is awaited is followed by another question, and no more", async () => {
  const { rights, asked, log, grant } = world();
  let answer = Promise.withResolvers<void>();
  const ann = grant("ann", "a", () => answer.promise);
  rights.committed(FILE, change("a"));
  rights.announced(FILE, change("a"));
  rights.committed(FILE, change("a"));
  rights.announced(FILE, change("a"));
  const fresh = rights.review([ann]);
  expect(asked).toEqual(["ann"]);
  const first = answer;
  answer = Promise.withResolvers<void>();
  first.resolve();
  await first.promise;
  await Promise.resolve();
  await Promise.resolve();
  answer.resolve();
  await fresh;
  expect(asked).toEqual(["ann", "ann"]);
  expect(rights.settle(ann)).toBeNull();
  expect(log.filter((entry) => entry !== "ann touched")).toEqual(["ann held", "ann released"]);
});

test("[SK221] a right whose question no longer looks at what has changed is asked again, and holds nothing back", async () => {
  const { rights, log } = world();
  const [first, second] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const answers = [first, second];
  let asked = 0;
  const right = rights.begin();
  right.watch.lookedAt(place("a"));
  right.owner = {
    ask(watch) {
      watch.lookedAt(place("b"));
      return answers[asked++]?.promise.then(() => null) ?? null;
    },
    touched() {},
    hold() {
      log.push("held");
      return () => void log.push("released");
    },
  };
  rights.committed(FILE, change("a"));
  rights.announced(FILE, change("a"));
  // The commit's file is synced while the rule is awaited.
  rights.committed(FILE, change("a"));
  const { asking } = right;
  first.resolve();
  await asking;
  rights.announced(FILE, change("a"));
  second.resolve();
  await right.asking;
  expect([asked, right.isStale, right.asking, log]).toEqual([2, false, null, ["held", "released"]]);
});

test("[SK221] an answer is applied unless its right has ended, and then holds nothing back", async () => {
  const { rights, asked, answered, log, grant } = world();
  const answer = Promise.withResolvers<void>();
  const [ann, bob] = [grant("ann", "a", () => answer.promise), grant("bob", "a", () => answer.promise)];
  rights.committed(FILE, change("a"));
  rights.announced(FILE, change("a"));
  expect(asked).toEqual(["ann", "bob"]);
  const settled = [rights.settle(ann), rights.settle(bob)];
  ann.end();
  answer.resolve();
  await Promise.all(settled);
  expect(answered).toEqual(["bob"]);
  expect(log.filter((entry) => entry.startsWith("ann"))).toEqual(["ann touched", "ann held", "ann released"]);
});

test("[SK221] what ends is not asked, leaves nothing behind, and a question that fails holds nothing back", () => {
  const { rights, asked, logged, grant } = world();
  const gone = grant("gone", "a");
  const failing = grant("failing", "a", () => {
    throw new Error("no");
  });
  rights.committed(FILE, change("a"));
  gone.end();
  rights.announced(FILE, change("a"));
  expect(asked).toEqual(["failing"]);
  expect(logged.length).toBe(1);
  failing.end();
  failing.watch.lookedAt(place("a"));
  rights.committed(FILE, change("a"));
  expect(failing.isStale).toBe(false);
  rights.deleted(FILE);
  expect(asked).toEqual(["failing"]);
});
