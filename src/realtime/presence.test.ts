import { expect, test } from "bun:test";
import { testClock } from "../../tests/support/clock.ts";
import { PRESENCE_MEMBERS_MAX, PRESENCE_TTL_MS } from "./limits.ts";
import { createPresence, type Tracked } from "./presence.ts";
import { Topic } from "./topic.ts";

const silentSockets = {
  upgrade: () => {
    throw new Error("nobody connects here");
  },
  publish: () => {},
};
const tracked = (id: number): Tracked => ({
  ...{ connectionId: String(id), userId: "u", channels: new Set<string>(), lastSeen: 0 },
});

test("[RT32] a channel has at most 20,000 entries, and room again when they time out", () => {
  const clock = testClock();
  const presence = createPresence({ clock, topics: () => new Topic("t", silentSockets), ttlMs: PRESENCE_TTL_MS });
  for (let id = 0; id < PRESENCE_MEMBERS_MAX; id++) expect(presence.track(tracked(id), "presence:x", "{}")).toBe(true);
  const late = tracked(-1);
  expect(presence.track(late, "presence:x", "{}")).toBe(false);
  expect(late.channels.size).toBe(0);
  clock.advance(PRESENCE_TTL_MS);
  expect(presence.track(late, "presence:x", "{}")).toBe(true);
  presence.stop();
  expect(clock.waiting).toBe(0);
});
