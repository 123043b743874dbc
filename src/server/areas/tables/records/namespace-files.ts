import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import type { Logger } from "../../../../kernel/logger.ts";
import type { NamespaceConfig } from "../../../config/types.ts";
import { holdsRecords } from "../../../db/index.ts";

const ENDING = ".db";
const isDatabase = (entry: string): boolean => entry.endsWith(ENDING);

/** Refuses a namespace that was declared with the other kind: its records are in another place and would not be found. */
export function refuseOtherKind(directory: string, name: string, { instance }: NamespaceConfig): void {
  const file = join(directory, name + ENDING);
  const folder = join(directory, name);
  if (instance === true && existsSync(file) && holdsRecords(file)) {
    throw new Error(
      `databases.${name}: it is declared with instance: true, but ${file} has the records of a namespace without it. ` +
        "Remove instance: true, or move that file out of the data directory",
    );
  }
  if (instance !== true && existsSync(folder) && readdirSync(folder).some(isDatabase)) {
    throw new Error(
      `databases.${name}: it is declared without instance: true, but ${folder} has the files of its instances. ` +
        "Declare instance: true again, or move that folder out of the data directory",
    );
  }
}

/** Logs files of namespaces that the config no longer declares. Their data is kept but cannot be reached. */
export function warnOfUndeclared(directory: string, isDeclared: (name: string) => boolean, logger: Logger): void {
  for (const entry of readdirSync(directory, { withFileTypes: true })) {
    const name = entry.isFile() && isDatabase(entry.name) ? entry.name.slice(0, -ENDING.length) : entry.name;
    if (!entry.isDirectory() && name === entry.name) continue;
    const path = join(directory, entry.name);
    if (isDeclared(name) || (entry.isDirectory() ? !readdirSync(path).some(isDatabase) : !holdsRecords(path))) continue;
    logger.warn(`databases.${name} is not declared. Its records stay in ${path}, but no request can reach them`);
  }
}
