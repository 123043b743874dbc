import { expect, test } from "bun:test";
import { testClock } from "../../../../../tests/support/clock.ts";
import type { Logger } from "../../../../kernel/logger.ts";
import { HOUR_MS } from "../../../../kernel/time/duration.ts";
import type { ReadAccess } from "../../../access/table-door.ts";
import type { Visiting } from "../../../sockets/connection.ts";
import { StandingRights } from "../../../sockets/standing-rights.ts";
import type { TableChannel } from "../channel.ts";
import { RESYNC_INTERVAL_MS } from "../limits.ts";
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
