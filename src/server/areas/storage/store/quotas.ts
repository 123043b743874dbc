import { quotaExceeded } from "../../../../kernel/errors.ts";
import type { BucketConfig } from "../../../config/types.ts";
import type { OpenedFile, Transaction } from "../../../db/index.ts";
import type { Readable } from "../../../db/query.ts";
import { addUsage, bucketsWithUsage, countedUsage, deleteUsage, deleteUsageOf, usageOf } from "../statements/usage.ts";

/** The bytes of one owner; null: of a service key or the server. */
interface Held {
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

/** The bytes of a body that are on the disk and not stored yet. */
export interface Arrival {
  /** Errors: 413 when more arrive at once than may be held. */
  take(bytes: number): void;
  /** They are stored, or gone. */
  end(): void;
}

/** By bucket; buckets without a quota have none. */
export type Quotas = ReadonlyMap<string, BucketQuota>;

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
    quotas.set(bucket, new BucketQuota(bucket, quota));
    if (!counted.delete(bucket)) await file.write((tx) => countBucket(tx, bucket));
  }
  // Nothing keeps the counts of a bucket without a quota.
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

/** What one bucket may hold, and what it holds. */
export class BucketQuota {
  readonly #bucket: string;
  readonly #total: number | undefined;
  readonly #perUser: number | undefined;
  /** Bytes that are arriving, by owner. */
  readonly #arriving = new Map<string, number>();

  constructor(bucket: string, { total, perUser }: NonNullable<BucketConfig["quota"]>) {
    this.#bucket = bucket;
    this.#total = total;
    this.#perUser = perUser;
  }

  /** Errors: 413 when `after` in place of `before` is more than may be held, and more than was held. */
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

  /** Like `require`, and counts it: of two writes at once the second one sees what the first one holds. */
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

  /** Counts a body that begins to arrive. */
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

  /** A bucket may hold more than its quota, which is smaller than before, and its files may be replaced. */
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
