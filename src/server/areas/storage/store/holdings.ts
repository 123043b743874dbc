import { conflict } from "../../../../kernel/errors.ts";
import type { Transaction } from "../../../db/index.ts";
import type { Readable } from "../../../db/query.ts";
import { MERGED_FILES_MAX } from "../limits.ts";
import { claimsOfOwner, moveClaim } from "../statements/claims.ts";
import { filesOfUploader, moveFile } from "../statements/objects.ts";
import { addUsage, deleteUsage, usageOf } from "../statements/usage.ts";

/**
 * Counts the files that a user has uploaded to buckets. Errors: 409 for more than one transaction gives to another user, those in records
 * included.
 */
export function countFilesOf(sql: Readable, userId: string): number {
  const limit = MERGED_FILES_MAX + 1;
  const files = filesOfUploader.all(sql, { userId, limit }).length;
  if (files + claimsOfOwner.all(sql, { ownerId: userId, limit }).length >= limit) {
    throw conflict(`The account has more than ${MERGED_FILES_MAX} files`);
  }
  return files;
}

/**
 * Gives files of a user, those in records included, to another one, and what they take of the quotas of buckets, which the sum may exceed.
 * Returns false if there may be more than one transaction moves.
 */
export function moveFilesOf(tx: Transaction, { userId, to }: { userId: string; to: string }): boolean {
  const files = filesOfUploader.all(tx, { userId, limit: MERGED_FILES_MAX });
  const claims = claimsOfOwner.all(tx, { ownerId: userId, limit: MERGED_FILES_MAX - files.length });
  for (const { bucket, key } of files) moveFile.run(tx, { bucket, key, to });
  for (const { fileId } of claims) moveClaim.run(tx, { fileId, to });
  const held = new Map<string, number>();
  for (const { bucket, size } of [...files, ...claims]) held.set(bucket, (held.get(bucket) ?? 0) + size);
  for (const [bucket, bytes] of held) {
    // Buckets without a quota count nothing.
    const counted = usageOf.get(tx, { bucket, ownerId: userId })?.bytes;
    if (counted === undefined) continue;
    if (counted === bytes) deleteUsage.run(tx, { bucket, ownerId: userId });
    else addUsage.run(tx, { bucket, ownerId: userId, bytes: -bytes });
    addUsage.run(tx, { bucket, ownerId: to, bytes });
  }
  return files.length + claims.length < MERGED_FILES_MAX;
}
