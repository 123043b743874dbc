import { expect, test } from "bun:test";
import fc from "fast-check";
import { followDelta } from "../../../../../tests/support/room-client.ts";
import type { JsonObject, JsonValue } from "../../../../kernel/json/json.ts";
import { diffStates } from "./delta.ts";
import { adoptState, SYNCED, stateBytes } from "./state.ts";

const key = fc.stringMatching(/^[a-d]{1,2}$/);
const value = fc.letrec<{ value: JsonValue; object: JsonObject }>((tie) => ({
  value: fc.oneof(
    { maxDepth: 8, depthSize: "large" },
    fc.oneof(
      fc.integer(),
      fc.string(),
      fc.boolean(),
      fc.constant(null),
      fc.double({ noNaN: true, noDefaultInfinity: true }),
    ),
    fc.array(tie("value"), { maxLength: 3 }),
    tie("object"),
  ),
  object: fc.dictionary(key, tie("value"), { maxKeys: 4 }),
}));
const state = value.object;
const wire = <T>(message: T): T => JSON.parse(JSON.stringify(message));

test("[RM31] applying the delta of two states to the first gives the second", () => {
  fc.assert(
    fc.property(state, state, (one, other) => {
      const before = adoptState(one, SYNCED);
      const after = adoptState(other, SYNCED);
      const delta = diffStates(before, after);
      const followed = delta === null ? wire(before) : followDelta(wire(before), wire(delta));
      expect(followed).toEqual(wire(after));
    }),
    { numRuns: 500 },
  );
});

test("[RM31] no delta when nothing differs, whether shared by reference or not", () => {
  fc.assert(
    fc.property(state, (one) => {
      const before = adoptState(one, SYNCED);
      expect(diffStates(before, before)).toBeNull();
      expect(diffStates(before, adoptState(wire(before), SYNCED))).toBeNull();
    }),
  );
});

test("[RM31] paths have at most five levels and name only what differs", () => {
  const before = adoptState(
    { a: { b: { c: { d: { e: { f: 1, g: 2 } } } } }, list: [1, 2], gone: 1, same: { x: 1 } },
    SYNCED,
  );
  const after = adoptState(
    { a: { b: { c: { d: { e: { f: 9, g: 2 } } } } }, list: [1, 2, 3], same: { x: 1 }, new: {} },
    SYNCED,
  );
  expect(diffStates(before, after)).toEqual({
    "a.b.c.d.e": { f: 9, g: 2 },
    list: [1, 2, 3],
    gone: null,
    new: {},
  });
});

test("[RM24] the size of a state is the bytes of its JSON", () => {
  fc.assert(
    fc.property(fc.dictionary(fc.string({ unit: "binary" }), fc.jsonValue()), (one) => {
      let adopted: JsonObject;
      try {
        adopted = adoptState(one, SYNCED);
      } catch {
        return; // a key with a dot
      }
      expect(stateBytes(adopted, SYNCED)).toBe(Buffer.byteLength(JSON.stringify(adopted)));
    }),
    { numRuns: 500 },
  );
});

test("[RM24] a state adopted on top of another equals one adopted alone, in value and size", () => {
  fc.assert(
    fc.property(state, state, (one, other) => {
      const before = adoptState(one, SYNCED);
      const mixed = { ...before, ...other };
      for (const next of [other, mixed, { ...mixed, a: null }]) {
        const following = adoptState(next, SYNCED, before);
        expect(following).toEqual(adoptState(next, SYNCED));
        expect(stateBytes(following, SYNCED)).toBe(Buffer.byteLength(JSON.stringify(following)));
      }
    }),
    { numRuns: 500 },
  );
});
