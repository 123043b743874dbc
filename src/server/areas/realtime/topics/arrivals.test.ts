import { expect, test } from "bun:test";
import { settle, testClock } from "../../../../../tests/support/clock.ts";
import { pause } from "../../../../kernel/clock.ts";
import { ARRIVAL_PAUSE_MS, ARRIVAL_PAUSES_MAX, ARRIVALS_READING_MAX_BYTES } from "../limits.ts";
import { Arrivals } from "./presence-channel.ts";

test("[RT103] listeners that arrive together get one text, a few at a time, the next when it has been read", async () => {
  const clock = testClock();
  const text = "x".repeat(1024 * 1024);
  const sent: object[] = [];
  let madeCount = 0;
  let reading = 0;
  const arrivals = new Arrivals<object & { isClosed: boolean; identity: number; closeAsSlow(): void }>({
    sync() {
      madeCount++;
      return text;
    },
    send(listener) {
      sent.push(listener);
      reading++;
    },
    readingCount: () => reading,
    released: () => null,
    // A turn of the event loop takes a millisecond here.
    pause: (delayMs) => pause(clock, Math.max(1, delayMs)),
  });
  // The part of a listener that arrivals use.
  const listeners = Array.from({ length: 100 }, () => ({ isClosed: false, identity: 1, closeAsSlow() {} }));
  for (const listener of listeners) arrivals.add(listener);
  const [gone] = listeners.splice(50, 1);
  if (gone !== undefined) arrivals.delete(gone);
  await settle();
  expect(sent).toEqual([]);
  await clock.advanceAsync(1);
  expect([sent.length, madeCount]).toEqual([4, 1]);
  for (let turn = 0; turn < 10; turn++) await clock.advanceAsync(1);
  const unread = ARRIVALS_READING_MAX_BYTES / text.length;
  expect(sent.length).toBe(unread + 4);
  await clock.advanceAsync(ARRIVAL_PAUSE_MS);
  expect(sent.length).toBe(unread + 4);
  // Listeners that never read hold up the others for two seconds at most.
  await clock.advanceAsync(ARRIVAL_PAUSE_MS * ARRIVAL_PAUSES_MAX);
  expect(sent.length).toBe(unread + 8);
  reading = 0;
  for (let turn = 0; turn < 200; turn++) {
    await clock.advanceAsync(ARRIVAL_PAUSE_MS);
    reading = 0;
  }
  expect(sent).toEqual(listeners);
  expect([arrivals.isEmpty, clock.waiting]).toEqual([true, 0]);
});
