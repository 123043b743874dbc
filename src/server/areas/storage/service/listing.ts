import { type Static, Type } from "typebox";
import type { Clock } from "../../../../kernel/clock.ts";
import { isPromise } from "../../../../kernel/maybe-promise.ts";
import { optional } from "../../../../kernel/schema/types.ts";
import type { Pace } from "../../../../kernel/time/scheduler.ts";
import type { Principal } from "../../../access/principal.ts";
import type { Gate, Gates } from "../gates.ts";
import {
  KEY_MAX_BYTES,
  LIST_CHUNK,
  LIST_LIMIT_DEFAULT,
  LIST_LIMIT_MAX,
  LIST_SCAN_MAX,
  LIST_SLIM_CHUNK,
  UPLOAD_TTL_MS,
  UPLOADS_SCAN_CHUNK,
  UPLOADS_SCAN_MAX,
} from "../limits.ts";
import type { ListCursors } from "../model/cursors.ts";
import { factsOf, type ObjectPage, type StoredObject, type Upload } from "../model/types.ts";
import type { SlimObject, StorageStore } from "../store/store.ts";

const Prefix = Type.String({ description: "Keys that begin with this" });
const Limit = Type.Integer({
  minimum: 1,
  default: LIST_LIMIT_DEFAULT,
  description: `More counts as ${LIST_LIMIT_MAX}`,
});
const Delimiter = Type.Literal("/", {
  description: "Keys that go on after the next slash are named once, up to that slash, in `folders`",
});
const Cursor = Type.String({ description: "`cursor` of the previous page" });

/** Query parameters of the list endpoint. */
export const LISTING = {
  prefix: Type.Optional(Prefix),
  delimiter: Type.Optional(Delimiter),
  limit: Type.Optional(Limit),
  cursor: Type.Optional(Cursor),
};
/** Options of `app.storage(bucket).list`. */
export const ListOptions = Type.Object({
  prefix: optional(Prefix),
  delimiter: optional(Delimiter),
  limit: optional(Limit),
  cursor: optional(Cursor),
});
export type ListOptions = Static<typeof ListOptions>;

const LAST_CODE_POINT = "\u{10ffff}";

/**
 * Returns a position after every key of a folder: keys may begin with the last code point there, and none has as many of
 * them.
 */
const beyond = (folder: string): string =>
  folder + LAST_CODE_POINT.repeat(KEY_MAX_BYTES / Buffer.byteLength(LAST_CODE_POINT));

/** Returns the folder below `prefix` that contains a key, with its slash; null when the key is in no further folder. */
function folderOf(key: string, prefix: string): string | null {
  const slash = key.indexOf("/", prefix.length);
  return slash < 0 ? null : key.slice(0, slash + 1);
}

/**
 * Lists the files that the caller may read, in the byte order of their keys. With a delimiter, lists the files and folders
 * below the prefix; a folder is listed if the caller may read a file in it. When a rule hides many, a page may have fewer
 * than `limit` and still be `truncated`. Errors: 401, 403, 404; 400 for a cursor that no list of this bucket has returned.
 */
export async function listObjects(
  deps: { store: StorageStore; gates: Gates; cursors: ListCursors; paces: () => Pace },
  principal: Principal,
  bucket: string,
  options: () => ListOptions,
): Promise<ObjectPage> {
  const gate = await deps.gates.enter(principal, bucket, "read");
  const asked = options();
  const prefix = asked.prefix ?? "";
  const limit = Math.min(asked.limit ?? LIST_LIMIT_DEFAULT, LIST_LIMIT_MAX);
  const hasFolders = (asked.delimiter ?? null) !== null;
  const cursor = asked.cursor ?? null;
  /** The last listed file or folder. Keys do not end with a slash, so one that does is a folder. */
  let last = cursor === null ? "" : deps.cursors.decode(bucket, cursor);
  let folder = last.endsWith("/") ? last : null;
  let after = folder === null ? last : beyond(folder);
  const found: SlimObject[] = [];
  const folders: string[] = [];
  const pace = deps.paces();
  const page = async (end: string | null): Promise<ObjectPage> => {
    // The response is serialised in the same turn of the event loop.
    if (found.length > LIST_LIMIT_DEFAULT) await pace.next();
    return {
      objects: found.map(hasFolders ? describeWithType : describe),
      ...(hasFolders ? { folders } : {}),
      truncated: end !== null,
      cursor: end === null ? null : deps.cursors.encode(bucket, end),
    };
  };
  // Concurrent long lists each take their own turn of the event loop.
  if (gate.verdict === null || hasFolders || limit > LIST_LIMIT_DEFAULT) await pace.next();
  let scanned = 0;

  while (scanned < LIST_SCAN_MAX) {
    // One more than `limit` shows whether there is a next page.
    const left = limit + 1 - found.length - folders.length;
    const isSlim = gate.verdict !== null;
    const wanted = Math.min(
      isSlim && !hasFolders ? Math.min(left, LIST_SLIM_CHUNK) : LIST_CHUNK,
      LIST_SCAN_MAX - scanned,
    );
    const range = { after, from: prefix, limit: wanted };
    const rows = isSlim ? deps.store.listSlim(bucket, range) : deps.store.list(bucket, range);
    for (const row of rows) {
      if (pace.isDue()) await pace.next();
      if (!row.key.startsWith(prefix)) return page(null);
      if (folder !== null && row.key.startsWith(folder)) continue;
      // Rows are whole when the rule is evaluated for each file.
      if (!isSlim && !(await mayRead(gate, row as StoredObject))) continue;
      if (found.length + folders.length === limit) return page(last);
      const inside = hasFolders ? folderOf(row.key, prefix) : null;
      last = inside ?? row.key;
      if (inside === null) {
        // A copy without the metadata, which may be large.
        found.push({ key: row.key, size: row.size, contentType: row.contentType, uploaded: row.uploaded });
        continue;
      }
      folder = inside;
      folders.push(inside);
    }
    if (rows.length < wanted) return page(null);
    scanned += rows.length;
    after = rows.at(-1)?.key ?? after;
    // The rest of the folder is skipped, however large.
    if (folder !== null && after.startsWith(folder)) after = beyond(folder);
  }
  return page(folder !== null && after === beyond(folder) ? folder : after);
}

async function mayRead(gate: Gate, object: StoredObject): Promise<boolean> {
  const verdict = gate.ask(factsOf(object));
  return isPromise(verdict) ? await verdict : verdict;
}

const describe = ({ key, size, uploaded }: SlimObject) => ({ key, size, uploaded: new Date(uploaded).toISOString() });
const describeWithType = (object: SlimObject) => ({ ...describe(object), contentType: object.contentType });

interface Unfinished extends Upload {
  /** Number of parts that have arrived; `size` is their bytes. */
  parts: number;
  size: number;
}

/** Sorts after every id. */
const LAST_ID = "\u{10ffff}";

/**
 * Lists the unfinished uploads of a bucket, newest first. They are found among those of all buckets: when others have many,
 * a page may have fewer than `limit` and still a cursor. Errors: 400 for a cursor of another list.
 */
export async function listUploads(
  { store, cursors, paces, clock }: { store: StorageStore; cursors: ListCursors; paces: () => Pace; clock: Clock },
  bucket: string,
  { limit, cursor }: { limit: number; cursor: string | null },
): Promise<{ uploads: Unfinished[]; cursor: string | null }> {
  // No list of files has cursors with this name, so cursors of other lists are refused.
  const list = `${bucket}/uploads`;
  let place: Pick<Upload, "createdAt" | "id"> =
    cursor === null ? { createdAt: Number.MAX_SAFE_INTEGER, id: LAST_ID } : placeOf(cursors.decode(list, cursor));
  const expiredUntil = clock.now() - UPLOAD_TTL_MS;
  const found: Unfinished[] = [];
  const pace = paces();
  await pace.next();
  for (let scanned = 0; scanned < UPLOADS_SCAN_MAX; scanned += UPLOADS_SCAN_CHUNK) {
    const uploads = store.uploadsBefore(place, UPLOADS_SCAN_CHUNK);
    for (const upload of uploads) {
      if (upload.createdAt <= expiredUntil) return { uploads: found, cursor: null };
      if (upload.bucket === bucket) {
        if (found.length === limit) return { uploads: found, cursor: cursors.encode(list, textOf(place)) };
        // One may have thousands of parts.
        if (pace.isDue()) await pace.next();
        const { count, size } = store.extentOfParts(upload.id);
        found.push({ ...upload, parts: count, size });
      }
      place = upload;
    }
    if (uploads.length < UPLOADS_SCAN_CHUNK) return { uploads: found, cursor: null };
    await pace.next();
  }
  return { uploads: found, cursor: cursors.encode(list, textOf(place)) };
}

const textOf = ({ createdAt, id }: Pick<Upload, "createdAt" | "id">): string => `${createdAt} ${id}`;

function placeOf(text: string): Pick<Upload, "createdAt" | "id"> {
  const [createdAt = "", id = ""] = text.split(" ");
  return { createdAt: Number(createdAt), id };
}
