import { expect, test } from "bun:test";
import { testSeed } from "../support/random.ts";
import { runHistory } from "./continuous-model/history.ts";
import { RULES, type Rule } from "./continuous-model/simulated-server.ts";

// The storing process between a simulated server and a simulated store. docs/decisions/016 says what each rule is for.

const ROUNDS = Number(process.env["PLATFORM_FUZZ_ROUNDS"] ?? 1);
/** Four rounds are 10,000 histories. */
const HISTORIES = 2_500 * ROUNDS;
const HISTORIES_WITHOUT_RULE = 2_000;
const seed = testSeed(1);

/** Returns the first seed whose history has a restore that is wrong; null: there is none. */
async function firstWrong(off: Rule | null, count: number): Promise<{ seed: number; reason: string } | null> {
  for (let each = 0; each < count; each++) {
    try {
      await runHistory(seed * 1_000_000 + each, off);
    } catch (cause) {
      return { seed: seed * 1_000_000 + each, reason: String(cause) };
    }
  }
  return null;
}

test(
  `[BK350] in ${HISTORIES} histories every restored moment is what was recorded (seed ${seed})`,
  async () => {
    expect(await firstWrong(null, HISTORIES)).toBeNull();
  },
  600_000 * ROUNDS,
);

for (const rule of RULES) {
  test(`[BK351] without this rule a restore is wrong: ${rule} (seed ${seed})`, async () => {
    expect(await firstWrong(rule, HISTORIES_WITHOUT_RULE)).not.toBeNull();
  }, 600_000);
}
