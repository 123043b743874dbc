import { expect, test } from "bun:test";
import { PUSH_MESSAGE } from "../../../../../tests/support/push-message.ts";
import type { TopicRange, TopicTarget } from "../statements/push.ts";
import { TopicProgress, type TopicSend } from "./topic-queue.ts";

const device = (seq: number): TopicTarget => ({ seq, userId: "u", token: `t${seq}`, platform: "android" });

/** Creates a store with devices 1 to `count`, without those in `removed`. */
const storeOf = (count: number, removed: ReadonlySet<number> = new Set()) => {
  const inRange = ({ after, until }: TopicRange) =>
    Array.from({ length: count }, (_, index) => index + 1).filter(
      (seq) => seq > after && seq <= until && !removed.has(seq),
    );
  return {
    targetsOfTopic: (range: TopicRange, limit: number) => inRange(range).slice(0, limit).map(device),
    countOfTopic: (range: TopicRange) => inRange(range).length,
  };
};
const START: TopicSend = { topic: "all", after: 0, until: 500, message: PUSH_MESSAGE, open: [] };

test("[PU200] a later try continues with the devices that had no result, and those that come after", () => {
  let isEnding = false;
  const first = new TopicProgress({ send: START, store: storeOf(500), isEnding: () => isEnding });
  for (let seq = 1; seq <= 300; seq++) {
    const target = first.next();
    expect(target?.seq).toBe(seq);
    if (target !== null && ![7, 120, 299].includes(seq)) first.settle(target);
  }
  expect(first.left()).toBe(203);
  isEnding = true;
  expect(first.next()).toBe(null);
  const state = first.state();
  expect(state).toMatchObject({ after: 300, until: 500, open: [7, 120, 299] });

  const again = new TopicProgress({ send: state, store: storeOf(900, new Set([120])), isEnding: () => false });
  const seqs: number[] = [];
  for (let target = again.next(); target !== null; target = again.next()) {
    seqs.push(target.seq);
    again.settle(target);
  }
  expect(seqs).toEqual([7, 299, ...Array.from({ length: 200 }, (_, index) => 301 + index)]);
  expect([again.left(), again.state().open]).toEqual([0, []]);
});
