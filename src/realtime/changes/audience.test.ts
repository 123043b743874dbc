import { expect, test } from "bun:test";
import { settle, testClock } from "../../../tests/support/clock.ts";
import { AUDIENCE_WAITING_MAX } from "../limits.ts";
import { createFanOut } from "../topics/fan-out.ts";
import { type Audience, createAudience } from "./audience.ts";
import { type Entry, TableLog } from "./change-log.ts";

const silentSockets = {
  upgrade: () => {
    throw new Error("no socket is opened here");
  },
  publish: () => {},
  waitingBytes: () => 0,
  drop: () => {},
};

test("[RT40] an audience whose rule never answers is given up when too much waits for it", async () => {
  const log = new TableLog({ namespace: "shared", instanceId: null, table: "t" }, 0);
  const overrun: Audience[] = [];
  let answer: (isAllowed: boolean) => void = () => {};
  const audience = createAudience({
    key: "k",
    feed: null,
    channel: { name: "realtime:shared:t", docId: null },
    log,
    topic: createFanOut(testClock(), silentSockets).topic(),
    view: {
      access: { kind: "record", allows: () => new Promise<boolean>((resolve) => (answer = resolve)) },
      filter: null,
    },
    batchThreshold: 10,
    onReady: () => {},
    onOverrun: (lost) => overrun.push(lost),
  });
  const append = (group: number): Entry => {
    const change = { table: "t", id: "r", before: null, after: { id: "r" } };
    return log.append(change, { group, at: 0, timestamp: "" });
  };
  const start = log.head;
  audience.enqueue([append(0)]);
  expect(audience.deliverNext()).toBe(false);
  for (let group = 1; group <= AUDIENCE_WAITING_MAX; group++) audience.enqueue([append(group)]);
  expect([overrun.length, audience.position]).toEqual([0, start]);
  audience.enqueue([append(AUDIENCE_WAITING_MAX + 1)]);
  expect(overrun).toEqual([audience]);
  answer(true);
  await settle();
  expect(audience.position).toBe(log.head);
});
