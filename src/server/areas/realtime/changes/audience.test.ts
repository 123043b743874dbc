import { expect, test } from "bun:test";
import { settle, testClock } from "../../../../../tests/support/clock.ts";
import { AUDIENCE_WAITING_MAX } from "../limits.ts";
import { FanOut, type Listener } from "../topics/topic.ts";
import { Audience } from "./audience.ts";
import { type Entry, TableLog } from "./change-log.ts";
import type { Shown } from "./visibility.ts";

const silentSockets = {
  upgrade: () => {
    throw new Error("no socket is opened here");
  },
  publish: () => {},
  publishElsewhere: () => {},
  waitingBytes: () => 0,
  drop: () => {},
};

/** Returns an audience, and a function that commits the changes of one request to its log. */
function begin(view: Shown) {
  const log = new TableLog({ namespace: "shared", instanceId: null, table: "t" }, { place: 0, former: null });
  const topic = new FanOut(testClock(), silentSockets).topic();
  const closed: string[] = [];
  // The parts of a listener that a topic without messages uses.
  const closeAsSlow = () => closed.push("slow");
  const member = { identity: 1, socket: { subscribe() {} }, closeIfSlow: () => false, closeAsSlow };
  topic.join(member as unknown as Listener);
  const audience = new Audience({
    key: "k",
    feed: null,
    channel: { name: "realtime:shared:t", docId: null },
    log,
    topic,
    view,
    batchThreshold: 10,
    onReady: () => {},
  });
  const append = (group: number): Entry => {
    const change = { table: "t", id: "r", before: null, after: { id: "r" } };
    return log.append(change, { seq: log.head + 1, group, at: 0, timestamp: "" });
  };
  return { audience, log, append, closed };
}

test("[RT40] an audience whose rule never answers is given up when too much waits for it", async () => {
  let answer: (isAllowed: boolean) => void = () => {};
  const allows = () => new Promise<boolean>((resolve) => (answer = resolve));
  const { audience, log, append, closed } = begin({ access: { kind: "record", allows }, filter: null });
  const start = log.head;
  audience.enqueue([append(0)]);
  expect(audience.deliverNext(() => false)).toBe(false);
  for (let group = 1; group <= AUDIENCE_WAITING_MAX; group++) audience.enqueue([append(group)]);
  expect([closed.length, audience.position]).toEqual([0, start]);
  audience.enqueue([append(AUDIENCE_WAITING_MAX + 1)]);
  expect(closed).toEqual(["slow"]);
  answer(true);
  await settle();
  expect(audience.position).toBe(log.head);
});

test("[RT100] the large changes of one request are evaluated in steps, and delivered together", () => {
  let evaluated = 0;
  const matches = (): boolean => ++evaluated > 0;
  const { audience, log, append } = begin({ access: { kind: "all", saidBy: "rule" }, filter: { key: "f", matches } });
  const start = log.head;
  audience.enqueue([append(0), append(0), append(0)]);
  audience.enqueue([append(1)]);
  const steps: [isMore: boolean, evaluated: number, delivered: number][] = [];
  const step = (): void => {
    steps.push([audience.deliverNext(() => true), evaluated, audience.position - start]);
  };
  for (let count = 0; count < 4; count++) step();
  expect(steps).toEqual([
    [true, 1, 0],
    [true, 2, 0],
    [true, 3, 3],
    [false, 4, 4],
  ]);
});
