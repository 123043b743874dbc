import { expect, test } from "bun:test";
import { checkConfig } from "../check.ts";

const FOLDER = { folder: "/backups" };
const S3 = { endpoint: "https://s3.example.com", bucket: "b", accessKeyId: "a", secretAccessKey: "s" };
const GOOD = { schedule: "0 3 * * *", keep: 7, to: FOLDER };

function problemsOf(backups: unknown): string[] {
  const checked = checkConfig({ backups });
  return "problems" in checked ? checked.problems.map(({ path, message }) => `${path}: ${message}`) : [];
}

test("[CF19] a schedule, a number and one place are valid", () => {
  expect(problemsOf(GOOD)).toEqual([]);
  expect(problemsOf({ ...GOOD, schedule: "@daily", keep: 1 })).toEqual([]);
  expect(problemsOf({ ...GOOD, to: { s3: { ...S3, prefix: "server/", region: "eu" } } })).toEqual([]);
});

test("[CF19] a schedule that is not valid, or never occurs", () => {
  for (const schedule of ["daily", "* * * *", "* * * * * *", "61 * * * *", "0 0 30 2 *", "", 5]) {
    expect(problemsOf({ ...GOOD, schedule })).toEqual([expect.stringMatching(/^backups\.schedule: must /)]);
  }
});

test("[CF19] missing members, two places, and numbers out of bounds", () => {
  expect(problemsOf({})).toEqual(["schedule", "keep", "to"].map((name) => `backups.${name}: is required`));
  expect(problemsOf({ ...GOOD, keep: 0 })).toEqual([expect.stringContaining("backups.keep: must be a whole number")]);
  expect(problemsOf({ ...GOOD, to: {} })).toEqual(["backups.to: must have either folder or s3"]);
  expect(problemsOf({ ...GOOD, to: { ...FOLDER, s3: S3 } })).toEqual(["backups.to: must have either folder or s3"]);
  expect(problemsOf({ ...GOOD, to: { folder: "" } })).toEqual(["backups.to.folder: must not be empty"]);
  expect(problemsOf({ ...GOOD, to: { s3: { ...S3, bucket: undefined } } })).toEqual([
    "backups.to.s3.bucket: is required",
  ]);
});
