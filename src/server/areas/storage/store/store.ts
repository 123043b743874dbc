import type { JsonObject } from "../../../../kernel/json/json.ts";
import type { AuditActor } from "../../../../kernel/observing/request-trace.ts";
import type { Auth } from "../../../config/types.ts";
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
import { deleteExpiredGrants, deleteGrant, type GrantRecord, grantById, insertGrant } from "../statements/grants.ts";
import {
  deleteObject,
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
  deleteParts,
  deleteUpload,
  endUpload,
  extentOfParts,
  firstParts,
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
import { heldAt } from "../statements/usage.ts";
import { type Arrival, type Quotas, type QuotaUse, quotaWrites } from "./quotas.ts";

export type ObjectVersion = Pick<StoredObject, "fileId" | "revision">;
export type SlimObject = Pick<StoredObject, "key" | "size" | "contentType" | "uploaded">;

export interface StorageReads {
  find(address: ObjectAddress): StoredObject | null;
  findReceipt(id: string): ReceiptRecord | null;
  findUpload(id: string): Upload | null;
  parts(uploadId: string): UploadPart[];
  /** Bytes of all parts but this one; 0: of all. */
  partsSize(uploadId: string, except: number): number;
  /** Changes with every part that is uploaded or replaced. */
  partsStamp(uploadId: string): string;
}

/** What can be done within one write; all of it happens or none. */
export interface StorageWrite extends StorageReads {
  /** What changes with every change of a file, without its metadata, which may be large. */
  version(address: ObjectAddress): ObjectVersion | null;
  /** Changes the metadata of a file. */
  put(object: StoredObject, by: Actor): void;
  /** Stores a file, in place of the one at its address. */
  upload(object: StoredObject, by: Actor): void;
  remove(address: ObjectAddress, by: Actor): void;
  insertUpload(upload: Upload): void;
  /** Unfinished uploads of one owner. */
  uploadCount(bucket: string, ownerId: string | null): number;
  /** From now on it counts as expired: what is left of it is removed in steps. */
  endUpload(id: string): void;
  /** The same for one that somebody ends unfinished. */
  abortUpload(upload: Pick<Upload, "id" | "bucket" | "key" | "ownerId">, by: Actor): void;
  /** With its parts. */
  removeUpload(id: string): void;
  /** Removes the first parts, at most `limit`, and gives them. */
  takeParts(uploadId: string, limit: number): UploadPart[];
  /** The bytes of one part; null: there is no such part. */
  partFile(uploadId: string, partNumber: number): string | null;
  putPart(uploadId: string, part: UploadPart): void;
  /** Beyond the bound the owner's oldest receipts are removed. */
  insertReceipt(receipt: ReceiptRecord): void;
  insertGrant(grant: UploadGrant): void;
  /** false: it has been used. */
  consumeGrant(id: string): boolean;
}

interface ListRange {
  after: string;
  from: string;
  limit: number;
}

export interface StorageStore extends StorageReads {
  /** Errors: 413 where a file would exceed a quota of its bucket. The write that stores it asks again. */
  requireRoom(object: Pick<StoredObject, "bucket" | "key" | "size" | "uploadedBy">): void;
  /** For a body that begins to arrive; null: the bucket has no quota. End it when its bytes are stored, or gone. [ST309] */
  arrival(bucket: string, ownerId: string | null): Arrival | null;
  /** In order of key (UTF-8 bytes): those after `after` that are not before `from`. */
  list(bucket: string, range: ListRange): StoredObject[];
  /** The same, with what a list shows and nothing else: metadata may be large. */
  listSlim(bucket: string, range: ListRange): SlimObject[];
  findGrant(id: string): UploadGrant | null;
  /** Whether a file or a part has these bytes. */
  hasFile(fileId: string): boolean;
  expiredUploads(createdUntil: number, limit: number): string[];
  /** Unfinished uploads of all buckets, newest first: those before this one. */
  uploadsBefore(place: Pick<Upload, "createdAt" | "id">, limit: number): Upload[];
  extentOfParts(uploadId: string): { count: number; size: number };
  /** The quota of a bucket and what is used of it; null: it has none. */
  quotaUse(bucket: string): QuotaUse | null;
  /** Resolves to the number of removed grants. */
  removeExpiredGrants(now: number, limit: number): Promise<number>;
  /** Resolves to the number of removed receipts. */
  removeReceipts(until: number, limit: number): Promise<number>;
  /** Durable when it resolves. */
  write<T>(work: (storage: StorageWrite) => T): Promise<T>;
}

export function createStorageStore(file: OpenedFile, notes: FileNotes, quotas: Quotas): StorageStore {
  const deps: WriteDeps = { notes, quotas };
  return {
    requireRoom({ uploadedBy: ownerId, size, ...address }) {
      quotas.of(address.bucket)?.require(file, heldAt.get(file, address), { ownerId, size });
    },
    arrival: (bucket, ownerId) => quotas.of(bucket)?.arrive(file, ownerId) ?? null,
    ...readsOf(file),
    list: (bucket, range) => objectsInOrder.all(file, { bucket, ...range }).map(withMetadata),
    listSlim: (bucket, range) => listedInOrder.all(file, { bucket, ...range }),
    findGrant(id) {
      const row = grantById.get(file, { id });
      return row === null ? null : grantOf(row);
    },
    hasFile: (fileId) => ownerOfBytes.get(file, { fileId }) !== null,
    expiredUploads: (createdAt, limit) => uploadsUntil.all(file, { createdAt, limit }).map(({ id }) => id),
    uploadsBefore: (place, limit) => uploadsBefore.all(file, { ...place, limit }),
    extentOfParts: (uploadId) => extentOfParts.get(file, { uploadId }) ?? { count: 0, size: 0 },
    quotaUse: (bucket) => quotas.of(bucket)?.use(file) ?? null,
    removeExpiredGrants: (now, limit) => file.write((tx) => deleteExpiredGrants.run(tx, { now, limit })),
    removeReceipts: (until, limit) => file.write((tx) => deleteReceiptsUntil.run(tx, { until, limit })),
    // What `work` returns here is no promise: every caller's type says so, but a generic one cannot be shown to be.
    write: <T>(work: (storage: StorageWrite) => T) =>
      file.write<unknown>((tx) => work(writesOf(tx, deps)) as undefined) as Promise<T>,
  };
}

function readsOf(from: Readable): StorageReads {
  return {
    find(address) {
      const row = objectAt.get(from, address);
      return row === null ? null : withMetadata(row);
    },
    findReceipt: (id) => receiptById.get(from, { id }),
    findUpload: (id) => uploadById.get(from, { id }),
    parts: (uploadId) => partsOf.all(from, { uploadId }),
    partsSize: (uploadId, partNumber) => sizeOfOthers.get(from, { uploadId, partNumber })?.size ?? 0,
    partsStamp: (uploadId) => stampOfParts.get(from, { uploadId })?.stamp ?? "",
  };
}

interface WriteDeps {
  notes: FileNotes;
  quotas: Quotas;
}

function writesOf(tx: Transaction, { notes, quotas }: WriteDeps): StorageWrite {
  const reads = readsOf(tx);
  /** Runs `change`, and notes it if something watches such events of the bucket. */
  const noted = (event: FileEvent, address: ObjectAddress, by: Actor, change: () => StoredObject | null): void => {
    const isWatched = notes.isWatched(address.bucket, event);
    const before = isWatched ? reads.find(address) : null;
    const after = change();
    if (!isWatched || (before === null && after === null)) return;
    const [was, is] = [before, after].map((object) => (object === null ? null : factsOf(object)));
    notes.note(tx, { bucket: address.bucket, event, by, before: was ?? null, after: is ?? null });
  };
  /** Before the change. */
  const audit = (action: string, { bucket, key }: ObjectAddress, by: Actor, after: StoredObject | null): void => {
    tx.causedBy(by);
    tx.audit(() => {
      const present = reads.find({ bucket, key });
      const [was, is] = [present, after].map((object) => (object === null ? null : factsOf(object)));
      return { action, target: `storage/${bucket}/${key}`, before: was, after: is };
    });
  };
  const counted = quotaWrites(tx, quotas, reads.findUpload);
  const end = (id: string): void => {
    counted.releaseParts(id, () => reads.partsSize(id, 0));
    endUpload.run(tx, { id });
  };
  return {
    ...reads,
    version: (address) => objectVersion.get(tx, address),
    put(object, by) {
      audit("file.metadata", object, by, object);
      putObject.run(tx, object);
    },
    upload(object, by) {
      audit("file.upload", object, by, object);
      noted("upload", object, by, () => {
        counted.store(object);
        putObject.run(tx, object);
        return object;
      });
    },
    remove(address, by) {
      audit("file.delete", address, by, null);
      noted("delete", address, by, () => {
        counted.remove(address);
        deleteObject.run(tx, address);
        return null;
      });
    },
    insertUpload(upload) {
      insertUpload.run(tx, upload);
    },
    uploadCount: (bucket, ownerId) => countUploads.get(tx, { bucket, ownerId })?.count ?? 0,
    endUpload: end,
    abortUpload({ id, bucket, key, ownerId }, by) {
      tx.causedBy(by);
      const before = { uploadedBy: ownerId };
      tx.audit(() => ({ action: "file.abort", target: `storage/${bucket}/${key}`, before }));
      end(id);
    },
    removeUpload(id) {
      deleteUpload.run(tx, { id });
    },
    takeParts(uploadId, limit) {
      const taken = firstParts.all(tx, { uploadId, limit });
      const last = taken.at(-1);
      // Those of an upload that has expired; one that has ended holds nothing.
      counted.releaseParts(uploadId, () => taken.reduce((sum, { size }) => sum + size, 0));
      if (last !== undefined) deleteParts.run(tx, { uploadId, until: last.partNumber });
      return taken;
    },
    partFile: (uploadId, partNumber) => partFile.get(tx, { uploadId, partNumber })?.fileId ?? null,
    putPart(uploadId, part) {
      counted.putPart(uploadId, part);
      putPart.run(tx, { uploadId, ...part });
    },
    insertReceipt(receipt) {
      insertReceipt.run(tx, receipt);
      const { ownerId } = receipt;
      const oldest = nthReceipt.get(tx, { ownerId, nth: RECEIPTS_PER_OWNER_MAX });
      if (oldest !== null) deleteReceiptsOf.run(tx, { ownerId, before: oldest.uploaded + 1 });
    },
    insertGrant({ holder, actor, ...grant }) {
      insertGrant.run(tx, { ...grant, auth: recordOf(holder, actor) });
    },
    consumeGrant: (id) => deleteGrant.run(tx, { id }) === 1,
  };
}

/** A user as rules see one, or the name of a service key; with who is audited, if anybody is. */
function recordOf(holder: GrantHolder, actor: AuditActor | null): JsonObject | null {
  if (holder.kind === "server") return null;
  const who = holder.kind === "user" ? holder.auth : { serviceKey: holder.name };
  // A user's id, role, email and claims are JSON.
  return (actor === null ? who : { ...who, actor }) as unknown as JsonObject;
}

function grantOf({ auth, ...grant }: GrantRecord): UploadGrant {
  if (auth === null) return { ...grant, holder: { kind: "server" }, actor: null };
  // `recordOf` has written it, or that of an earlier version, which kept no actor.
  const { actor = null, ...value } = auth as unknown as (Auth | { serviceKey: string }) & { actor?: AuditActor };
  const holder: GrantHolder =
    "serviceKey" in value ? { kind: "serviceKey", name: value.serviceKey } : { kind: "user", auth: value };
  return { ...grant, holder, actor };
}

/** Parses the metadata when it is first read. */
function withMetadata(row: Omit<ObjectRecord, "customMetadata"> & { customMetadata: string }): StoredObject {
  const text = row.customMetadata;
  let parsed: Metadata | null = null;
  const get = (): Metadata => {
    // `put` has written it as the JSON of an object of strings.
    parsed ??= text === "{}" ? {} : (JSON.parse(text) as Metadata);
    return parsed;
  };
  // Every member of the row is there; the one that is defined anew is of the type that is returned.
  return Object.defineProperty(row as unknown as StoredObject, "customMetadata", { get, enumerable: true });
}
