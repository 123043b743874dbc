import { expect, test } from "bun:test";
import { testClock } from "../../../../../tests/support/clock.ts";
import type { ReadAccess } from "../../../access/table-door.ts";
import { LOG_AGE_MAX_MS, SEEN_VIEWS_PER_CHANNEL_MAX } from "../limits.ts";
import { createSeenViews, type SeenView } from "./views.ts";

const filter: ReadAccess = { kind: "filter", filter: { key: "f", matches: () => true } };
const all: ReadAccess = { kind: "all", saidBy: "rule" };
const view = (key: string): SeenView => ({ userId: "ann", channel: "realtime:shared:t", key });

test("[RT39] a view covers what was sent while there was no other view", () => {
  const seen = createSeenViews(testClock());
  expect(seen.covers(view("a"), filter, 10)).toBe(false);
  expect(seen.covers(view("a"), all, 10)).toBe(true);
  seen.begin(view("a"), 10);
  seen.end(view("a"), 20);
  expect([9, 10, 20].map((since) => seen.covers(view("a"), filter, since))).toEqual([false, true, true]);
  expect(seen.covers(view("b"), filter, 20)).toBe(false);
  expect(seen.covers(view("b"), all, 20)).toBe(false);
  seen.begin(view("b"), 20);
  // Somebody listens through b now: what the other client holds is unknown.
  expect(seen.covers(view("a"), filter, 20)).toBe(false);
  seen.end(view("b"), 30);
  seen.begin(view("a"), 30);
  expect([30, 31].map((since) => seen.covers(view("a"), filter, since))).toEqual([false, true]);
});

test("[RT39] a view is forgotten with the log, and is then not treated as the only one", () => {
  const clock = testClock();
  const seen = createSeenViews(clock);
  seen.begin(view("a"), 10);
  seen.begin(view("b"), 10);
  seen.end(view("b"), 20);
  clock.advance(LOG_AGE_MAX_MS + 1);
  expect([20, 21].map((since) => seen.covers(view("a"), filter, since))).toEqual([false, true]);
});

test("[RT39] a rule that shows another view with each commit has a bounded number of them remembered", () => {
  const clock = testClock();
  let looks = 0;
  const seen = createSeenViews({
    ...clock,
    now: () => {
      looks++;
      return clock.now();
    },
  });
  for (let index = 0; index < 2_000; index++) {
    seen.begin(view(`v${index}`), index);
    seen.end(view(`v${index}`), index + 1);
  }
  expect(looks).toBeLessThan(2_000 * 2 * SEEN_VIEWS_PER_CHANNEL_MAX);
  // What was forgotten is treated as another view.
  const last = view("v1999");
  expect([1_000, 1_999, 2_000].map((since) => seen.covers(last, filter, since))).toEqual([false, false, true]);
});
