import { expect, test } from "bun:test";
import { testClock } from "../../../../../tests/support/index.ts";
import { AppError, unauthorized } from "../../../../kernel/errors.ts";
import { nextTurn } from "../../../../kernel/time/scheduler.ts";
import { type Guess, Guesses } from "./guesses.ts";

const LIMIT = { requests: 3, window: 60 };
const key = (name: string) => [{ key: name, limit: LIMIT }];
const wrong = async (): Promise<Guess<string>> => ({ isRight: false, error: unauthorized() });
const right = async (): Promise<Guess<string>> => ({ isRight: true, value: "in" });
const statusOf = (attempt: Promise<unknown>): Promise<unknown> =>
  attempt.catch((cause: unknown) => (cause instanceof AppError ? cause.status : cause));

test("[AU38] failures count, successes do not, each key separately", async () => {
  const guesses = new Guesses(testClock());
  for (let count = 0; count < 10; count++) expect(await guesses.attempt(key("a"), right)).toBe("in");
  for (let count = 0; count < 3; count++) expect(await statusOf(guesses.attempt(key("a"), wrong))).toBe(401);
  expect(await statusOf(guesses.attempt(key("a"), right))).toBe(429);
  expect(await guesses.attempt(key("b"), right)).toBe("in");
});

test("[AU38] the window begins with the first guess and ends after its time", async () => {
  const clock = testClock();
  const guesses = new Guesses(clock);
  for (let count = 0; count < 3; count++) await statusOf(guesses.attempt(key("a"), wrong));
  clock.advance(59_999);
  const refused = await guesses.attempt(key("a"), right).catch((cause: unknown) => cause);
  expect(refused instanceof AppError && refused.headers?.["retry-after"]).toBe("1");
  clock.advance(1);
  expect(await guesses.attempt(key("a"), right)).toBe("in");
});

test("[AU38] guesses under way count as failures until they are judged", async () => {
  const guesses = new Guesses(testClock());
  let underWay = 0;
  let most = 0;
  const slow = (isRight: boolean) => async () => {
    most = Math.max(most, ++underWay);
    await nextTurn();
    underWay--;
    return isRight ? right() : wrong();
  };
  const successes = await Promise.all(Array.from({ length: 9 }, () => guesses.attempt(key("a"), slow(true))));
  expect(successes).toEqual(Array(9).fill("in"));
  expect(most).toBe(3);
  const attempts = Array.from({ length: 9 }, () => statusOf(guesses.attempt(key("b"), slow(false))));
  expect((await Promise.all(attempts)).sort()).toEqual([401, 401, 401, ...Array(6).fill(429)]);
});

test("[AU38] a check that fails with an error does not count, and the next one runs", async () => {
  const guesses = new Guesses(testClock());
  const broken = () => Promise.reject(new Error("the disk failed"));
  for (let count = 0; count < 5; count++) await statusOf(guesses.attempt(key("a"), broken));
  expect(await guesses.attempt(key("a"), right)).toBe("in");
});
