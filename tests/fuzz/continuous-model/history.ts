import { type Random, random as randomOf } from "../../support/random.ts";
import { requireLive, requireMoments, requirePrefix } from "./judge.ts";
import { type Rule, SimulatedServer } from "./simulated-server.ts";

const STEPS_MAX = 60;
const PASSES_MAX = 20;

/**
 * Runs one history at random: commits, openings, closings, restarts of WALs, removals, kills, power cuts and passes, with a store that
 * fails. Returns how many states of files at moments were compared. Errors: a restore is not what was recorded.
 */
export async function runHistory(seed: number, off: Rule | null): Promise<number> {
  const random = randomOf(seed);
  const server = new SimulatedServer(random, off);
  let compared = 0;
  for (let step = 5 + random.below(STEPS_MAX); step >= 0; step--) {
    server.step();
    const chance = random.below(1000);
    if (chance < 250) await pass(server, random);
    else if (chance < 270) server.endShipper();
    else if (chance < 290) await stop(server);
    else if (chance < 330) {
      server.kill({ isPowerCut: chance < 310 });
      server.store.mood = "well";
      await requirePrefix(server);
    } else if (chance < 340) server.store.arrive();
  }
  if (random.chance(0.5)) server.kill({ isPowerCut: random.chance(0.5) });
  server.heal();
  // A file that a crash has left open is looked at in the second pass of a process, and what is found is stored by the third.
  for (let passes = 0; ; passes++) {
    const hasMore = await server.pass({ isLast: false });
    if (hasMore === false && passes > 0) break;
    if (passes > PASSES_MAX) throw new Error("there is always more to store");
  }
  server.store.arrive();
  await requireLive(server);
  compared += await requireMoments(server, random, 3);
  return compared;
}

async function pass(server: SimulatedServer, random: Random): Promise<void> {
  server.store.mood = random.pick(["well", "well", "well", "failing", "dead"]);
  // The server goes on while an object is on its way.
  server.store.meanwhile = random.chance(0.3) ? () => server.step() : () => {};
  await server.pass({ isLast: false });
}

async function stop(server: SimulatedServer): Promise<void> {
  server.store.mood = "well";
  await server.stop();
}
