import type { JsonObject } from "../../../../kernel/json/json.ts";
import type { AuditActor } from "../../../../kernel/observing/request-trace.ts";
import type { Auth, FileFacts } from "../../../config/types.ts";
import type { Actor, OpenedFile, Transaction } from "../../../db/index.ts";
import type { Readable } from "../../../db/query.ts";
import { RECEIPTS_PER_OWNER_MAX } from "../limits.ts";
import type { Metadata } from "../model/content.ts";
import {
  type FileEvent,
  type FileNotes,
  factsOf,
  type GrantHolder,
  type ObjectAddress,
  type StoredObject,
  type Upload,
  type UploadGrant,
  type UploadPart,
} from "../model/types.ts";
import {
  type ClaimRecord,
  claimOf,
  claimsOfPlace,
  confirmClaim,
  deleteClaim,
  insertClaim,
  nextPlace,
  pendingClaims,
} from "../statements/claims.ts";
import {
  deleteObject,
  keysOfUploader,
  listedInOrder,
  type ObjectRecord,
  objectAt,
  objectsInOrder,
  objectVersion,
  ownerOfBytes,
  putObject,
} from "../statements/objects.ts";
import {
  deleteReceiptsOf,
  deleteReceiptsUntil,
  insertReceipt,
  nthReceipt,
  type ReceiptRecord,
  receiptById,
} from "../statements/receipts.ts";
import {
  countUploads,
  deleteExpiredGrants,
  deleteGrant,
  deleteParts,
  deleteUpload,
  endUpload,
  extentOfParts,
  firstParts,
  type GrantRecord,
  grantById,
  insertGrant,
  insertUpload,
  partFile,
  partsOf,
  putPart,
  sizeOfOthers,
  stampOfParts,
  uploadById,
  uploadsBefore,
  uploadsUntil,
} from "../statements/uploads.ts";
import { heldAt, partSize } from "../statements/usage.ts";
import type { Arrival, BucketQuota, Quotas, QuotaUse } from "./quotas.ts";

export type ObjectVersion = Pick<StoredObject, "fileId" | "revision">;
export type SlimObject = Pick<StoredObject, "key" | "size" | "contentType" | "uploaded">;

/** A file of tables; `instanceId` is empty in a static namespace. */
export type ClaimPlace = Pick<ClaimRecord, "namespace" | "instanceId">;

interface ListRange {
  after: string;
  from: string;
  limit: number;
}

/** Reads offered by the store, and by each write within its transaction. */
export class StorageReads {
  readonly #from: Readable;

  constructor(from: Readable) {
    this.#from = from;
  }

  find(address: ObjectAddress): StoredObject | null {
    const row = objectAt.get(this.#from, address);
    return row === null ? null : withMetadata(row);
  }

  findClaim(fileId: string): ClaimRecord | null {
    return claimOf.get(this.#from, { fileId });
  }

  findReceipt(id: string): ReceiptRecord | null {
    return receiptById.get(this.#from, { id });
  }

  findUpload(id: string): Upload | null {
    return uploadById.get(this.#from, { id });
  }

  parts(uploadId: string): UploadPart[] {
    return partsOf.all(this.#from, { uploadId });
  }

  /** Returns the bytes of all parts but one; `except` 0: of all. */
  partsSize(uploadId: string, except: number): number {
    return sizeOfOthers.get(this.#from, { uploadId, partNumber: except })?.size ?? 0;
  }

  /** Returns a stamp that changes with every part that is uploaded or replaced. */
  partsStamp(uploadId: string): string {
    return stampOfParts.get(this.#from, { uploadId })?.stamp ?? "";
  }
}

/** The records of files, uploads, grants and receipts, in system.db. */
export class StorageStore extends StorageReads {
  readonly #file: OpenedFile;
  readonly #notes: FileNotes;
  readonly #quotas: Quotas;

  constructor(file: OpenedFile, notes: FileNotes, quotas: Quotas) {
    super(file);
    this.#file = file;
    this.#notes = notes;
    this.#quotas = quotas;
  }

  /**
   * Checks the quotas for a file. The transaction that stores it checks again. Errors: 413 when a quota of its bucket would
   * be exceeded.
   */
  requireRoom({
    uploadedBy: ownerId,
    size,
    ...address
  }: Pick<StoredObject, "bucket" | "key" | "size" | "uploadedBy">): void {
    this.#quotas.get(address.bucket)?.require(this.#file, heldAt.get(this.#file, address), { ownerId, size });
  }

  /** Begins to count an arriving body; null when the bucket has no quota. End it when its bytes are stored, or gone. [ST309] */
  arrival(bucket: string, ownerId: string | null): Arrival | null {
    return this.#quotas.get(bucket)?.arrive(this.#file, ownerId) ?? null;
  }

  /** Lists files in order of key (UTF-8 bytes): those after `after` that are not before `from`. */
  list(bucket: string, range: ListRange): StoredObject[] {
    return objectsInOrder.all(this.#file, { bucket, ...range }).map(withMetadata);
  }

  /** Like `list`, with only the members that a list shows: metadata may be large. */
  listSlim(bucket: string, range: ListRange): SlimObject[] {
    return listedInOrder.all(this.#file, { bucket, ...range });
  }

  /** Lists the keys of the files that a user has uploaded, in order, after this one. */
  keysOf(userId: string, page: { bucket: string; after: string; limit: number }): string[] {
    return keysOfUploader.all(this.#file, { userId, ...page }).map(({ key }) => key);
  }

  findGrant(id: string): UploadGrant | null {
    const row = grantById.get(this.#file, { id });
    return row === null ? null : grantOf(row);
  }

  /** Lists claims that were under way, by id. */
  pendingClaims(after: string, limit: number): ClaimRecord[] {
    return pendingClaims.all(this.#file, { after, limit });
  }

  /** Lists the claims of one file of tables, by id. */
  claimsOf(place: ClaimPlace, after: string, limit: number): ClaimRecord[] {
    return claimsOfPlace.all(this.#file, { ...place, after, limit });
  }

  /** Returns the next file of tables with claims; null: it was the last. */
  placeAfter({ namespace, instanceId }: ClaimPlace): ClaimPlace | null {
    return nextPlace.get(this.#file, { namespace, instanceId });
  }

  /** Whether a file, a part or a record's file has these bytes. */
  hasFile(fileId: string): boolean {
    return ownerOfBytes.get(this.#file, { fileId }) !== null;
  }

  expiredUploads(createdUntil: number, limit: number): string[] {
    return uploadsUntil.all(this.#file, { createdAt: createdUntil, limit }).map(({ id }) => id);
  }

  /** Lists unfinished uploads of all buckets, newest first: those before `place`. */
  uploadsBefore(place: Pick<Upload, "createdAt" | "id">, limit: number): Upload[] {
    return uploadsBefore.all(this.#file, { ...place, limit });
  }

  extentOfParts(uploadId: string): { count: number; size: number } {
    return extentOfParts.get(this.#file, { uploadId }) ?? { count: 0, size: 0 };
  }

  /** Returns the quota of a bucket and its use; null when it has none. */
  quotaUse(bucket: string): QuotaUse | null {
    return this.#quotas.get(bucket)?.use(this.#file) ?? null;
  }

  /** Removes expired grants, at most `limit`. Resolves to their number. */
  removeExpiredGrants(now: number, limit: number): Promise<number> {
    return this.#file.write((tx) => deleteExpiredGrants.run(tx, { now, limit }));
  }

  /** Removes receipts up to a time, at most `limit`. Resolves to their number. */
  removeReceipts(until: number, limit: number): Promise<number> {
    return this.#file.write((tx) => deleteReceiptsUntil.run(tx, { until, limit }));
  }

  /** Runs `work` in one transaction. Durable when it resolves. */
  write<T>(work: (storage: StorageWrite) => T): Promise<T> {
    // `work` returns no promise here: every caller's type says so, but that cannot be shown for a generic one.
    return this.#file.write<unknown>(
      (tx) => work(new StorageWrite(tx, this.#notes, this.#quotas)) as undefined,
    ) as Promise<T>;
  }
}

/** Operations within one transaction. */
export class StorageWrite extends StorageReads {
  readonly #tx: Transaction;
  readonly #notes: FileNotes;
  readonly #quotas: Quotas;

  constructor(tx: Transaction, notes: FileNotes, quotas: Quotas) {
    super(tx);
    this.#tx = tx;
    this.#notes = notes;
    this.#quotas = quotas;
  }

  /**
   * Returns the version of a file, which changes with every change of it, without its metadata, which may be large; null
   * when there is no file.
   */
  version(address: ObjectAddress): ObjectVersion | null {
    return objectVersion.get(this.#tx, address);
  }

  /** Changes the metadata of a file. */
  put(object: StoredObject, by: Actor): void {
    this.#audit("file.metadata", object, by, object);
    putObject.run(this.#tx, object);
  }

  /** Stores a file, replacing the one at its address. Errors: 413 over a quota. */
  upload(object: StoredObject, by: Actor): void {
    this.#audit("file.upload", object, by, object);
    this.#noted("upload", object, by, () => {
      const { bucket, key, size, uploadedBy: ownerId } = object;
      this.#quotas.get(bucket)?.replace(this.#tx, heldAt.get(this.#tx, { bucket, key }), { ownerId, size });
      putObject.run(this.#tx, object);
      return object;
    });
  }

  remove(address: ObjectAddress, by: Actor): void {
    this.#audit("file.delete", address, by, null);
    this.#noted("delete", address, by, () => {
      const quota = this.#quotas.get(address.bucket);
      const held = quota === undefined ? null : heldAt.get(this.#tx, address);
      if (held !== null) quota?.release(this.#tx, held);
      deleteObject.run(this.#tx, address);
      return null;
    });
  }

  /** Claims the bytes of a record's file. Errors: 413 over a quota. */
  claim(claim: ClaimRecord): void {
    const { bucket, size, ownerId } = claim;
    this.#quotas.get(bucket)?.replace(this.#tx, null, { ownerId, size });
    insertClaim.run(this.#tx, claim);
  }

  confirmClaim(fileId: string): void {
    confirmClaim.run(this.#tx, { fileId });
  }

  /** Removes a claim, if it is there. */
  removeClaim(fileId: string): void {
    const claim = this.findClaim(fileId);
    if (claim === null) return;
    this.#quotas.get(claim.bucket)?.release(this.#tx, { ownerId: claim.ownerId, size: claim.size });
    deleteClaim.run(this.#tx, { fileId });
  }

  insertUpload(upload: Upload): void {
    insertUpload.run(this.#tx, upload);
  }

  /** Counts the unfinished uploads of one owner. */
  uploadCount(bucket: string, ownerId: string | null): number {
    return countUploads.get(this.#tx, { bucket, ownerId })?.count ?? 0;
  }

  /** Ends an upload, which counts as expired from here on: the rest of it is removed in steps. */
  endUpload(id: string): void {
    this.#releaseParts(id, () => this.partsSize(id, 0));
    endUpload.run(this.#tx, { id });
  }

  /** Ends an upload that will not be finished, and audits that. */
  abortUpload({ id, bucket, key, ownerId }: Pick<Upload, "id" | "bucket" | "key" | "ownerId">, by: Actor): void {
    this.#tx.causedBy(by);
    const before = { uploadedBy: ownerId };
    this.#tx.audit(() => ({ action: "file.abort", target: `storage/${bucket}/${key}`, before }));
    this.endUpload(id);
  }

  /** Removes an upload with its parts. */
  removeUpload(id: string): void {
    deleteUpload.run(this.#tx, { id });
  }

  /** Removes and returns the first parts, at most `limit`. */
  takeParts(uploadId: string, limit: number): UploadPart[] {
    const taken = firstParts.all(this.#tx, { uploadId, limit });
    const last = taken.at(-1);
    this.#releaseParts(uploadId, () => taken.reduce((sum, { size }) => sum + size, 0));
    if (last !== undefined) deleteParts.run(this.#tx, { uploadId, until: last.partNumber });
    return taken;
  }

  /** Returns the file id of one part; null when there is no such part. */
  partFile(uploadId: string, partNumber: number): string | null {
    return partFile.get(this.#tx, { uploadId, partNumber })?.fileId ?? null;
  }

  /** Stores a part, replacing the one with its number. Errors: 413 over a quota. */
  putPart(uploadId: string, part: UploadPart): void {
    const { quota, ownerId } = this.#quotaOf(uploadId);
    if (quota !== undefined) {
      const { partNumber, size } = part;
      const before = partSize.get(this.#tx, { uploadId, partNumber });
      quota.replace(this.#tx, before === null ? null : { ownerId, size: before.size }, { ownerId, size });
    }
    putPart.run(this.#tx, { uploadId, ...part });
  }

  /** Stores a receipt, and removes the owner's oldest ones beyond the bound. */
  insertReceipt(receipt: ReceiptRecord): void {
    insertReceipt.run(this.#tx, receipt);
    const { ownerId } = receipt;
    const oldest = nthReceipt.get(this.#tx, { ownerId, nth: RECEIPTS_PER_OWNER_MAX });
    if (oldest !== null) deleteReceiptsOf.run(this.#tx, { ownerId, before: oldest.uploaded + 1 });
  }

  insertGrant({ holder, actor, ...grant }: UploadGrant): void {
    insertGrant.run(this.#tx, { ...grant, auth: recordOf(holder, actor) });
  }

  /** Removes the grant; false when it has been used. */
  consumeGrant(id: string): boolean {
    return deleteGrant.run(this.#tx, { id }) === 1;
  }

  /** Runs `change`, and notes it if a trigger or webhook watches such events of the bucket. */
  #noted(event: FileEvent, address: ObjectAddress, by: Actor, change: () => StoredObject | null): void {
    const isWatched = this.#notes.isWatched(address.bucket, event);
    const before = isWatched ? this.find(address) : null;
    const after = change();
    if (!isWatched || (before === null && after === null)) return;
    const states = { before: factsOrNull(before), after: factsOrNull(after) };
    this.#notes.note(this.#tx, { bucket: address.bucket, event, by, ...states });
  }

  /** Writes an entry of the audit log. Must be called before the change. */
  #audit(action: string, { bucket, key }: ObjectAddress, by: Actor, after: StoredObject | null): void {
    this.#tx.causedBy(by);
    this.#tx.audit(() => {
      const before = factsOrNull(this.find({ bucket, key }));
      return { action, target: `storage/${bucket}/${key}`, before, after: factsOrNull(after) };
    });
  }

  /** Returns the quota that an unfinished upload counts towards. An ended upload counts towards none. */
  #quotaOf(uploadId: string): { quota?: BucketQuota | undefined; ownerId: string | null } {
    const upload = this.#quotas.size === 0 ? null : this.findUpload(uploadId);
    if (upload === null || upload.createdAt === 0) return { ownerId: null };
    return { quota: this.#quotas.get(upload.bucket), ownerId: upload.ownerId };
  }

  #releaseParts(uploadId: string, size: () => number): void {
    const { quota, ownerId } = this.#quotaOf(uploadId);
    quota?.release(this.#tx, { ownerId, size: size() });
  }
}

const factsOrNull = (object: StoredObject | null): FileFacts | null => (object === null ? null : factsOf(object));

/** Returns the stored form of a holder: a user as rules see one, or the name of a service key; with the audited actor, if any. */
function recordOf(holder: GrantHolder, actor: AuditActor | null): JsonObject | null {
  if (holder.kind === "server") return null;
  const who = holder.kind === "user" ? holder.auth : { serviceKey: holder.name };
  // A user's id, role, email and claims are JSON.
  return (actor === null ? who : { ...who, actor }) as unknown as JsonObject;
}

function grantOf({ auth, ...grant }: GrantRecord): UploadGrant {
  if (auth === null) return { ...grant, holder: { kind: "server" }, actor: null };
  // Written by `recordOf`, here or in an earlier version, which kept no actor.
  const { actor = null, ...value } = auth as unknown as (Auth | { serviceKey: string }) & { actor?: AuditActor };
  const holder: GrantHolder =
    "serviceKey" in value ? { kind: "serviceKey", name: value.serviceKey } : { kind: "user", auth: value };
  return { ...grant, holder, actor };
}

/** Returns the row with metadata that is parsed when first read. */
function withMetadata(row: Omit<ObjectRecord, "customMetadata"> & { customMetadata: string }): StoredObject {
  const text = row.customMetadata;
  let parsed: Metadata | null = null;
  const get = (): Metadata => {
    // `put` has written it as the JSON of an object of strings.
    parsed ??= text === "{}" ? {} : (JSON.parse(text) as Metadata);
    return parsed;
  };
  // Every member of the row is present; the redefined one has the type that is returned.
  return Object.defineProperty(row as unknown as StoredObject, "customMetadata", { get, enumerable: true });
}
