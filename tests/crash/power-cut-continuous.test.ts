import { describe, expect, test } from "bun:test";
import { cutsUnderLoad } from "./power/continuous-judge.ts";
import { hasTracer, SEED } from "./power/load.ts";

// The recorded server is backed up continuously to another disk. Whatever a power cut takes from the data directory, the store has
// nothing that the directory does not have.

const CUTS = 8 * Number(process.env["PLATFORM_CRASH_ROUNDS"] ?? 3);

describe.if(hasTracer)("a power cut during continuous backup", () => {
  test(`[BK365] the store never has more than the data directory after a power cut, and the same pages of the same commit (seed ${SEED})`, async () => {
    const cuts = await cutsUnderLoad(CUTS);
    expect(cuts.filter(({ ahead }) => ahead.length > 0)).toEqual([]);
    expect(cuts.length).toBeGreaterThan(CUTS / 4);
  }, 600_000);
});
