import type { Clock } from "../../../../kernel/clock.ts";
import { AppError } from "../../../../kernel/errors.ts";
import type { Job } from "../../../db/processes/job.ts";
import { ProcessPool } from "../../../db/processes/pool.ts";
import { HASH_PROCESS_IDLE_MS, HASH_PROCESSES_MAX, HASH_TIMEOUT_MS, HASHES_AT_ONCE_MAX } from "../limits.ts";
import { type HashWork, hashOnThread } from "./hashing.ts";

/** Where hashes are computed: on threads of this process, and on processes of lower priority when those are taken. */
export interface HashPlaces {
  run(work: HashWork): Promise<string | boolean>;
  stop(): Promise<void>;
}

/** A thread finishes what a process could not. */
const notDone = (): Error => new AppError(503, "The password could not be checked, try again");

const REFUSALS: Job["refusals"] = { queueFull: notDone, waitedTooLong: notDone, ranTooLong: notDone, ended: notDone };

export function createHashPlaces(clock: Clock): HashPlaces {
  const pool = new ProcessPool({
    clock,
    program: "areas/auth/means/hash-job",
    settings: null,
    processesMax: Math.max(1, HASH_PROCESSES_MAX),
    placesMax: Math.max(1, HASH_PROCESSES_MAX),
    idleMs: HASH_PROCESS_IDLE_MS,
  });
  let onThreads = 0;

  const onThread = async (work: HashWork): Promise<string | boolean> => {
    onThreads++;
    try {
      return await hashOnThread(work);
    } finally {
      onThreads--;
    }
  };

  return {
    async run(work) {
      if (onThreads < HASHES_AT_ONCE_MAX) return onThread(work);
      const job: Job = {
        request: work,
        caller: "hashes",
        places: 1,
        waitMs: HASH_TIMEOUT_MS,
        runMs: HASH_TIMEOUT_MS,
        signals: [],
        refusals: REFUSALS,
        failed: notDone,
      };
      // The program gives what `hashNow` does.
      return pool.run(job).catch(() => onThread(work)) as Promise<string | boolean>;
    },
    stop: () => pool.stop(),
  };
}
