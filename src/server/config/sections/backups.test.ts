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

test("[CF370] continuous backup needs a place alone, and has bounds", () => {
  expect(problemsOf({ continuous: { to: FOLDER } })).toEqual([]);
  const most = { to: { s3: S3 }, everyMs: 250, keepDays: 30, maxPendingBytes: 1_000_000 };
  expect(problemsOf({ ...GOOD, continuous: most })).toEqual([]);
  expect(problemsOf({ continuous: { to: FOLDER }, keep: 7 })).toEqual(
    ["schedule", "to"].map((name) => `backups.${name}: is required`),
  );
  expect(problemsOf({ continuous: {} })).toEqual(["backups.continuous.to: is required"]);
  for (const [name, value] of Object.entries({ everyMs: 249, keepDays: 0, maxPendingBytes: 999_999 })) {
    expect(problemsOf({ continuous: { to: FOLDER, [name]: value } })).toEqual([
      expect.stringContaining(`backups.continuous.${name}: must be a whole number`),
    ]);
  }
  expect(problemsOf({ continuous: { to: FOLDER, everyMs: 60_001 } })).toHaveLength(1);
  expect(problemsOf({ continuous: { to: FOLDER, verify: false } })).toEqual([]);
  expect(problemsOf({ continuous: { to: FOLDER, verify: "no" } })).toHaveLength(1);
});

test("[CF371] the place of continuous backup is not that of the scheduled backups", () => {
  const message = "backups.continuous.to: must be another place than backups.to";
  expect(problemsOf({ ...GOOD, continuous: { to: { folder: "/backups/." } } })).toEqual([message]);
  const s3 = { ...S3, prefix: "a" };
  expect(problemsOf({ ...GOOD, to: { s3 }, continuous: { to: { s3: { ...s3, prefix: "a/" } } } })).toEqual([message]);
  expect(problemsOf({ ...GOOD, to: { s3 }, continuous: { to: { s3: { ...s3, prefix: "b" } } } })).toEqual([]);
});
