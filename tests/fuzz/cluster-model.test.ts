import { expect, test } from "bun:test";
import { testSeed } from "../support/random.ts";
import { type Counts, type Planted, runHistory } from "./cluster-model/history.ts";
import { nodeWithout, RULES, STARTS } from "./cluster-model/planted.ts";
import { CONDITIONS } from "./cluster-model/simulated-postgres.ts";

// Nodes of a cluster between a simulated PostgreSQL with its traps, networks, disks and clocks. docs/decisions/018 says what each rule is for.

const ROUNDS = Number(process.env["PLATFORM_FUZZ_ROUNDS"] ?? 1);
/** Two minutes of one core. */
const HISTORIES = 100_000 * ROUNDS;
/** Histories within which a mistake is found; the rarest is found once in some ten thousand. */
const HISTORIES_WITHOUT_RULE = 60_000;
const seed = testSeed(1);

/** Returns the first seed whose history is wrong; null: there is none. */
function firstWrong(count: number, planted: Planted, start = 0): { seed: number; reason: string } | null {
  for (let each = start; each < start + count; each++) {
    try {
      runHistory(seed * 1_000_000 + each, planted);
    } catch (cause) {
      return { seed: seed * 1_000_000 + each, reason: String(cause) };
    }
  }
  return null;
}

test(
  `[CLU1] in ${HISTORIES} histories nothing that was acknowledged or shown is lost (seed ${seed})`,
  () => {
    expect(firstWrong(HISTORIES, {})).toBeNull();
  },
  600_000 * ROUNDS,
);

test("[CLU3] every fault strikes: takeovers, promotions, late statements, alarms, revocations", () => {
  const counts: Counts[] = Array.from({ length: 300 }, (_, each) => runHistory(each));
  const total = (name: keyof Counts): number => counts.reduce((sum, each) => sum + each[name], 0);
  expect(total("takeovers")).toBeGreaterThan(300);
  expect(total("promotions")).toBeGreaterThan(300);
  expect(total("late")).toBeGreaterThan(50);
  expect(total("alarms")).toBeGreaterThan(0);
  expect(total("revocations")).toBeGreaterThan(300);
  expect(total("acknowledgements")).toBeGreaterThan(10_000);
  expect(total("answers")).toBeGreaterThan(10_000);
});

for (const condition of CONDITIONS) {
  test(`[CLU2] without this condition of a statement a history is wrong: ${condition} (seed ${seed})`, () => {
    expect(firstWrong(HISTORIES_WITHOUT_RULE, { condition }, STARTS[condition])).not.toBeNull();
  }, 600_000);
}

for (const rule of RULES) {
  test(`[CLU2] without this rule a history is wrong: ${rule.name} (seed ${seed})`, async () => {
    const nodeType = await nodeWithout(rule);
    expect(firstWrong(HISTORIES_WITHOUT_RULE, { nodeType }, rule.start)).not.toBeNull();
  }, 600_000);
}
