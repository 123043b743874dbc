import { afterEach, expect, test } from "bun:test";
import { type RoomsWorld, roomsWorld } from "../../../../../tests/support/rooms-world.ts";
import { until } from "../../../../../tests/support/until.ts";
import { MAILBOX_MAX } from "../limits.ts";

let world: RoomsWorld;
afterEach(() => world.stop());

test("[RM27] a timer for which the room has no place when it is due fires later", async () => {
  const gate = Promise.withResolvers<void>();
  world = await roomsWorld({
    game: {
      messageRate: 2 * MAILBOX_MAX,
      access: { join: true },
      actions: {
        remind: (room) => room.setTimer("ring", 1_000),
        wait: () => gate.promise,
        nothing() {},
      },
      timers: { ring: (room) => room.send("rang", null) },
    },
  });
  const client = await world.connect("ann");
  await client.enter();
  const act = (actionType: string): void => client.send({ type: "send", actionType, requestId: "1" });
  act("remind");
  act("wait");
  for (let sent = 0; sent <= MAILBOX_MAX; sent++) {
    act("nothing");
    // Above some hundreds at once, messages of the connection would be dropped.
    if (sent % 500 === 0) await world.settle();
  }
  await world.settle();
  expect(client.of("action_error")).toMatchObject([{ message: "The room is busy" }]);
  await world.advance(1_500);
  gate.resolve();
  await until("the room has done what waited", () => client.of("action_result").length === MAILBOX_MAX + 2);
  expect(client.of("message")).toEqual([]);
  await world.advance(1_000);
  expect(client.of("message")).toMatchObject([{ messageType: "rang" }]);
});
