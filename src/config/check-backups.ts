import { objectStore } from "./check-services.ts";
import { type Check, describe, isPlainObject, members, text, textWith, whole } from "./shape.ts";

const KEEP_MAX = 10_000;

const schedule = textWith((value) => {
  const problem = `must be a cron expression of five fields that comes to pass, such as "0 3 * * *", got ${describe(value)}`;
  try {
    return Bun.cron.parse(value) === null ? problem : null;
  } catch {
    return problem;
  }
});

const destination: Check = (value, report) => {
  if (!members({ folder: text, s3: objectStore })(value, report)) return false;
  // members has seen that it is one.
  const { folder, s3 } = isPlainObject(value) ? value : {};
  return (folder === undefined) !== (s3 === undefined) || report.say("must have either folder or s3");
};

export const checkBackups = members({ schedule, keep: whole({ min: 1, max: KEEP_MAX }), to: destination }, [
  "schedule",
  "keep",
  "to",
]);
