import { expect, test } from "bun:test";
import { join } from "node:path";
import { roomsLayout } from "../../../../../schema/migrations/index.ts";
import { temporaryDirectory, testClock, until } from "../../../../../tests/support/index.ts";
import { systemClock } from "../../../../kernel/clock.ts";
import { silentLogger } from "../../../../kernel/logger.ts";
import { createStorageEngine, layOut } from "../../../db/index.ts";
import { SWEEP_BYTES, SWEEP_INTERVAL_MS } from "../limits.ts";
import { startSweep } from "./schedules.ts";
import { RoomStore } from "./store.ts";

const INSERT = `INSERT INTO rooms (namespace, id, shared, shared_version, players, server, metadata, timers, present, saved_at,
  expires_at) VALUES ('game', ?1, ?2, 0, '{}', '{}', '{}', '{}', '[]', 0, ?3)`;

test("[RM37] a step of the sweep deletes few large rooms", async () => {
  const engine = createStorageEngine({ clock: systemClock });
  const path = join(temporaryDirectory(), "rooms.db");
  const file = engine.open(path, { migrate: layOut(roomsLayout) });
  const clock = testClock(1_000_000);
  const state = JSON.stringify({ text: "x".repeat(SWEEP_BYTES / 4) });
  for (let index = 0; index < 6; index++) {
    await file.write((tx) => tx.query(INSERT).run(`large${index}`, state, clock.now()).changes);
  }
  await file.write((tx) => tx.query(INSERT).run("later", state, clock.now() + 10 * SWEEP_INTERVAL_MS).changes);
  const ids = () =>
    file
      .query<{ id: string }>("SELECT id FROM rooms ORDER BY id")
      .all()
      .map(({ id }) => id);
  const stop = startSweep({ store: new RoomStore(file), occupied: () => [], clock, logger: silentLogger });
  clock.advance(SWEEP_INTERVAL_MS);
  await until("the first step has ended", () => ids().length < 7 && clock.waiting > 0);
  expect(ids()).toEqual(["large4", "large5", "later"]);
  clock.advance(0);
  await until("the second step has ended", () => ids().length < 3 && clock.waiting > 0);
  expect(ids()).toEqual(["later"]);
  await stop();
  await engine.stop();
});
