import { expect, test } from "bun:test";
import { testClock } from "../../../../tests/support/clock.ts";
import { ChannelMeter } from "./meter.ts";

test("[RT341] a rate follows what is sent, and falls to nothing when nothing is", async () => {
  const clock = testClock();
  const meter = new ChannelMeter(clock);
  meter.begun({ name: "broadcast:a", kind: "broadcast" });
  const rate = async () => (await meter.list({ prefix: "", sort: "rate", limit: 10 })).channels[0]?.perSecond ?? 0;
  for (let second = 0; second < 20; second++) {
    meter.sent("broadcast:a", 5);
    clock.advance(1_000);
  }
  expect(await rate()).toBeGreaterThan(4);
  expect(await rate()).toBeLessThan(6.1);
  clock.advance(20_000);
  expect(await rate()).toBe(0);
});

test("[RT341] of many channels the largest are listed, and those without subscribers are forgotten", async () => {
  const meter = new ChannelMeter(testClock());
  for (let channel = 0; channel < 3_000; channel++) {
    for (let n = 0; n <= channel % 7; n++) meter.begun({ name: `broadcast:${channel}`, kind: "broadcast" });
  }
  const { channels, total, subscriptions } = await meter.list({ prefix: "broadcast:1", sort: "subscribers", limit: 3 });
  expect(channels.map(({ subscribers }) => subscribers)).toEqual([7, 7, 7]);
  expect(total).toBe(1_111);
  expect(subscriptions).toBeGreaterThan(3_000);
  for (let n = 0; n < 7; n++) meter.ended({ name: "broadcast:6" });
  meter.sent("broadcast:6", 1);
  expect((await meter.list({ prefix: "broadcast:6", sort: "rate", limit: 100 })).channels).not.toContainEqual(
    expect.objectContaining({ name: "broadcast:6" }),
  );
});
