import { createHash } from "node:crypto";
import { isJsonObject, type JsonObject, type JsonValue } from "../../../../kernel/json/json.ts";
import { type Client, requireOk } from "../../transfer/client.ts";

const PAGE_RECORDS = 500;

/** Counts and hashes of what is there and here. */
export interface Comparison {
  name: string;
  kind: "accounts" | "records" | "files";
  there: { count: number; hash: string };
  here: { count: number; hash: string };
}

/** A hash over records, in the order in which they are added. */
export function createRecordsHash() {
  const hash = createHash("sha256");
  let count = 0;
  return {
    add(record: JsonObject): void {
      count += 1;
      hash.update(`${canonical(record)}\n`);
    },
    result: () => ({ count, hash: hash.digest("hex") }),
  };
}

/** Returns JSON whose members are in the order of their names. */
export function canonical(value: JsonValue): string {
  if (Array.isArray(value)) return `[${value.map(canonical).join(",")}]`;
  if (!isJsonObject(value)) return JSON.stringify(value);
  const members = Object.keys(value).sort();
  return `{${members.map((name) => `${JSON.stringify(name)}:${canonical(value[name] ?? null)}`).join(",")}}`;
}

/** Returns the path of a table that was moved. */
export const pathOf = (table: string): string => `/api/db/shared/tables/${encodeURIComponent(table)}`;

/** Yields the records of a table that was moved, as the API answers them. */
export async function* recordsOf(client: Client, table: string): AsyncGenerator<JsonObject> {
  let cursor: JsonValue = null;
  do {
    const after = cursor === null ? "" : `&after=${encodeURIComponent(String(cursor))}`;
    const page = requireOk(await client.get(`${pathOf(table)}?limit=${PAGE_RECORDS}&total=false${after}`));
    if (Array.isArray(page["items"])) yield* page["items"].filter(isJsonObject);
    cursor = page["cursor"] ?? null;
  } while (cursor !== null);
}

/** Returns the SHA-256 of bytes. */
export async function hashOf(stream: ReadableStream<Uint8Array> | null): Promise<string> {
  const hash = new Bun.CryptoHasher("sha256");
  if (stream !== null) for await (const chunk of stream) hash.update(chunk);
  return hash.digest("hex");
}
