import type { JsonValue } from "../../../kernel/json/json.ts";
import type { AppAccess, User } from "../../config/app/index.ts";
import type { TriggerConfig, TriggerRun } from "../../config/types.ts";
import { FinalFailure, type JobDefinition, type JobRun } from "../../jobs/index.ts";
import { CauseExhausted } from "./causes.ts";
import { CONCURRENCY_DEFAULT, DEPTH_MAX, RETRIES_DEFAULT, TIMEOUT_DEFAULT_SECONDS } from "./limits.ts";
import type { Outboxes } from "./outboxes.ts";
import type { Occurrence } from "./types.ts";

export interface RunDeps {
  outboxes: Outboxes;
  app: () => AppAccess;
}

/** Returns the occurrence that `noteHappening` has written. */
const occurrenceOf = (data: JsonValue): Occurrence => data as unknown as Occurrence;

/** Returns the definition of a trigger's jobs. */
export function triggerDefinition(name: string, config: TriggerConfig, deps: RunDeps): JobDefinition {
  const { retries = RETRIES_DEFAULT, timeout = TIMEOUT_DEFAULT_SECONDS, concurrency = CONCURRENCY_DEFAULT } = config;
  return {
    retries,
    timeout,
    concurrency,
    run(job) {
      const { event, before, after, by, instanceId, at, depth } = occurrenceOf(job.data);
      if (depth >= DEPTH_MAX) throw new FinalFailure(tooDeep(`The trigger "${name}"`));
      const { id, attempt, signal, log } = job;
      // Validation of the config has checked that the events are those of the source.
      const run = { event, before, after, by, instanceId, at, app: deps.app(), id, attempt, signal, log } as TriggerRun;
      return runFrom(job, depth, deps, () => config.run(run));
    },
  };
}

/** Returns the definition of the jobs of one of `auth.hooks`. */
export function hookDefinition(
  name: string,
  hook: (user: User, app: AppAccess, occurrence: Occurrence) => unknown,
  deps: RunDeps,
): JobDefinition {
  return {
    retries: RETRIES_DEFAULT,
    timeout: TIMEOUT_DEFAULT_SECONDS,
    concurrency: CONCURRENCY_DEFAULT,
    run(job) {
      const occurrence = occurrenceOf(job.data);
      const { before, after, depth } = occurrence;
      if (depth >= DEPTH_MAX) throw new FinalFailure(tooDeep(`The hook "${name}"`));
      // The data is written by the area of users.
      const user = (after ?? before) as unknown as User;
      return runFrom(job, depth, deps, () => hook(user, deps.app(), occurrence));
    },
  };
}

/**
 * Runs `work` with the origin of the job. Errors: a final failure where the cause has triggered too many runs; a retry would not
 * change that.
 */
async function runFrom(job: JobRun, depth: number, deps: RunDeps, work: () => unknown): Promise<unknown> {
  const { root = job.id } = occurrenceOf(job.data);
  try {
    return await deps.outboxes.runFrom({ depth: depth + 1, root }, work);
  } catch (cause) {
    throw cause instanceof CauseExhausted ? new FinalFailure(cause.message) : cause;
  }
}

const tooDeep = (what: string): string =>
  `${what} was set off by a run that was itself set off by another, and so on ${DEPTH_MAX} times: this looks endless`;
