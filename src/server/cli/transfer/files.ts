import { createWriteStream, existsSync, mkdirSync, realpathSync, renameSync, rmSync, statSync } from "node:fs";
import { basename, isAbsolute, join, relative, resolve, sep } from "node:path";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { isJsonObject, type JsonObject, type JsonValue } from "../../../kernel/json/json.ts";
import { CommandError } from "../errors.ts";
import type { Client, FieldTypes } from "./client.ts";

interface FileValue {
  id: string;
  name: string;
  type: string;
  url: string;
}

/** The form of ids, which name files: nothing else becomes a path. */
const FILE_ID = /^[0-9a-f-]{36}$/;

/** Returns the names of the fields of files. Errors: neither server nor config knows them. */
export function fileFieldsOf(types: FieldTypes | null | "unknown"): string[] {
  if (types === "unknown") {
    throw new CommandError(
      "--files needs the declared types: the server's api.schemaEndpoint is off, and there is no config at --config",
    );
  }
  return [...(types ?? [])].flatMap(([name, type]) => (type === "file" ? [name] : []));
}

/** Returns the files of a value. Errors: a file whose id has another form than that of a server. */
function filesOf(value: JsonValue | undefined): FileValue[] {
  const all: readonly unknown[] = Array.isArray(value) ? value : [value ?? null];
  return all.flatMap((one) => {
    if (!isJsonObject(one)) return [];
    const { id, name, type, url } = one;
    if (typeof id !== "string" || !FILE_ID.test(id))
      throw new CommandError(`${JSON.stringify(id)} is not the id of a file`);
    return [{ id, name: String(name), type: String(type), url: String(url) }];
  });
}

/** Returns the paths of files that a value names, as other programs write them. */
const pathsOf = (value: JsonValue | undefined): string[] =>
  [value ?? null].flat().flatMap((one) => (typeof one === "string" && one !== "" ? [one] : []));

export const hasFiles = (record: JsonObject, fields: readonly string[]): boolean =>
  fields.some((name) => filesOf(record[name]).length + pathsOf(record[name]).length > 0);

/** Returns the place of a file in a folder. Errors: it is not there, or not inside, links counted. */
function placeIn(folder: string, path: string): string {
  const place = resolve(folder, path);
  if (!existsSync(place) || !statSync(place).isFile()) throw new CommandError(`the file "${path}" is not in ${folder}`);
  const found = relative(realpathSync(folder), realpathSync(place));
  if (found === ".." || found.startsWith(`..${sep}`) || isAbsolute(found))
    throw new CommandError(`the file "${path}" is outside of ${folder}`);
  return place;
}

/** Writes the bytes of a record's files to a folder, each under its id. One that is gone by now is left out, and counted. */
export async function writeFiles(
  client: Client,
  folder: string,
  record: JsonObject,
  fields: readonly string[],
): Promise<{ written: number; gone: number }> {
  const counts = { written: 0, gone: 0 };
  mkdirSync(folder, { recursive: true });
  for (const { id, url } of fields.flatMap((name) => filesOf(record[name]))) {
    const path = join(folder, id);
    if (existsSync(path)) continue;
    const answer = await client.bytes(url);
    if (answer.status === 404) {
      counts.gone += 1;
      continue;
    }
    if (answer.status !== 200) throw new CommandError(`the file ${url} is refused with ${answer.status}`);
    const temporary = `${path}.${process.pid}.part`;
    try {
      const body = answer.body === null ? Readable.from([]) : Readable.fromWeb(answer.body as never);
      await pipeline(body, createWriteStream(temporary));
      renameSync(temporary, path);
    } finally {
      rmSync(temporary, { force: true });
    }
    counts.written += 1;
  }
  return counts;
}

/** Returns the form of a record with its files from a folder. Errors: a file that is not there. */
export function formOf(record: JsonObject, fields: readonly string[], folder: string): FormData {
  const form = new FormData();
  // What an upsert finds is replaced, not added to.
  const without = Object.fromEntries(fields.map((name) => [name, Array.isArray(record[name]) ? [] : null]));
  form.append("record", JSON.stringify({ ...record, ...without }));
  for (const field of fields) {
    for (const { id, name, type } of filesOf(record[field])) {
      const path = join(folder, id);
      if (!existsSync(path)) throw new CommandError(`the file ${id} ("${name}") is not in ${folder}`);
      form.append(field, Bun.file(path, { type }), name);
    }
    for (const path of pathsOf(record[field])) form.append(field, Bun.file(placeIn(folder, path)), basename(path));
  }
  return form;
}
