import type { Clock, Millis } from "../../../kernel/clock.ts";
import type { JsonValue } from "../../../kernel/json/json.ts";
import type { Logger } from "../../../kernel/logger.ts";
import { isoTime } from "../../../kernel/time/iso-datetime.ts";
import type { AppAccess } from "../../config/app/index.ts";
import type { CronConfig } from "../../config/types.ts";
import type { Transaction } from "../../db/index.ts";
import { CRON_RETRIES_DEFAULT, CRON_TIMEOUT_DEFAULT_SECONDS, NEXT_RUNS_SHOWN, SLEEP_MAX_MS } from "../limits.ts";
import type { QueueCore } from "../queue/core.ts";
import type { JobRun } from "../types.ts";
import { cronTimes } from "./next-time.ts";

interface ScheduledRun extends Pick<JobRun, "id" | "attempt" | "signal" | "log"> {
  /** The scheduled time, in ISO 8601. */
  readonly scheduledAt: string;
}

interface Schedule {
  /** The name of its jobs. */
  name: string;
  /** A checked cron expression. */
  schedule: string;
  timezone: string;
  /** `once`: after a start, one run makes up for all missed ones. */
  catchUp: "once" | "never";
  retries: number;
  /** Seconds; null: no limit. */
  timeout: number | null;
  run(run: ScheduledRun): unknown;
}

/** Enqueues jobs at the times of cron expressions. */
export interface Schedules {
  /** Adds a schedule. Call before `start`. */
  add(schedule: Schedule): void;
}

/** A schedule, as administrators see it. */
export interface ScheduleView {
  /** The name of its jobs. */
  name: string;
  schedule: string;
  timezone: string;
  /** The next times, in order, at most `NEXT_RUNS_SHOWN`; none in a drill. */
  next: Millis[];
  /** The last time that was enqueued or skipped; null: none yet. */
  last: Millis | null;
}

interface RunningSchedules extends Schedules {
  /** Returns the schedules in the order in which they were added. */
  view(): ScheduleView[];
  /**
   * Enqueues a run for the current time, and resolves with the job's id once it is on disk, or with the id of a run that waits or
   * runs. null: there is no such schedule.
   */
  runNow(name: string): Promise<string> | null;
  start(): Promise<void>;
  stop(): void;
}

/** Dedupe key of a schedule's jobs: while one waits or runs, the next time adds nothing. */
export const SCHEDULE_KEY = "run";

export function createSchedules(deps: {
  core: QueueCore;
  isDrill: boolean;
  clock: Clock;
  logger: Logger;
}): RunningSchedules {
  const { core, clock, logger } = deps;
  const added: Schedule[] = [];
  const cancels = new Map<string, () => void>();

  const enqueue = async (name: string, at: Millis): Promise<void> => {
    try {
      const scheduledAt = isoTime(at);
      // The id is the idempotency key of the time, also when the clock is set back.
      const id = `${name}:${scheduledAt}`;
      const [given] = await Promise.all([
        core.queue.enqueue(name, { scheduledAt }, { id, key: SCHEDULE_KEY }),
        core.open().write((tx) => noteTime(tx, name, at)),
      ]);
      if (given === id) return;
      logger.warn("jobs: a scheduled run is skipped, because the previous one has not ended", {
        job: name,
        scheduledAt,
        id: given,
      });
    } catch (cause) {
      logger.error("jobs: a scheduled run could not be enqueued", { job: name, cause });
    }
  };
  const plan = (schedule: Schedule): void => {
    const times = cronTimes(schedule.schedule, schedule.timezone);
    const waitFor = (due: Millis): void => {
      const waitMs = due - clock.now();
      if (waitMs > 0) {
        // Sleeps in steps, so that a change of the clock is noticed: after one set back, an earlier time is the next. A timer may
        // fire early.
        const wake = (): void => waitFor(Math.min(due, times.next(clock.now()) ?? due));
        cancels.set(schedule.name, clock.after(Math.min(waitMs, SLEEP_MAX_MS), wake));
        return;
      }
      void enqueue(schedule.name, due);
      waitForNext(Math.max(due, clock.now()));
    };
    const waitForNext = (after: Millis): void => {
      const next = times.next(after);
      if (next !== null) waitFor(next);
    };
    waitForNext(clock.now());
  };
  const catchUp = async ({ name, schedule, timezone }: Schedule): Promise<void> => {
    const now = clock.now();
    const store = core.open();
    const last = lastTime(store.file, name);
    if (last === null) {
      // Times can count as missed from the first start on.
      await store.write((tx) => noteTime(tx, name, now));
      return;
    }
    const missed = cronTimes(schedule, timezone).latest(last, now);
    if (missed !== null) await enqueue(name, missed);
  };

  return {
    add(schedule) {
      added.push(schedule);
      core.queue.define(schedule.name, {
        retries: schedule.retries,
        timeout: schedule.timeout,
        concurrency: 1,
        run: ({ id, data, attempt, signal, log }) =>
          schedule.run({ id, scheduledAt: scheduledAtOf(data), attempt, signal, log }),
      });
    },
    view() {
      const store = core.existing();
      return added.map(({ name, schedule, timezone }) => ({
        name,
        schedule,
        timezone,
        next: deps.isDrill ? [] : nextRuns({ schedule, timezone }, clock.now()),
        last: store === null ? null : lastTime(store.file, name),
      }));
    },
    runNow(name) {
      if (!added.some((schedule) => schedule.name === name)) return null;
      return core.queue.enqueue(name, { scheduledAt: isoTime(clock.now()) }, { key: SCHEDULE_KEY });
    },
    async start() {
      if (deps.isDrill) return;
      for (const schedule of added) {
        plan(schedule);
        if (schedule.catchUp === "never") continue;
        await catchUp(schedule).catch((cause: unknown) => {
          logger.error("jobs: catching up a missed run failed", { job: schedule.name, cause });
        });
      }
    },
    stop() {
      for (const cancel of cancels.values()) cancel();
      cancels.clear();
    },
  };
}

function nextRuns({ schedule, timezone }: Pick<Schedule, "schedule" | "timezone">, now: Millis): Millis[] {
  const times = cronTimes(schedule, timezone);
  const runs: Millis[] = [];
  for (let at = times.next(now); at !== null && runs.length < NEXT_RUNS_SHOWN; at = times.next(at)) runs.push(at);
  return runs;
}

/** Returns the time in a job's data, which `enqueue` above has written. */
const scheduledAtOf = (data: JsonValue): string => (data as { scheduledAt: string }).scheduledAt;

const LAST = "SELECT last_at AS lastAt FROM schedules WHERE name = ?1";
const NOTE = `INSERT INTO schedules (name, last_at) VALUES (?1, ?2)
  ON CONFLICT (name) DO UPDATE SET last_at = max(last_at, ?2)`;

/** Returns the last time of a schedule that was enqueued or skipped; null before the first. */
const lastTime = (from: Pick<Transaction, "query">, name: string): Millis | null =>
  from.query<{ lastAt: number }>(LAST).get(name)?.lastAt ?? null;

function noteTime(tx: Transaction, name: string, at: Millis): null {
  tx.query(NOTE).run(name, at);
  return null;
}

/** Defines the schedules of the config, as jobs `cron:NAME`. */
export function defineCron(schedules: Schedules, cron: CronConfig, app: () => AppAccess): void {
  for (const [name, entry] of Object.entries(cron)) {
    schedules.add({
      name: `cron:${name}`,
      schedule: entry.schedule,
      timezone: entry.timezone ?? "UTC",
      catchUp: entry.catchUp === true ? "once" : "never",
      retries: entry.retries ?? CRON_RETRIES_DEFAULT,
      timeout: entry.timeout ?? CRON_TIMEOUT_DEFAULT_SECONDS,
      run: ({ id, scheduledAt, attempt, signal, log }) =>
        entry.run({ id, app: app(), scheduledAt, attempt, signal, log }),
    });
  }
}
