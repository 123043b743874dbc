import { quotaExceeded } from "../../../../kernel/errors.ts";
import type { BucketConfig } from "../../../config/types.ts";
import type { OpenedFile, Transaction } from "../../../db/index.ts";
import type { Readable } from "../../../db/query.ts";
import type { ObjectAddress, StoredObject, Upload, UploadPart } from "../model/types.ts";
import {
  addUsage,
  bucketsWithUsage,
  countedUsage,
  deleteUsage,
  deleteUsageOf,
  heldAt,
  partSize,
  usageOf,
} from "../statements/usage.ts";

/** Bytes of one owner; null: of a service key or the server. */
export interface Held {
  ownerId: string | null;
  size: number;
}

/** Bytes. */
export interface QuotaUse {
  /** null: not limited. */
  total: number | null;
  perUser: number | null;
  /** By all files together, and by the parts of unfinished uploads. */
  used: number;
}

/** What one bucket may hold, and what it holds. Buckets without a quota have none. */
export interface BucketQuota {
  /** Errors: 413 when `after` in place of `before` is more than may be held, and more than was held. */
  require(from: Readable, before: Held | null, after: Held): void;
  /** The same, and counts it: of two writes at once the second one sees what the first one holds. */
  replace(tx: Transaction, before: Held | null, after: Held): void;
  release(tx: Transaction, held: Held): void;
  /** A body begins to arrive. */
  arrive(from: Readable, ownerId: string | null): Arrival;
  use(from: Readable): QuotaUse;
}

/** The bytes of a body that are on the disk and not stored yet. */
export interface Arrival {
  /** Errors: 413 when more arrive at once than may be held. */
  take(bytes: number): void;
  /** They are stored, or gone. */
  end(): void;
}

export interface Quotas {
  /** No bucket has a quota. */
  readonly isEmpty: boolean;
  of(bucket: string): BucketQuota | undefined;
}

/** The row of all owners together; no user has this id. */
const EVERYBODY = "";

/**
 * Opens the counts of all buckets with a quota. They are kept by the writes that change files; a bucket that has got its quota
 * since the last start is counted once.
 */
export async function openQuotas(
  file: OpenedFile,
  buckets: Readonly<Record<string, Pick<BucketConfig, "quota">>>,
): Promise<Quotas> {
  const quotas = new Map<string, BucketQuota>();
  const counted = new Set(bucketsWithUsage.all(file, {}).map(({ bucket }) => bucket));
  for (const [bucket, { quota }] of Object.entries(buckets)) {
    if (quota === undefined) continue;
    quotas.set(bucket, createQuota(bucket, quota));
    if (!counted.delete(bucket)) await file.write((tx) => countBucket(tx, bucket));
  }
  // Nothing keeps the counts of a bucket without a quota.
  for (const bucket of counted) await file.write((tx) => void deleteUsageOf.run(tx, { bucket }));
  return { isEmpty: quotas.size === 0, of: (bucket) => quotas.get(bucket) };
}

function countBucket(tx: Transaction, bucket: string): void {
  addUsage.run(tx, { bucket, ownerId: EVERYBODY, bytes: 0 });
  for (const { ownerId, bytes } of countedUsage.all(tx, { bucket })) {
    addUsage.run(tx, { bucket, ownerId: EVERYBODY, bytes });
    if (ownerId !== null) addUsage.run(tx, { bucket, ownerId, bytes });
  }
}

function createQuota(bucket: string, { total, perUser }: NonNullable<BucketConfig["quota"]>): BucketQuota {
  const used = (from: Readable, ownerId: string): number => usageOf.get(from, { bucket, ownerId })?.bytes ?? 0;
  const add = (tx: Transaction, ownerId: string, bytes: number): void => {
    if (bytes !== 0) addUsage.run(tx, { bucket, ownerId, bytes });
  };
  const bucketMayHold = `The bucket "${bucket}" may hold ${total} bytes`;
  const userMayHold = `Each user may hold ${perUser} bytes in the bucket "${bucket}"`;
  const release = (tx: Transaction, { ownerId, size }: Held): void => {
    add(tx, EVERYBODY, -size);
    if (ownerId === null) return;
    add(tx, ownerId, -size);
    // A user without files leaves no row.
    if (used(tx, ownerId) === 0) deleteUsage.run(tx, { bucket, ownerId });
  };
  const require = (from: Readable, before: Held | null, after: Held): void => {
    const given = before?.size ?? 0;
    if (total !== undefined) {
      const held = used(from, EVERYBODY);
      if (after.size > given && held - given + after.size > total) {
        throw exceeded(bucketMayHold, held, after.size);
      }
    }
    const { ownerId } = after;
    if (perUser === undefined || ownerId === null) return;
    const givenByOwner = before?.ownerId === ownerId ? given : 0;
    const held = used(from, ownerId);
    if (after.size > givenByOwner && held - givenByOwner + after.size > perUser) {
      throw exceeded(userMayHold, held, after.size);
    }
  };
  const arriving = new Map<string, number>();
  /** A bucket may hold more than its quota, which is smaller than before, and its files may be replaced. */
  const requireArriving = (from: Readable, ownerId: string, max: number, allowed: string): void => {
    const bytes = arriving.get(ownerId) ?? 0;
    if (bytes <= max || bytes <= used(from, ownerId)) return;
    throw quotaExceeded(`${allowed}, and ${bytes} are arriving at once`);
  };
  const arrive = (from: Readable, ownerId: string | null): Arrival => {
    let taken = 0;
    const count = (bytes: number): void => {
      taken += bytes;
      for (const owner of ownerId === null ? [EVERYBODY] : [EVERYBODY, ownerId]) {
        const sum = (arriving.get(owner) ?? 0) + bytes;
        if (sum === 0) arriving.delete(owner);
        else arriving.set(owner, sum);
      }
    };
    return {
      take(bytes) {
        count(bytes);
        if (total !== undefined) requireArriving(from, EVERYBODY, total, bucketMayHold);
        if (perUser !== undefined && ownerId !== null) requireArriving(from, ownerId, perUser, userMayHold);
      },
      end: () => count(-taken),
    };
  };
  return {
    require,
    release,
    arrive,
    use: (from) => ({ total: total ?? null, perUser: perUser ?? null, used: used(from, EVERYBODY) }),
    replace(tx, before, after) {
      require(tx, before, after);
      add(tx, EVERYBODY, after.size - (before?.size ?? 0));
      if (before?.ownerId === after.ownerId) {
        if (after.ownerId !== null) add(tx, after.ownerId, after.size - (before?.size ?? 0));
        return;
      }
      if (before !== null && before.ownerId !== null) {
        add(tx, before.ownerId, -before.size);
        if (used(tx, before.ownerId) === 0) deleteUsage.run(tx, { bucket, ownerId: before.ownerId });
      }
      if (after.ownerId !== null) add(tx, after.ownerId, after.size);
    },
  };
}

const exceeded = (allowed: string, held: number, wanted: number) =>
  quotaExceeded(`${allowed}: ${held} are in use, and ${wanted} more were to be stored`);

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
