import { type Static, Type } from "typebox";
import { KEEP_MAX } from "../limits.ts";
import { refined, text, whole } from "../shape/schema.ts";
import { cronExpression } from "./functions/cron.ts";
import { type ObjectStore, objectStore } from "./storage.ts";

const place = refined(
  Type.Object({ folder: Type.Optional(text()), s3: Type.Optional(objectStore()) }),
  ({ folder, s3 }, report) => {
    if ((folder === undefined) === (s3 === undefined)) report.say("must have either folder or s3");
  },
);

export const Backups = Type.Object({
  /** The times in UTC: a cron expression of five fields, or a nickname such as `@daily`. */
  schedule: cronExpression(),
  /** The number of newest backups to keep; older ones are deleted after each success. */
  keep: whole({ min: 1, max: KEEP_MAX }),
  /** Whether each backup is restored into a scratch folder and checked before it counts. Default: false. */
  verify: Type.Optional(Type.Boolean()),
  /** A folder on this machine, best on another disk, or an object store. No other server may write its backups there. */
  to: Type.Unsafe<{ folder: string } | { s3: ObjectStore }>(place),
});
/** Backups that the server makes on schedule while it runs. */
export interface BackupsConfig extends Static<typeof Backups> {}
