import { expect, test } from "bun:test";
import { createAnswerRoom } from "./answer-room.ts";

test("[DB180] large answers wait for room; the caller that holds least comes first", async () => {
  const room = createAnswerRoom();
  const large = 30 * 1024 * 1024;
  const reserve = (callerName: string) => room.reserve(callerName, large);
  const [one, two] = [reserve("one"), reserve("two")];
  await Promise.all([one.ready, two.ready]);
  const order: string[] = [];
  const [second, third, givenUp] = [reserve("one"), reserve("three"), reserve("four")];
  void second.ready.then(() => order.push("second of one"));
  void third.ready.then(() => order.push("three"));
  await room.reserve("one", 1_000).ready;
  expect(order).toEqual([]);
  two.release();
  await third.ready;
  givenUp.release();
  one.release();
  await second.ready;
  expect(order).toEqual(["three", "second of one"]);
});

test("[DB180] a caller's second large answer leaves room for other callers", async () => {
  const room = createAnswerRoom();
  const large = 20 * 1024 * 1024;
  const [first, second] = [room.reserve("one", large), room.reserve("one", large)];
  await Promise.all([first.ready, room.reserve("two", large).ready]);
  first.release();
  await second.ready;
});
