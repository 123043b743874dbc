import { Database } from "bun:sqlite";
import { join } from "node:path";
import { openUnchanged } from "../../db/index.ts";
import type { Patient } from "./finding.ts";

/** A connection that changes nothing. Beside a running server it locks as others do, as the file may change meanwhile. */
export function openDatabase({ dataDirectory, isRunning }: Patient, path: string): Database {
  const file = join(dataDirectory, path);
  return isRunning ? new Database(file, { readonly: true }) : openUnchanged(file);
}
