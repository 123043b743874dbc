import { resolve } from "node:path";
import { type Static, Type } from "typebox";
import {
  CONTINUOUS_EVERY_MAX_MS,
  CONTINUOUS_EVERY_MIN_MS,
  CONTINUOUS_KEEP_DAYS_MAX,
  CONTINUOUS_PENDING_MIN_BYTES,
  KEEP_MAX,
} from "../limits.ts";
import { isPlainObject } from "../shape/report.ts";
import { refined, related, text, whole } from "../shape/schema.ts";
import { cronExpression } from "./functions/cron.ts";
import { type ObjectStore, objectStore } from "./storage.ts";

/** A folder on this machine, or an object store. */
export type BackupsPlace = { folder: string } | { s3: ObjectStore };

export const place = () =>
  Type.Unsafe<BackupsPlace>(
    refined(
      Type.Object({ folder: Type.Optional(text()), s3: Type.Optional(objectStore()) }),
      ({ folder, s3 }, report) => {
        if ((folder === undefined) === (s3 === undefined)) report.say("must have either folder or s3");
      },
    ),
  );

const Continuous = Type.Object({
  /** A folder, best on another disk, or an object store; another one than `backups.to`. No other server may use it. */
  to: place(),
  /** The time after which a commit is there, in milliseconds. Default: 1000. */
  everyMs: Type.Optional(whole({ min: CONTINUOUS_EVERY_MIN_MS, max: CONTINUOUS_EVERY_MAX_MS })),
  /** The days of which every moment can be had back. Default: 7. */
  keepDays: Type.Optional(whole({ min: 1, max: CONTINUOUS_KEEP_DAYS_MAX })),
  /** Whether once a day each database is restored into a scratch folder and compared with the live one. Default: true. */
  verify: Type.Optional(Type.Boolean()),
  /** The bytes of the data directory that may wait for a store that does not answer. Default: 1 GiB. */
  maxPendingBytes: Type.Optional(whole({ min: CONTINUOUS_PENDING_MIN_BYTES, unit: "bytes" })),
});
/** Brings every commit to another place, from which any moment can be restored. */
export interface ContinuousConfig extends Static<typeof Continuous> {}

const Scheduled = Type.Object({
  /** The times in UTC: a cron expression of five fields, or a nickname such as `@daily`. */
  schedule: cronExpression(),
  /** The number of newest backups to keep; older ones are deleted after each success. */
  keep: whole({ min: 1, max: KEEP_MAX }),
  /** Whether each backup is restored into a scratch folder and checked before it counts. Default: false. */
  verify: Type.Optional(Type.Boolean()),
  /** A folder on this machine, best on another disk, or an object store. No other server may write its backups there. */
  to: place(),
});
/** Backups that the server makes on schedule while it runs. */
export interface ScheduledBackupsConfig extends Static<typeof Scheduled> {}

const TOGETHER = ["schedule", "keep", "to"] as const;

export const Backups = related(
  Type.Object({
    /** The times in UTC: a cron expression of five fields, or a nickname such as `@daily`. Needs `keep` and `to`. */
    schedule: Type.Optional(Scheduled.properties.schedule),
    /** The number of newest backups to keep; older ones are deleted after each success. */
    keep: Type.Optional(Scheduled.properties.keep),
    /** Whether each backup is restored into a scratch folder and checked before it counts. Default: false. */
    verify: Scheduled.properties.verify,
    /** A folder on this machine, best on another disk, or an object store. No other server may write its backups there. */
    to: Type.Optional(Scheduled.properties.to),
    /** Every commit, brought to another place, from which any moment can be restored. */
    continuous: Type.Optional(Type.Unsafe<ContinuousConfig>(Continuous)),
  }),
  ({ continuous, ...scheduled }, report) => {
    if (continuous === undefined || Object.keys(scheduled).length > 0) {
      for (const name of TOGETHER) if (scheduled[name] === undefined) report.at(name).say("is required");
    }
    const own = isPlainObject(continuous) ? placeName(continuous["to"]) : null;
    if (own !== null && own === placeName(scheduled["to"])) {
      report.at("continuous").at("to").say("must be another place than backups.to");
    }
  },
);
/** Copies of the data that the server makes while it runs. `schedule`, `keep` and `to` belong together. */
export type BackupsConfig =
  | (ScheduledBackupsConfig & { continuous?: ContinuousConfig })
  | { continuous: ContinuousConfig; schedule?: never; keep?: never; verify?: never; to?: never };

/** Returns a text that is the same for the same place; null: it is not valid. */
function placeName(to: unknown): string | null {
  if (!isPlainObject(to)) return null;
  if (typeof to["folder"] === "string") return resolve(to["folder"]);
  const { s3 } = to;
  if (!isPlainObject(s3)) return null;
  const { endpoint, bucket, prefix = "" } = s3;
  return JSON.stringify([endpoint, bucket, String(prefix).replace(/\/$/, "")]);
}

/** Returns the scheduled backups; undefined: none are declared. */
export function scheduledBackups(config: BackupsConfig | undefined): ScheduledBackupsConfig | undefined {
  const { schedule, keep, to, verify } = config ?? {};
  if (schedule === undefined || keep === undefined || to === undefined) return undefined;
  return { schedule, keep, to, ...(verify === undefined ? {} : { verify }) };
}
