import { quotaExceeded } from "../../../../kernel/errors.ts";
import type { BucketConfig } from "../../../config/types.ts";
import type { OpenedFile, Transaction } from "../../../db/index.ts";
import type { Readable } from "../../../db/query.ts";
import { addUsage, bucketsWithUsage, countedUsage, deleteUsage, deleteUsageOf, usageOf } from "../statements/usage.ts";

/** Bytes held by one owner; owner null: a service key or the server. */
interface Held {
  ownerId: string | null;
  size: number;
}

/** Quota of a bucket and its use, in bytes. */
export interface QuotaUse {
  /** Limit of the whole bucket; null: unlimited. */
  total: number | null;
  perUser: number | null;
  /** Bytes in use by all files and by the parts of unfinished uploads. */
  used: number;
}

/** Counts the bytes of a body that are on disk and not stored yet. */
export interface Arrival {
  /** Adds bytes. Errors: 413 when more arrive at once than the quota allows. */
  take(bytes: number): void;
  /** Releases the bytes: they are stored, or gone. */
  end(): void;
}

/** Quotas by bucket; buckets without a quota have no entry. */
export type Quotas = ReadonlyMap<string, BucketQuota>;

/** Owner id of the row that counts all owners together; no user has this id. */
const EVERYBODY = "";

/**
 * Opens the counts of all buckets with a quota. Every transaction that changes files updates them; a bucket that got its
 * quota since the last start is counted once.
 */
export async function openQuotas(
  file: OpenedFile,
  buckets: Readonly<Record<string, Pick<BucketConfig, "quota">>>,
): Promise<Quotas> {
  const quotas = new Map<string, BucketQuota>();
  const counted = new Set(bucketsWithUsage.all(file, {}).map(({ bucket }) => bucket));
  for (const [bucket, { quota }] of Object.entries(buckets)) {
    if (quota === undefined) continue;
    quotas.set(bucket, new BucketQuota(bucket, quota));
    if (!counted.delete(bucket)) await file.write((tx) => countBucket(tx, bucket));
  }
  // Counts of a bucket without a quota are not maintained.
  for (const bucket of counted) await file.write((tx) => void deleteUsageOf.run(tx, { bucket }));
  return quotas;
}

function countBucket(tx: Transaction, bucket: string): void {
  addUsage.run(tx, { bucket, ownerId: EVERYBODY, bytes: 0 });
  for (const { ownerId, bytes } of countedUsage.all(tx, { bucket })) {
    addUsage.run(tx, { bucket, ownerId: EVERYBODY, bytes });
    if (ownerId !== null) addUsage.run(tx, { bucket, ownerId, bytes });
  }
}

/** Quota of one bucket, and its current use. */
export class BucketQuota {
  readonly #bucket: string;
  readonly #total: number | undefined;
  readonly #perUser: number | undefined;
  /** Arriving bytes, by owner. */
  readonly #arriving = new Map<string, number>();

  constructor(bucket: string, { total, perUser }: NonNullable<BucketConfig["quota"]>) {
    this.#bucket = bucket;
    this.#total = total;
    this.#perUser = perUser;
  }

  /** Checks the replacement of `before` by `after`. Errors: 413 when it exceeds the quota and grows the use. */
  require(from: Readable, before: Held | null, after: Held): void {
    const freed = before?.size ?? 0;
    if (this.#total !== undefined) {
      const held = this.#used(from, EVERYBODY);
      if (after.size > freed && held - freed + after.size > this.#total) {
        throw exceeded(this.#bucketMayHold, held, after.size);
      }
    }
    const { ownerId } = after;
    if (this.#perUser === undefined || ownerId === null) return;
    const freedByOwner = before?.ownerId === ownerId ? freed : 0;
    const held = this.#used(from, ownerId);
    if (after.size > freedByOwner && held - freedByOwner + after.size > this.#perUser) {
      throw exceeded(this.#userMayHold, held, after.size);
    }
  }

  /** Like `require`, and counts the replacement: of two concurrent writes the second sees the use of the first. */
  replace(tx: Transaction, before: Held | null, after: Held): void {
    this.require(tx, before, after);
    if (before !== null && before.ownerId !== after.ownerId) {
      this.release(tx, before);
      this.#count(tx, after.ownerId, after.size);
    } else this.#count(tx, after.ownerId, after.size - (before?.size ?? 0));
  }

  release(tx: Transaction, { ownerId, size }: Held): void {
    this.#count(tx, ownerId, -size);
    // A user without files leaves no row.
    if (ownerId !== null && this.#used(tx, ownerId) === 0) deleteUsage.run(tx, { bucket: this.#bucket, ownerId });
  }

  /** Begins to count an arriving body. */
  arrive(from: Readable, ownerId: string | null): Arrival {
    let taken = 0;
    const count = (bytes: number): void => {
      taken += bytes;
      for (const owner of ownerId === null ? [EVERYBODY] : [EVERYBODY, ownerId]) {
        const sum = (this.#arriving.get(owner) ?? 0) + bytes;
        if (sum === 0) this.#arriving.delete(owner);
        else this.#arriving.set(owner, sum);
      }
    };
    return {
      take: (bytes) => {
        count(bytes);
        this.#requireArriving(from, EVERYBODY, this.#total, this.#bucketMayHold);
        if (ownerId !== null) this.#requireArriving(from, ownerId, this.#perUser, this.#userMayHold);
      },
      end: () => count(-taken),
    };
  }

  use(from: Readable): QuotaUse {
    return { total: this.#total ?? null, perUser: this.#perUser ?? null, used: this.#used(from, EVERYBODY) };
  }

  /**
   * Checks the arriving bytes of one owner. A bucket may hold more than a quota that was reduced; its files may still be
   * replaced.
   */
  #requireArriving(from: Readable, ownerId: string, max: number | undefined, allowed: string): void {
    const bytes = this.#arriving.get(ownerId) ?? 0;
    if (max === undefined || bytes <= max || bytes <= this.#used(from, ownerId)) return;
    throw quotaExceeded(`${allowed}, and ${bytes} are arriving at once`);
  }

  #used(from: Readable, ownerId: string): number {
    return usageOf.get(from, { bucket: this.#bucket, ownerId })?.bytes ?? 0;
  }

  /** Adds to the bucket's count and the owner's. */
  #count(tx: Transaction, ownerId: string | null, bytes: number): void {
    if (bytes === 0) return;
    addUsage.run(tx, { bucket: this.#bucket, ownerId: EVERYBODY, bytes });
    if (ownerId !== null) addUsage.run(tx, { bucket: this.#bucket, ownerId, bytes });
  }

  get #bucketMayHold(): string {
    return `The bucket "${this.#bucket}" may hold ${this.#total} bytes`;
  }

  get #userMayHold(): string {
    return `Each user may hold ${this.#perUser} bytes in the bucket "${this.#bucket}"`;
  }
}

const exceeded = (allowed: string, held: number, wanted: number) =>
  quotaExceeded(`${allowed}: ${held} are in use, and ${wanted} more were to be stored`);
