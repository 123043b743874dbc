import { conflict } from "../../../../kernel/errors.ts";
import type { Transaction } from "../../../db/index.ts";
import type { Readable } from "../../../db/query.ts";
import { MERGED_FILES_MAX } from "../limits.ts";
import { filesOfUploader, moveFiles } from "../statements/objects.ts";
import { addUsage, deleteUsage, usageOf } from "../statements/usage.ts";

/** Counts the files that a user has uploaded. Errors: 409 for more than one transaction gives to another user. */
export function countFilesOf(sql: Readable, userId: string): number {
  const files = filesOfUploader.all(sql, { userId, limit: MERGED_FILES_MAX + 1 });
  if (files.length > MERGED_FILES_MAX) throw conflict(`The account has more than ${MERGED_FILES_MAX} files`);
  return files.length;
}

/** Gives the files of a user to another one, and what they take of the quotas of buckets, which the sum may exceed. */
export function moveFilesOf(tx: Transaction, { userId, to }: { userId: string; to: string }): void {
  const held = new Map<string, number>();
  for (const { bucket, size } of filesOfUploader.all(tx, { userId, limit: Number.MAX_SAFE_INTEGER })) {
    held.set(bucket, (held.get(bucket) ?? 0) + size);
  }
  for (const [bucket, bytes] of held) {
    // Buckets without a quota count nothing.
    const counted = usageOf.get(tx, { bucket, ownerId: userId })?.bytes;
    if (counted === undefined) continue;
    if (counted === bytes) deleteUsage.run(tx, { bucket, ownerId: userId });
    else addUsage.run(tx, { bucket, ownerId: userId, bytes: -bytes });
    addUsage.run(tx, { bucket, ownerId: to, bytes });
  }
  moveFiles.run(tx, { userId, to });
}
