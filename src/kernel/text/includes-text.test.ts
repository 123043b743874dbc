import { expect, test } from "bun:test";
import { random, testSeed } from "../../../tests/support/random.ts";
import { includesText } from "./includes-text.ts";

const SEED = testSeed(77);

test(`[TB17] a text is found where String.includes finds it (seed ${SEED})`, () => {
  const r = random(SEED);
  const letters = ["a", "b", "é", "漢", "😀"];
  const textOf = (length: number) => Array.from({ length }, () => r.pick(letters)).join("");
  let found = 0;
  for (let round = 0; round < 2_000; round++) {
    const text = textOf(r.below(400));
    const from = r.below(text.length + 1);
    const cut = r.chance(0.5) ? text.slice(from, from + r.below(60)) : textOf(r.below(60));
    // A cut may have split a character.
    const needle = cut.isWellFormed() ? cut : "";
    expect([text, needle, includesText(text, needle)]).toEqual([text, needle, text.includes(needle)]);
    if (needle.length > 16 && text.includes(needle)) found += 1;
  }
  expect(found).toBeGreaterThan(100);
});
