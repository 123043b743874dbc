import { existsSync, statSync } from "node:fs";
import { resolve } from "node:path";
import { momentIn } from "../../areas/backup/continuous/restore/moment.ts";
import type { BackupsPlace } from "../../config/types.ts";
import { CommandError, UsageError } from "../errors.ts";

const S3 = "s3://";

/** Returns the place that a command names: a folder, or `s3://bucket/prefix`. Errors: there is no such folder; a bucket without access in the environment. */
export function placeOf(text: string, environment: Readonly<Record<string, string | undefined>>): BackupsPlace {
  if (!text.startsWith(S3)) {
    if (!existsSync(text)) throw new CommandError(`There is no file or folder ${text}`);
    return { folder: resolve(text) };
  }
  const [bucket = "", ...prefix] = text.slice(S3.length).split("/");
  if (bucket === "") throw new UsageError(`${text} must be s3://BUCKET/PREFIX`);
  const required = (name: string): string => {
    const value = environment[name] ?? "";
    if (value === "") throw new CommandError(`${name} must be set in the environment for ${text}`);
    return value;
  };
  const region = environment["AWS_REGION"] || undefined;
  const endpoint =
    environment["AWS_ENDPOINT_URL_S3"] ||
    environment["AWS_ENDPOINT_URL"] ||
    `https://s3.${region ?? "us-east-1"}.amazonaws.com`;
  return {
    s3: {
      endpoint,
      bucket,
      ...(region === undefined ? {} : { region }),
      accessKeyId: required("AWS_ACCESS_KEY_ID"),
      secretAccessKey: required("AWS_SECRET_ACCESS_KEY"),
      prefix: prefix.join("/"),
    },
  };
}

/** Whether a place is a file, and so an archive of `platform backup`. */
export const isArchive = (text: string): boolean =>
  !text.startsWith(S3) && statSync(text, { throwIfNoEntry: false })?.isFile() === true;

/** Reads `--at`: ISO 8601 with a zone, up to milliseconds. Errors: UsageError. */
export function momentArgument(text: string): number {
  const at = momentIn(text);
  if (at === null) {
    throw new UsageError(`--at must be a time with a zone, as 2026-11-26T14:03:19Z, got "${text}"`);
  }
  return at;
}
