import { type Static, Type } from "typebox";
import type { Principal } from "../access/principal.ts";
import { isPromise } from "../kernel/maybe-promise.ts";
import { optional } from "../kernel/schema/types.ts";
import type { Paces } from "../kernel/time/pace.ts";
import type { ListCursors } from "./cursors.ts";
import { factsOf } from "./facts.ts";
import { LIST_CHUNK, LIST_LIMIT_DEFAULT, LIST_LIMIT_MAX, LIST_SCAN_MAX, LIST_SLIM_CHUNK } from "./limits.ts";
import type { Gates } from "./rights/gates.ts";
import type { SlimObject, StorageStore } from "./store.ts";
import type { Gate, ObjectPage, StoredObject } from "./types.ts";

const Prefix = Type.String({ description: "Keys that begin with this" });
const Limit = Type.Integer({
  minimum: 1,
  default: LIST_LIMIT_DEFAULT,
  description: `More counts as ${LIST_LIMIT_MAX}`,
});
const Cursor = Type.String({ description: "`cursor` of the previous page" });

/** The query of the endpoint. */
export const LISTING = {
  prefix: Type.Optional(Prefix),
  limit: Type.Optional(Limit),
  cursor: Type.Optional(Cursor),
};
/** The options of `app.storage(bucket).list`. */
export const ListOptions = Type.Object({
  prefix: optional(Prefix),
  limit: optional(Limit),
  cursor: optional(Cursor),
});
export type ListOptions = Static<typeof ListOptions>;

/**
 * The files that the caller may read, in the byte order of their keys. Where a rule hides many, a page may have fewer than
 * `limit` files and still be `truncated`. Errors: 401, 403, 404; 400 for a cursor that no list of this bucket has returned.
 */
export async function listObjects(
  deps: { store: StorageStore; gates: Gates; cursors: ListCursors; paces: Paces },
  principal: Principal,
  bucket: string,
  options: () => ListOptions,
): Promise<ObjectPage> {
  const gate = await deps.gates.enter(principal, bucket, "read");
  const asked = options();
  const prefix = asked.prefix ?? "";
  const limit = Math.min(asked.limit ?? LIST_LIMIT_DEFAULT, LIST_LIMIT_MAX);
  const cursor = asked.cursor ?? null;
  let after = cursor === null ? "" : deps.cursors.decode(bucket, cursor);
  const found: SlimObject[] = [];
  const pace = deps.paces();
  const page = async (last: string | null): Promise<ObjectPage> => {
    // The answer is serialised in the same turn of the event loop.
    if (found.length > LIST_LIMIT_DEFAULT) await pace.next();
    return {
      objects: found.map(describe),
      truncated: last !== null,
      cursor: last === null ? null : deps.cursors.encode(bucket, last),
    };
  };
  // Of many long lists that arrive at once each takes a turn of the event loop of its own.
  if (gate.verdict === null || limit > LIST_LIMIT_DEFAULT) await pace.next();
  let scanned = 0;

  while (scanned < LIST_SCAN_MAX) {
    // One more than `limit` shows whether there is a next page.
    const left = gate.verdict !== null ? Math.min(limit + 1 - found.length, LIST_SLIM_CHUNK) : LIST_CHUNK;
    const wanted = Math.min(left, LIST_SCAN_MAX - scanned);
    const range = { after, from: prefix, limit: wanted };
    const rows = gate.verdict !== null ? deps.store.listSlim(bucket, range) : deps.store.list(bucket, range);
    for (const row of rows) {
      if (pace.isDue()) await pace.next();
      if (!row.key.startsWith(prefix)) return page(null);
      // Rows are whole where the rule is asked about each file.
      if (gate.verdict === null && !(await mayRead(gate, row as StoredObject))) continue;
      if (found.length === limit) return page(found.at(-1)?.key ?? null);
      // A copy without the metadata, which may be large.
      found.push({ key: row.key, size: row.size, uploaded: row.uploaded });
    }
    if (rows.length < wanted) return page(null);
    scanned += rows.length;
    after = rows.at(-1)?.key ?? after;
  }
  return page(after);
}

async function mayRead(gate: Gate, object: StoredObject): Promise<boolean> {
  const verdict = gate.ask(factsOf(object));
  return isPromise(verdict) ? await verdict : verdict;
}

const describe = ({ key, size, uploaded }: SlimObject) => ({ key, size, uploaded: new Date(uploaded).toISOString() });
