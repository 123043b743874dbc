import type { AppAccess } from "../../config/app/index.ts";
import type { CronConfig } from "../../config/types.ts";
import type { Schedules } from "../cron/schedules.ts";
import { CRON_RETRIES_DEFAULT, CRON_TIMEOUT_DEFAULT_SECONDS } from "../limits.ts";

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
