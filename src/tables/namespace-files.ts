import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import type { NamespaceConfig } from "../config/types.ts";
import { holdsRecords } from "../db/index.ts";
import type { Logger } from "../kernel/logger.ts";

const ENDING = ".db";
const isDatabase = (entry: string): boolean => entry.endsWith(ENDING);

/** Its records would be out of reach, with nothing said: the two kinds keep them in different places. */
export function refuseOtherKind(directory: string, name: string, { instance }: NamespaceConfig): void {
  const file = join(directory, name + ENDING);
  const folder = join(directory, name);
  if (instance === true && existsSync(file) && holdsRecords(file)) {
    throw new Error(
      `databases.${name}: instance: true is declared, and ${file} holds the records of a namespace without it. ` +
        "Take instance: true away again, or move that file out of the data directory",
    );
  }
  if (instance !== true && existsSync(folder) && readdirSync(folder).some(isDatabase)) {
    throw new Error(
      `databases.${name}: is declared without instance: true, and ${folder} holds the files of its instances. ` +
        "Declare instance: true again, or move that folder out of the data directory",
    );
  }
}

/** A namespace that was taken out of the config, or mistyped in it: nothing of it is lost, and nobody reaches it. */
export function warnOfUndeclared(directory: string, isDeclared: (name: string) => boolean, logger: Logger): void {
  for (const entry of readdirSync(directory, { withFileTypes: true })) {
    const name = entry.isFile() && isDatabase(entry.name) ? entry.name.slice(0, -ENDING.length) : entry.name;
    if (!entry.isDirectory() && name === entry.name) continue;
    const path = join(directory, entry.name);
    if (isDeclared(name) || (entry.isDirectory() ? !readdirSync(path).some(isDatabase) : !holdsRecords(path))) continue;
    logger.warn(`databases.${name} is not declared, and ${path} holds its records: they stay, and nobody reaches them`);
  }
}
