import { expect, test } from "bun:test";
import { settle, testClock } from "../../../../../tests/support/clock.ts";
import { TableLog } from "../changes/change-log.ts";
import { SLICE_MS } from "../limits.ts";
import type { RealtimeConnection, TableSubscription } from "./model.ts";
import { createReplay } from "./replays.ts";

test("[RT26] all replays together take their share of a turn, however large the changes are", async () => {
  let now = 0;
  const due: (() => void)[] = [];
  const clock = {
    now: () => now,
    after(_delayMs: number, work: () => void) {
      due.push(work);
      return () => {};
    },
  };
  const log = new TableLog({ namespace: "shared", instanceId: null, table: "t" }, 0);
  const start = log.head;
  for (let index = 0; index < 20; index++) {
    const change = { table: "t", id: `r${index}`, before: null, after: { id: `r${index}` } };
    log.append(change, { seq: index + 1, group: index, at: 0, timestamp: "" });
  }
  // Each change takes a millisecond, as a large one may.
  const matches = (): boolean => {
    now++;
    return false;
  };
  let joinedCount = 0;
  const audience = {
    position: log.head,
    view: { access: { kind: "all", saidBy: "rule" }, filter: { key: "f", matches } },
    encode: () => [],
    topic: { join: () => joinedCount++ },
  };
  const replay = createReplay(clock, () => null);
  const connection = { isClosed: false, waitingBytes: 0 } as unknown as RealtimeConnection;
  // The parts that a replay uses.
  const subscription = () =>
    ({
      feed: { log },
      channel: { docId: null },
      audience,
      awaited: null,
      isEnded: false,
    }) as unknown as TableSubscription;
  for (let index = 0; index < 3; index++) replay(connection, subscription(), start);
  const perTurn = [now];
  for (let before = now; joinedCount < 3; before = now) {
    for (const work of due.splice(0)) {
      work();
      await settle();
    }
    perTurn.push(now - before);
    if (perTurn.length > 100) throw new Error("the replays do not end");
  }
  expect(now).toBe(60);
  expect(Math.max(...perTurn)).toBe(SLICE_MS);
});

test("[RT225] changes whose rule was awaited are not sent by a view that another one has replaced meanwhile", async () => {
  const log = new TableLog({ namespace: "shared", instanceId: null, table: "t" }, 0);
  const start = log.head;
  log.append({ table: "t", id: "r", before: null, after: { id: "r" } }, { seq: 1, group: 0, at: 0, timestamp: "" });
  const gate = Promise.withResolvers<boolean>();
  const audience = (name: string, allows: () => unknown) => ({
    position: log.head,
    view: { access: { kind: "record", allows }, filter: null },
    encode: () => [name],
    topic: { join() {} },
  });
  const sent: string[] = [];
  const connection = { isClosed: false, waitingBytes: 0, sendText: (text: string) => sent.push(text) };
  const subscription = {
    feed: { log },
    channel: { docId: null },
    awaited: null,
    isEnded: false,
    audience: audience("before", () => gate.promise),
  };
  const replay = createReplay(testClock(), () => null);
  // The parts that a replay uses.
  replay(connection as unknown as RealtimeConnection, subscription as unknown as TableSubscription, start);
  subscription.audience = audience("now", () => true);
  gate.resolve(true);
  await settle();
  expect(sent).toEqual(["now"]);
});
