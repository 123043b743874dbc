import { expect, test } from "bun:test";
import { TURN_MS } from "../../kernel/limits.ts";
import { TurnBudget } from "../../kernel/time/turn-budget.ts";
import { WAITING_MESSAGES_MAX, WAITING_PER_CLIENT_MAX_CHARS } from "./limits.ts";
import { MessageTurns, type Source } from "./message-turns.ts";

/** Turns with a clock that only work advances, and an event loop that advances on demand. */
function begin() {
  let now = 0;
  const due: (() => void)[] = [];
  const done: string[] = [];
  const turns = new MessageTurns(new TurnBudget({ now: () => now, nextTurn: (work) => void due.push(work) }));
  const work = (name: string, takesMs: number) => () => {
    now += takesMs;
    done.push(name);
  };
  const nextTurn = (): void => {
    for (const run of due.splice(0)) run();
  };
  /** Returns the work done in the turn that begins now. */
  const turn = (): string[] => {
    done.length = 0;
    nextTurn();
    return [...done];
  };
  return { turns, work, turn, done, isIdle: () => due.length === 0 };
}

const source = (client = "1.2.3.4"): Source => ({ client });

test("[SK2] what fits into a turn of the event loop is done at once, and the rest in the turns that follow", () => {
  const { turns, work, turn, done } = begin();
  for (const name of "abcdefghi") turns.take(source(), 10, work(name, 1));
  expect(done).toEqual(["a", "b", "c", "d"]);
  expect(TURN_MS).toBe(4);
  expect(turn()).toEqual(["e", "f", "g", "h"]);
  expect(turn()).toEqual(["i"]);
});

test("[SK2] client networks take turns, and so do the connections of one", () => {
  const { turns, work, turn } = begin();
  turns.take(source(), 10, work("first", TURN_MS));
  const [one, other, stranger] = [source(), source(), source("5.6.7.8")];
  for (const count of [1, 2, 3]) turns.take(one, 10, work(`one${count}`, 1));
  for (const count of [1, 2]) turns.take(other, 10, work(`other${count}`, 1));
  for (const count of [1, 2]) turns.take(stranger, 10, work(`stranger${count}`, 1));
  expect(turn()).toEqual(["one1", "stranger1", "other1", "stranger2"]);
  expect(turn()).toEqual(["one2", "other2", "one3"]);
});

test("[SK2] messages of one connection are handled in order, the next when the one before is done", async () => {
  const { turns, work, turn, done } = begin();
  const { promise, resolve } = Promise.withResolvers<void>();
  const one = source();
  turns.take(one, 10, () => promise);
  turns.take(one, 10, work("second", 1));
  turns.take(source(), 10, work("another's", 1));
  expect(done).toEqual(["another's"]);
  expect(turn()).toEqual([]);
  resolve();
  await promise;
  await Promise.resolve();
  expect(turn()).toEqual(["second"]);
});

test("[SK2] what waits is bounded for a connection and a client network, and what is dropped counts no more", () => {
  const { turns, work, turn } = begin();
  turns.take(source(), 10, work("first", TURN_MS));
  const busy = source();
  const takes = (one: Source, chars: number) => turns.take(one, chars, work("more", 0));
  for (let count = 0; count < WAITING_MESSAGES_MAX; count++) expect(takes(busy, 10)).toBe(true);
  expect(takes(busy, 10)).toBe(false);
  turns.drop(busy);
  expect(takes(source(), WAITING_PER_CLIENT_MAX_CHARS - 1)).toBe(true);
  expect(takes(source(), 1)).toBe(false);
  expect(takes(source("5.6.7.8"), 1)).toBe(true);
  expect(turn()).toEqual(["more", "more"]);
  expect(takes(source(), WAITING_PER_CLIENT_MAX_CHARS - 1)).toBe(true);
});

test("[SK2] a connection that is dropped while its work is under way does no more", async () => {
  const { turns, work, turn } = begin();
  const { promise, resolve } = Promise.withResolvers<void>();
  const one = source();
  turns.take(one, 10, () => promise);
  turns.take(one, 10, work("second", 1));
  turns.drop(one);
  resolve();
  await promise;
  await Promise.resolve();
  expect(turn()).toEqual([]);
});
