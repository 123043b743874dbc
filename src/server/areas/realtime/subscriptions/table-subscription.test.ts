import { expect, test } from "bun:test";
import { settle, testClock } from "../../../../../tests/support/clock.ts";
import type { Clock } from "../../../../kernel/clock.ts";
import { TURN_MS } from "../../../../kernel/limits.ts";
import { Scheduler } from "../../../../kernel/time/scheduler.ts";
import type { ReadAccess } from "../../../access/table-door.ts";
import { TableLog } from "../changes/change-log.ts";
import { TableSubscription, type TableSubscriptionDeps } from "./table-subscription.ts";

const access: ReadAccess = { kind: "all", saidBy: "config" };

/** Returns a function that begins subscriptions, which replay a log from its beginning. */
function world(clock: Clock, changeCount: number) {
  const log = new TableLog({ namespace: "shared", instanceId: null, table: "t" }, { place: 0, former: null });
  const start = log.head;
  for (let index = 0; index < changeCount; index++) {
    const change = { table: "t", id: `r${index}`, before: null, after: { id: `r${index}` } };
    log.append(change, { seq: index + 1, group: index, at: 0, timestamp: "" });
  }
  const sent: string[] = [];
  const connection = {
    isClosed: false,
    waitingBytes: 0,
    identity: 1,
    principal: { kind: "anonymous" },
    state: { subscriptions: new Map() },
    send() {},
    sendText: (text: string) => sent.push(text),
  };
  const replays = new Scheduler({ now: clock.now, nextTurn: (work) => void clock.after(0, work) });
  const subscribe = (audience: object): TableSubscription => {
    const deps = {
      feeds: { acquire: () => ({ feed: { log }, audience }) },
      askers: { join: () => null, settle: () => null },
      replays,
    } as unknown as TableSubscriptionDeps; // the parts that a replay uses
    const about = {
      channel: { name: "realtime:shared:t", docId: null },
      id: null,
      filters: { text: "", filter: null },
    };
    return new TableSubscription(
      connection as never,
      { ...about, asked: { access }, since: start, sources: null } as never, // the parts that are read
      deps,
    );
  };
  return { log, sent, subscribe };
}

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
  const { log, subscribe } = world(clock, 20);
  // Each change takes a millisecond, as a large one may.
  const matches = (): boolean => {
    now++;
    return false;
  };
  let joinedCount = 0;
  const audience = {
    position: log.head,
    view: { access, filter: { key: "f", matches } },
    encode: () => [],
    topic: { join: () => joinedCount++ },
  };
  for (let index = 0; index < 3; index++) subscribe(audience);
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
  expect(Math.max(...perTurn)).toBe(TURN_MS);
});

test("[RT225] changes whose rule was awaited are not sent by a view that another one has replaced meanwhile", async () => {
  const { log, sent, subscribe } = world(testClock(), 1);
  const gate = Promise.withResolvers<boolean>();
  const audience = (name: string, allows: () => unknown): object => ({
    position: log.head,
    view: { access: { kind: "record", allows }, filter: null },
    encode: () => [name],
    topic: { join() {} },
  });
  const subscription = subscribe(audience("before", () => gate.promise));
  subscription.audience = audience("now", () => true) as TableSubscription["audience"];
  gate.resolve(true);
  await settle();
  expect(sent).toEqual(["now"]);
});
