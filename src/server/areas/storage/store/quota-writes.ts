import type { Transaction } from "../../../db/index.ts";
import { heldAt, partSize } from "../statements/usage.ts";
import type { ObjectAddress, StoredObject, Upload, UploadPart } from "../model/types.ts";
import type { BucketQuota, Quotas } from "./quotas.ts";

/** What a write counts for the quotas, before it makes the change. Costs nothing where no bucket has a quota. */
export interface QuotaWrites {
  /** Errors: 413. */
  store(object: StoredObject): void;
  remove(address: ObjectAddress): void;
  /** Errors: 413. */
  putPart(uploadId: string, part: UploadPart): void;
  /** Parts of an upload that has not ended; one that has ended holds nothing. */
  releaseParts(uploadId: string, size: () => number): void;
}

export function quotaWrites(tx: Transaction, quotas: Quotas, findUpload: (id: string) => Upload | null): QuotaWrites {
  /** The quota that an unfinished upload counts for. */
  const quotaOf = (uploadId: string): { quota?: BucketQuota | undefined; ownerId: string | null } => {
    const upload = quotas.isEmpty ? null : findUpload(uploadId);
    if (upload === null || upload.createdAt === 0) return { ownerId: null };
    return { quota: quotas.of(upload.bucket), ownerId: upload.ownerId };
  };
  return {
    store({ uploadedBy: ownerId, size, bucket, key }) {
      quotas.of(bucket)?.replace(tx, heldAt.get(tx, { bucket, key }), { ownerId, size });
    },
    remove(address) {
      const quota = quotas.of(address.bucket);
      const held = quota === undefined ? null : heldAt.get(tx, address);
      if (held !== null) quota?.release(tx, held);
    },
    putPart(uploadId, { partNumber, size }) {
      const { quota, ownerId } = quotaOf(uploadId);
      if (quota === undefined) return;
      const before = partSize.get(tx, { uploadId, partNumber });
      quota.replace(tx, before === null ? null : { ownerId, size: before.size }, { ownerId, size });
    },
    releaseParts(uploadId, size) {
      const { quota, ownerId } = quotaOf(uploadId);
      quota?.release(tx, { ownerId, size: size() });
    },
  };
}
