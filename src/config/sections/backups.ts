import { type Static, Type } from "typebox";
import { KEEP_MAX } from "../limits.ts";
import { describe } from "../shape/report.ts";
import { refined, text, textWith, whole } from "../shape/schema.ts";
import { type ObjectStore, objectStore } from "./storage.ts";

const schedule = textWith((value) => {
  const problem = `must be a cron expression of five fields that occurs at some time, such as "0 3 * * *", got ${describe(value)}`;
  try {
    return Bun.cron.parse(value) === null ? problem : null;
  } catch {
    return problem;
  }
});

const place = refined(
  Type.Object({ folder: Type.Optional(text()), s3: Type.Optional(objectStore()) }),
  ({ folder, s3 }, report) => {
    if ((folder === undefined) === (s3 === undefined)) report.say("must have either folder or s3");
  },
);

export const Backups = Type.Object({
  /** When, in UTC: a cron expression of five fields, or a nickname such as `@daily`. */
  schedule,
  /** The number of newest backups to keep; older ones are deleted after each success. */
  keep: whole({ min: 1, max: KEEP_MAX }),
  /** A folder on this machine, best on another disk, or an object store. No other server may write its backups there. */
  to: Type.Unsafe<{ folder: string } | { s3: ObjectStore }>(place),
});
/** Backups that the server makes by itself while it runs. */
export interface BackupsConfig extends Static<typeof Backups> {}
