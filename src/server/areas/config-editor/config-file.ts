import { readFileSync, realpathSync, statSync } from "node:fs";
import { conflict } from "../../../kernel/errors.ts";
import { replaceSmallFile } from "../../disk/small-file.ts";
import { SOURCE_MAX_BYTES } from "./limits.ts";

/** Reads a config's text. Errors: 409 where it is missing or too large to be edited. */
export function readConfig(file: string): string {
  const size = statSync(file, { throwIfNoEntry: false })?.size ?? null;
  if (size === null) throw conflict(`There is no config at ${file} any more`);
  if (size > SOURCE_MAX_BYTES) {
    throw conflict(`The config has ${size} bytes, and is edited up to ${SOURCE_MAX_BYTES}`);
  }
  return readFileSync(file, "utf8");
}

/** Replaces a config's text, and keeps its mode. A link stays one. A crash leaves the old text or the new one. */
export function writeConfig(file: string, text: string): void {
  const path = realpathSync(file);
  replaceSmallFile(path, text, statSync(path).mode & 0o777);
}
