import {
  closeSync,
  fsyncSync,
  openSync,
  readFileSync,
  realpathSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { dirname } from "node:path";
import { conflict } from "../../../kernel/errors.ts";
import { syncDirectorySync } from "../../disk/directory-names.ts";
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
  const temporary = `${path}.${process.pid}.new`;
  rmSync(temporary, { force: true });
  const descriptor = openSync(temporary, "wx", statSync(path).mode & 0o777);
  try {
    writeFileSync(descriptor, text);
    fsyncSync(descriptor);
    renameSync(temporary, path);
  } catch (cause) {
    rmSync(temporary, { force: true });
    throw cause;
  } finally {
    closeSync(descriptor);
  }
  syncDirectorySync(dirname(path));
}
