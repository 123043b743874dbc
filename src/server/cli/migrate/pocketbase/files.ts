import { existsSync, readFileSync, statSync } from "node:fs";
import { basename, join } from "node:path";
import { isJsonObject } from "../../../../kernel/json/json.ts";
import type { PbCollection, PbField } from "./collections.ts";
import type { PbSource } from "./source.ts";
import { valuesIn } from "./survey.ts";

/** A stored file of a record. */
export interface StoredFile {
  path: string;
  name: string;
  size: number;
  type: string;
}

/** Returns the stored files of a field; `missing` are names without bytes in the folder. */
export function storedFiles(
  source: PbSource,
  { id: collection }: PbCollection,
  record: string,
  value: unknown,
): { found: StoredFile[]; missing: string[] } {
  const found: StoredFile[] = [];
  const missing: string[] = [];
  for (const name of valuesIn(value)) {
    const path = join(source.folder, "storage", collection, record, name);
    // A name is no path: nothing else than this folder is read.
    const stats = basename(name) === name ? statSync(path, { throwIfNoEntry: false }) : undefined;
    if (stats?.isFile() === true) found.push({ path, name, size: stats.size, type: typeOf(path) });
    else missing.push(name);
  }
  return { found, missing };
}

/** Returns the media type that is stored beside the file, else the one of its ending. */
function typeOf(path: string): string {
  const attributes = `${path}.attrs`;
  if (existsSync(attributes)) {
    try {
      const facts: unknown = JSON.parse(readFileSync(attributes, "utf8"));
      const type = isJsonObject(facts) ? facts["user.content_type"] : null;
      if (typeof type === "string" && type !== "") return type;
    } catch {
      // Written by an interrupted upload: the ending says enough.
    }
  }
  return Bun.file(path).type;
}

/** Facts of all stored files of a field. */
export function filesSurvey(
  source: PbSource,
  collection: PbCollection,
  field: PbField,
): { largest: number; types: Set<string>; missing: number } {
  const facts = { largest: 0, types: new Set<string>(), missing: 0 };
  if (field.type !== "file") return facts;
  for (const row of source.rows(collection.name)) {
    const { found, missing } = storedFiles(source, collection, String(row["id"]), row[field.name]);
    facts.missing += missing.length;
    for (const { size, type } of found) {
      facts.largest = Math.max(facts.largest, size);
      facts.types.add(type.replace(/;.*$/, "").trim().toLowerCase());
    }
  }
  return facts;
}
