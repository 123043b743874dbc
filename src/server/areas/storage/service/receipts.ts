import { createHash } from "node:crypto";
import { AppError } from "../../../../kernel/errors.ts";
import type { Principal } from "../../../access/principal.ts";
import { callerKeyOf } from "../../../http/exchange/idempotency-key.ts";
import type { ReceiptRecord } from "../statements/receipts.ts";
import type { StorageWrite } from "../store/store.ts";

// What an upload stored, for a client that repeats it because it did not get the answer. [ST210] [ST211]

/** Thrown in place of the second of two equal uploads, which is answered by the receipt of the first; nothing of it is stored. */
export class StoredBefore extends Error {
  constructor() {
    super("The upload has been stored before");
  }
}

/** What a receipt is found by, and whose it is. */
export interface ReceiptName {
  id: string;
  bucket: string;
  ownerId: string | null;
}

/** The same upload with other parts is another request. */
export function receiptOfParts(uploadId: string, parts: readonly { partNumber: number; etag: string }[]): string {
  const hash = createHash("sha256");
  for (const { partNumber, etag } of parts) hash.update(`${partNumber} ${JSON.stringify(etag)}\n`);
  return `upload:${uploadId}:${hash.digest("base64url")}`;
}

/** As version 0.2.0 has named them, whatever the parts: its clients may repeat their requests after an upgrade. */
export const earlierReceiptOf = (uploadId: string): string => `upload:${uploadId}`;

/** Errors: 400 for a key of another form. */
export function receiptOfKey(principal: Principal, bucket: string, key: string): string {
  const { caller } = callerKeyOf(principal, key);
  return `key:${createHash("sha256").update(`${caller}\0${bucket}\0${key}`).digest("base64url")}`;
}

/** Errors: 422 where the key was used for another file. */
export function requireSameFile(receipt: ReceiptRecord, { key, size }: { key: string; size: number }): void {
  if (receipt.key !== key || receipt.size !== size) {
    throw new AppError(422, "The idempotency key was used for another file");
  }
}

/** To be called in the write that stores the file. Errors: `StoredBefore`. */
export function leaveReceipt(
  storage: StorageWrite,
  name: ReceiptName,
  file: { key: string; size: number; uploaded: number },
): void {
  if (storage.findReceipt(name.id) !== null) throw new StoredBefore();
  const { id, bucket, ownerId } = name;
  const { key, size, uploaded } = file;
  storage.insertReceipt({ id, bucket, ownerId, key, size, uploaded });
}
