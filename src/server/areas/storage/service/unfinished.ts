import type { Clock } from "../../../../kernel/clock.ts";
import type { Paces } from "../../../../kernel/time/pace.ts";
import type { ListCursors } from "../model/cursors.ts";
import { UPLOAD_TTL_MS, UPLOADS_SCAN_CHUNK, UPLOADS_SCAN_MAX } from "../limits.ts";
import type { StorageStore } from "../store/store.ts";
import type { Upload } from "../model/types.ts";

interface Unfinished extends Upload {
  /** Those that have arrived, and their bytes. */
  parts: number;
  size: number;
}

/** After every id. */
const LAST_ID = "\u{10ffff}";

/**
 * The unfinished uploads of a bucket, newest first. They are found among those of all buckets: where others have many, a page
 * may have fewer than `limit` and still a cursor. Errors: 400 for a cursor of another list.
 */
export async function listUploads(
  { store, cursors, paces, clock }: { store: StorageStore; cursors: ListCursors; paces: Paces; clock: Clock },
  bucket: string,
  { limit, cursor }: { limit: number; cursor: string | null },
): Promise<{ uploads: Unfinished[]; cursor: string | null }> {
  // No file of the bucket has this cursor: it is that of another list.
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
