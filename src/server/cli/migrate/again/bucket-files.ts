import { isJsonObject } from "../../../../kernel/json/json.ts";
import { type Client, requireOk } from "../../transfer/client.ts";
import { hashOf } from "../load/comparison.ts";
import type { Remarks } from "../remarks.ts";
import type { Prints } from "./contents.ts";
import type { Decision, Print } from "./decide.ts";
import { printOf } from "./state.ts";

/** A file of a bucket in the source. */
export interface BucketFile {
  bucket: string;
  key: string;
  path: string;
  type: string;
}

/** Name of the files of buckets beside those of tables. */
export const BUCKETS = ":files";

const PAGE_FILES = 1000;

export const placeOf = ({ bucket, key }: Pick<BucketFile, "bucket" | "key">): string => `${bucket}/${key}`;

const urlOf = (bucket: string, key: string): string =>
  `/api/storage/${bucket}/${key.split("/").map(encodeURIComponent).join("/")}`;

/** Returns hashes of the files of a source by `BUCKET/KEY`. */
export async function filesThere(files: Iterable<BucketFile>): Promise<Prints> {
  const prints = new Map<string, Print>();
  for (const file of files) prints.set(placeOf(file), printOf({ bytes: await hashOf(Bun.file(file.path).stream()) }));
  return prints;
}

/** Returns hashes of the files of buckets here. */
export async function filesHere(client: Client, buckets: readonly string[]): Promise<Prints> {
  const prints = new Map<string, Print>();
  for (const bucket of buckets) {
    let cursor = "";
    do {
      const after = cursor === "" ? "" : `&cursor=${encodeURIComponent(cursor)}`;
      const page = requireOk(await client.get(`/api/storage/${bucket}?limit=${PAGE_FILES}${after}`));
      for (const object of Array.isArray(page["objects"]) ? page["objects"].filter(isJsonObject) : []) {
        const key = String(object["key"]);
        prints.set(
          placeOf({ bucket, key }),
          printOf({ bytes: await hashOf((await client.bytes(urlOf(bucket, key))).body) }),
        );
      }
      cursor = String(page["cursor"] ?? "");
    } while (cursor !== "");
  }
  return prints;
}

/** Uploads and deletes files as decided. Returns those that were refused. */
export async function takeFiles(
  client: Client,
  files: Iterable<BucketFile>,
  decisions: ReadonlyMap<string, Decision>,
  remarks: Remarks,
): Promise<Set<string>> {
  const refused = new Set<string>();
  for (const file of files) {
    const { kind } = decisions.get(placeOf(file)) ?? {};
    if (kind !== "insert" && kind !== "update") continue;
    const form = new FormData();
    form.append("file", Bun.file(file.path, { type: file.type }), file.key.split("/").at(-1));
    form.append("key", file.key);
    const reply = await client.postForm(`/api/storage/${file.bucket}/upload`, form);
    if (reply.status === 201) continue;
    refused.add(placeOf(file));
    remarks.lost(`bucket ${file.bucket}`, `the file ${file.key}: ${String(reply.body["message"])}`);
  }
  for (const [place, { kind }] of decisions) {
    if (kind !== "delete") continue;
    const [bucket = ""] = place.split("/", 1);
    const reply = await client.delete(urlOf(bucket, place.slice(bucket.length + 1)));
    if (reply.status !== 404) requireOk(reply);
  }
  return refused;
}
