import { expect, test } from "bun:test";
import { settle, testClock } from "../../../../../tests/support/clock.ts";
import { PUSH_MESSAGE } from "../../../../../tests/support/push-message.ts";
import { systemIds } from "../../../../kernel/ids.ts";
import { silentLogger } from "../../../../kernel/logger.ts";
import { CALL_TIMEOUT_MS, OUTAGE_MAX_MS, TOPIC_CALLS_AT_ONCE_MAX } from "../limits.ts";
import type { CallResult, Provider, Target } from "../message.ts";
import type { NewLogEntry } from "../store.ts";
import { createDeliveries } from "./deliveries.ts";
import { createFanOut, type NextTarget } from "./fan-out.ts";

const OPTIONS = { atOnce: TOPIC_CALLS_AT_ONCE_MAX, patience: new AbortController().signal };
const refused = (): never => {
  throw Object.assign(new Error("Unable to connect"), { code: "ConnectionRefused" });
};

/** Tokens are "site/n"; `behaviour` decides whether a site answers, hangs or refuses. */
function world(behaviour: (site: string, n: number) => Promise<CallResult> | CallResult) {
  const clock = testClock();
  const stopping = new AbortController();
  const sentTo: string[] = [];
  const provider: Provider = {
    siteOf: ({ token }) => token.split("/")[0] ?? "",
    async send({ token }) {
      const [site = "", n] = token.split("/");
      const result = await behaviour(site, Number(n));
      if (result.kind === "sent") sentTo.push(token);
      return result;
    },
  };
  const rows: NewLogEntry[] = [];
  const deliveries = createDeliveries({ fcm: provider, webPush: null, clock, stopping: stopping.signal });
  const store = { record: async (entries: readonly NewLogEntry[]) => void rows.push(...entries) };
  const fanOut = createFanOut({ store, deliveries, clock, ids: systemIds, logger: silentLogger });
  const targets = (sites: readonly string[], count: number): NextTarget => {
    let n = 0;
    return () => {
      if (n === count) return null;
      const target: Target = { userId: "u", token: `${sites[n % sites.length]}/${n}`, platform: "android" };
      n++;
      return target;
    };
  };
  const advance = async (ms: number, stepMs = 250) => {
    for (let left = ms; left > 0; left -= stepMs) await clock.advanceAsync(Math.min(left, stepMs));
    await settle();
  };
  return { clock, stopping, sentTo, rows, fanOut, targets, advance };
}

test("[PU100] during an outage of three seconds messages wait; none is lost", async () => {
  for (const outage of [
    () => new Promise<never>(() => {}),
    refused,
    () => ({ kind: "busy", error: "503", retryAfterMs: null }) as const,
  ]) {
    let calls = 0;
    let isOut = false;
    const { sentTo, rows, fanOut, targets, advance } = world(() => {
      if (++calls === 5) isOut = true;
      return isOut ? outage() : { kind: "sent" };
    });
    const { done } = fanOut(targets(["service"], 2_000), PUSH_MESSAGE, OPTIONS);
    await advance(3_000);
    expect(sentTo.length).toBe(4);
    isOut = false;
    await advance(CALL_TIMEOUT_MS + 5_000);
    expect(await done).toEqual({ sent: 2_000, failed: 0 });
    expect(new Set(sentTo).size).toBe(2_000);
    expect(rows.length).toBe(2_000);
    expect(calls).toBeLessThan(2_200);
  }
});

test("[PU100] an unavailable service delays neither other services nor the next message, and fails after five minutes", async () => {
  const { sentTo, fanOut, targets, advance } = world((site) => (site === "dead" ? refused() : { kind: "sent" }));
  const first = fanOut(targets(["dead", "living"], 1_000), PUSH_MESSAGE, OPTIONS);
  await first.tried;
  expect(sentTo.length).toBe(500);
  await advance(OUTAGE_MAX_MS + 60_000, 1_000);
  expect(await first.done).toEqual({ sent: 500, failed: 500 });
  const second = fanOut(targets(["dead", "living"], 100), PUSH_MESSAGE, OPTIONS);
  expect(await second.done).toEqual({ sent: 50, failed: 50 });
});

test("[PU100] at a stop messages that wait for a service have failed and are logged", async () => {
  const { stopping, rows, fanOut, targets } = world(refused);
  const { done } = fanOut(targets(["dead"], 100), PUSH_MESSAGE, OPTIONS);
  await settle();
  stopping.abort();
  expect(await done).toEqual({ sent: 0, failed: 100 });
  expect(rows.length).toBe(100);
});

test("[PU200] messages that wait for a service end with their patience; others continue", async () => {
  let isOut = true;
  const { sentTo, fanOut, targets, advance } = world(() => (isOut ? refused() : { kind: "sent" }));
  const patience = new AbortController();
  const left: string[] = [];
  const cancelled = fanOut(targets(["service"], 100), PUSH_MESSAGE, {
    ...OPTIONS,
    patience: patience.signal,
    isLeft: ({ target }) => left.push(target.token) > 0,
  });
  const kept = fanOut(targets(["service"], 100), { ...PUSH_MESSAGE, title: "kept" }, OPTIONS);
  await settle();
  patience.abort();
  expect(await cancelled.done).toEqual({ sent: 0, failed: 0 });
  expect(new Set(left).size).toBe(100);
  isOut = false;
  await advance(5_000);
  expect(await kept.done).toEqual({ sent: 100, failed: 0 });
  expect(sentTo.length).toBe(100);
});

test("[PU101] reading devices is retried; if it fails, the results so far are logged", async () => {
  const { rows, fanOut, targets, advance } = world(() => ({ kind: "sent" }));
  const all = targets(["service"], 500);
  let faults = 3;
  let count = 0;
  const moody: NextTarget = () => {
    if (count === 200 && faults-- > 0) throw new Error("the file is busy");
    count++;
    return all();
  };
  const first = fanOut(moody, PUSH_MESSAGE, OPTIONS);
  await advance(5_000);
  expect(await first.done).toEqual({ sent: 500, failed: 0 });

  const rest = targets(["service"], 500);
  let given = 0;
  const broken: NextTarget = () => {
    if (given === 100) throw new Error("the file is broken");
    given++;
    return rest();
  };
  const second = fanOut(broken, PUSH_MESSAGE, OPTIONS);
  const failure = second.tried.catch((cause: unknown) => String(cause));
  await advance(10_000);
  expect(await failure).toContain("the file is broken");
  expect(await second.done).toEqual({ sent: 100, failed: 0 });
  expect(rows.length).toBe(600);
});
