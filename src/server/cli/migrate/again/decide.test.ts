import { expect, test } from "bun:test";
import { random, testSeed } from "../../../../../tests/support/random.ts";
import { type Decision, decide, type Print, type States } from "./decide.ts";

const print = (values: Record<string, string>): Print => new Map(Object.entries(values));

test("[MG71] what changed on one side is decided for it, and what changed here stays", () => {
  const [a, b, c] = [print({ x: "1", y: "1" }), print({ x: "2", y: "1" }), print({ x: "3", y: "1" })];
  const decisions: [States, Decision][] = [
    [{ moved: null, there: a, here: null }, { kind: "insert" }],
    [{ moved: a, there: b, here: a }, { kind: "update" }],
    [{ moved: a, there: null, here: a }, { kind: "delete" }],
    [{ moved: a, there: a, here: a }, { kind: "nothing" }],
    [{ moved: a, there: b, here: b }, { kind: "nothing" }],
    [{ moved: a, there: null, here: null }, { kind: "nothing" }],
    [
      { moved: null, there: null, here: a },
      { kind: "leave", because: "made", isNewThere: false },
    ],
    [
      { moved: null, there: b, here: a },
      { kind: "leave", because: "made", isNewThere: true },
    ],
    [
      { moved: a, there: a, here: b },
      { kind: "leave", because: "changed", isNewThere: false },
    ],
    [
      { moved: a, there: c, here: b },
      { kind: "leave", because: "changed", isNewThere: true },
    ],
    [
      { moved: a, there: null, here: b },
      { kind: "leave", because: "changed", isNewThere: true },
    ],
    [
      { moved: a, there: a, here: null },
      { kind: "leave", because: "deleted", isNewThere: false },
    ],
    [
      { moved: a, there: b, here: null },
      { kind: "leave", because: "deleted", isNewThere: true },
    ],
    // A field that the config here does not have, and one that is new there.
    [{ moved: a, there: print({ x: "2", y: "1", z: "1" }), here: print({ y: "1" }) }, { kind: "nothing" }],
    [
      { moved: a, there: print({ x: "1", y: "1", z: "1" }), here: print({ x: "1", y: "1", z: "0" }) },
      { kind: "update" },
    ],
  ];
  for (const [states, decision] of decisions) expect(decide(states)).toEqual(decision);
});

test("[MG71] whatever happens on both sides, nothing of here is lost, and what only changed there arrives", () => {
  const chance = random(testSeed(50));
  for (let round = 0; round < 2_000; round += 1) {
    let [moved, there, here] = [null, null, null] as [Print | null, Print | null, Print | null];
    for (let move = 0; move < 4; move += 1) {
      const before: { there: Print | null; here: Print | null } = { there, here };
      const changed = (state: Print | null): Print | null =>
        chance.chance(0.4) ? state : chance.chance(0.3) ? null : print({ x: String(chance.below(3)), y: "1" });
      there = changed(there);
      if (move > 0) here = changed(here);
      const decision = decide({ moved, there, here });
      const isSameHere =
        JSON.stringify([...(here ?? [])]) === JSON.stringify([...(moved ?? [])]) &&
        (here === null) === (moved === null);
      if (decision.kind === "insert" || decision.kind === "update") {
        // Only what has not been touched here is written over.
        expect([isSameHere, before]).toEqual([true, before]);
        here = there;
      } else if (decision.kind === "delete") {
        expect(isSameHere).toBe(true);
        here = null;
      } else if (decision.kind === "nothing") {
        expect([...(here ?? [])]).toEqual([...(there ?? [])]);
      } else expect(isSameHere).toBe(false);
      moved = there;
    }
  }
});
