import { readFileSync } from "node:fs";
import { join } from "node:path";
import { isMissing } from "../../kernel/errors.ts";
import type { Ids } from "../../kernel/ids.ts";
import { replaceSmallFile } from "./small-file.ts";

/** File of the id. Backups do not include it: a restored copy is another data directory. */
export const OWNER_ID_FILE = "owner-id";
const ID = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

/** Returns the id of this data directory, for places outside of it that belong to it. Made and durable when it is first needed. */
export function ownerIdOf(directory: string, ids: Ids): string {
  const path = join(directory, OWNER_ID_FILE);
  const present = read(path);
  if (present !== null) return present;
  const made = ids.uuid();
  replaceSmallFile(path, made);
  return made;
}

function read(path: string): string | null {
  let text: string;
  try {
    text = readFileSync(path, "utf8").trim();
  } catch (cause) {
    if (isMissing(cause)) return null;
    throw cause;
  }
  if (ID.test(text)) return text;
  throw new Error(
    `${path} must contain the id of this data directory and contains something else; delete it to get a new one`,
  );
}
