import { expect, test } from "bun:test";
import type { AppError } from "../../../kernel/errors.ts";
import { createUnfinishedBodies } from "./unfinished-bodies.ts";

const MIB = 1024 ** 2;
const BODY_MAX_BYTES = 10 * MIB;
const status = (work: () => void): number => {
  try {
    work();
    return 200;
  } catch (cause) {
    // `add` throws nothing else.
    return (cause as AppError).status;
  }
};

test("[HT113] one sender has 64 MiB of unfinished bodies; complete and abandoned ones no longer count", () => {
  const bodies = createUnfinishedBodies(BODY_MAX_BYTES);
  const held = Array.from({ length: 7 }, () => bodies.begin("one", () => {}));
  expect(held.slice(0, 6).map((body) => status(() => body.add(10 * MIB)))).toEqual(Array(6).fill(200));
  const [first, , , , , , last] = held;
  expect(status(() => last?.add(5 * MIB))).toBe(429);
  expect(status(() => bodies.begin("other", () => {}).add(10 * MIB))).toBe(200);
  first?.release();
  expect(status(() => bodies.begin("one", () => {}).add(10 * MIB))).toBe(200);
});

test("[HT113] over the total bound, the newest body of the sender with the most is refused, not one of another sender", () => {
  const bodies = createUnfinishedBodies(BODY_MAX_BYTES);
  const givenUp: string[] = [];
  for (const name of ["a", "b", "c", "d"]) {
    for (let index = 0; index < 6; index++) {
      bodies.begin(name, ({ status }) => givenUp.push(`${name}${index}: ${status}`)).add(10 * MIB);
    }
  }
  bodies.begin("a", () => givenUp.push("a6")).add(2 * MIB);
  const honest = bodies.begin("honest", () => givenUp.push("honest"));
  expect(status(() => honest.add(10 * MIB))).toBe(200);
  expect(status(() => honest.add(10 * MIB))).toBe(200);
  expect(givenUp).toEqual(["a6", "a5: 503"]);
});

test("[HT113] service keys have the bound of all alone, and bodies that the config allows always fit", () => {
  const bodies = createUnfinishedBodies(BODY_MAX_BYTES);
  const own = bodies.begin(null, () => {});
  expect(status(() => own.add(200 * MIB))).toBe(200);
  expect(status(() => own.add(100 * MIB))).toBe(503);
  const large = createUnfinishedBodies(500 * MIB).begin("one", () => {});
  expect(status(() => large.add(500 * MIB))).toBe(200);
});

test("[HT134] while complete bodies wait for the parser no more is read, and none of them counts for its sender", async () => {
  const bodies = createUnfinishedBodies(BODY_MAX_BYTES);
  const held = [1, 2].map(() => bodies.begin("one", () => {}));
  for (const body of held) {
    body.add(10 * MIB);
    body.complete();
  }
  expect(Array.from({ length: 6 }, () => status(() => bodies.begin("one", () => {}).add(10 * MIB)))).toEqual(
    Array(6).fill(200),
  );
  let hasRoom = false;
  const room = bodies.room().then(() => {
    hasRoom = true;
  });
  await Promise.resolve();
  expect(hasRoom).toBe(false);
  held[0]?.release();
  await room;
  expect(hasRoom).toBe(true);
});
