import { expect, test } from "bun:test";
import { testClock } from "../../../../../tests/support/clock.ts";
import { HOUR_MS } from "../../../../kernel/time/duration.ts";
import { TurnBudget } from "../../../../kernel/time/turn-budget.ts";
import type { Player } from "../../../config/types.ts";
import { PLAYERS_INTERVAL_MS } from "../limits.ts";
import type { RoomConnection } from "../types.ts";
import { Members } from "./members.ts";
import { PlayerList } from "./player-list.ts";
import { RoomMeter } from "./room-meter.ts";

test("[RM220] the list is sent on time although the clock was set back", () => {
  const time = testClock();
  let behindMs = 0;
  const clock = { now: () => time.now() - behindMs, after: time.after };
  const members = new Members(() => null);
  const list = new PlayerList({ members, clock, meter: new RoomMeter(new TurnBudget()) });
  const add = (userId: string) => members.add({ player: { userId } as Player, sessionId: userId });
  const sent: string[] = [];
  add("ann");
  // The part of a connection that is used.
  list.add({ send: (text: string) => sent.push(text) } as unknown as RoomConnection);
  time.advance(PLAYERS_INTERVAL_MS);
  expect(sent.length).toBe(1);
  behindMs = HOUR_MS;
  add("bob");
  list.changed();
  time.advance(PLAYERS_INTERVAL_MS);
  expect(sent.length).toBe(2);
});
