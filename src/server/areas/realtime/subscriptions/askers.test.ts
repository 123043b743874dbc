import { expect, test } from "bun:test";
import { testClock } from "../../../../../tests/support/clock.ts";
import type { Logger } from "../../../../kernel/logger.ts";
import { HOUR_MS } from "../../../../kernel/time/duration.ts";
import type { ReadAccess } from "../../../access/table-door.ts";
import type { Visiting } from "../../../sockets/connection.ts";
import { StandingRights } from "../../../sockets/standing-rights.ts";
import type { TableChannel } from "../channel.ts";
import { RESYNC_INTERVAL_MS } from "../limits.ts";
import type { Rights } from "../rights.ts";
import { Askers, type Member } from "./askers.ts";

test("[RT227] what a rule looks up with each record is followed on time although the clock was set back", async () => {
  const time = testClock();
  let behindMs = 0;
  const clock = { now: () => time.now() - behindMs, after: time.after };
  const logger = { error() {} } as unknown as Logger; // the part that is used
  const access: ReadAccess = { kind: "record", allows: () => true };
  const standing = new StandingRights({ clock, logger });
  const askers = new Askers({ rights: { readTable: () => access }, standing, clock, logger });
  const principal = { kind: "anonymous" } as Visiting;
  const address = { namespace: "shared", instanceId: null, table: "t" };
  const channel: TableChannel = { kind: "table", name: "realtime:shared:t", address, docId: null };
  const asked = await askers.ask(principal, channel);
  if (asked === null) throw new Error("it is allowed");
  const asker = askers.join(principal, channel, asked);
  if (asker === null) throw new Error("a rule that looks at records is asked again");
  asker.add({ access, isOutdated: false, follow() {} } as unknown as Member); // the part that is used
  const seen = [asker.viewSerial];
  const change = (ms: number): void => {
    asker.sightTouched();
    time.advance(ms);
    seen.push(asker.viewSerial);
  };
  change(1);
  behindMs = HOUR_MS;
  change(RESYNC_INTERVAL_MS);
  const [first = 0] = seen;
  expect(seen).toEqual([first, first + 1, first + 2]);
});

test("[SK221] thousands of subscriptions of one client whose rule looks something up are asked and told in turns", async () => {
  const TURN_MAX_MS = 20;
  let now = 0;
  const due: { at: number; work: () => void }[] = [];
  const clock = {
    now: () => now,
    after(delayMs: number, work: () => void) {
      due.push({ at: now + delayMs, work });
      return () => {};
    },
  };
  const logger = { error() {} } as unknown as Logger; // the part that is used
  const file = { namespace: "shared", instanceId: null };
  const standing = new StandingRights({ clock, logger });
  const readTable: Rights["readTable"] = (_principal, _channel, options) => {
    now += 0.1;
    options?.watch?.lookedAt({ ...file, table: "members", fields: ["userId"], values: ["ann"] });
    options?.sight?.watch().lookedAt({ ...file, table: "members", fields: ["userId"], values: ["ann"] });
    return { kind: "record", allows: () => true };
  };
  const askers = new Askers({ rights: { readTable }, standing, clock, logger });
  const principal = { kind: "user", auth: { id: "ann" } } as Visiting;
  const address = { ...file, table: "t" };
  let told = 0;
  for (let index = 0; index < 5_000; index++) {
    const channel: TableChannel = { kind: "table", name: "realtime:shared:t", address, docId: null };
    const asked = await askers.ask(principal, channel);
    if (asked === null) throw new Error("it is allowed");
    const member = {
      access: asked.access,
      isOutdated: false,
      follow(access: ReadAccess) {
        now += 0.1;
        member.access = access;
        told++;
      },
    };
    askers.join(principal, channel, asked)?.add(member as unknown as Member); // the part that is used
  }
  const groups = [[{ table: "members", id: "m", before: null, after: { id: "m", userId: "ann" } }]];
  const turns: number[] = [];
  const turn = (work: () => void): void => {
    const startedAt = now;
    work();
    turns.push(now - startedAt);
  };
  for (let change = 0; change < 3; change++) {
    turn(() => {
      standing.committed(file, groups);
      standing.announced(file, groups);
      askers.review(address);
    });
    // Timers that are due at the same moment run in the same turn.
    while (due.length > 0) {
      now = Math.max(now, Math.min(...due.map(({ at }) => at)));
      const ready = due.filter(({ at }) => at <= now);
      for (const one of ready) due.splice(due.indexOf(one), 1);
      turn(() => {
        for (const { work } of ready) work();
      });
    }
  }
  expect(told).toBeGreaterThanOrEqual(3 * 5_000);
  expect(turns.filter((ms) => ms > TURN_MAX_MS)).toEqual([]);
});
