import type { Auth } from "../config/types.ts";
import type { OpenedFile, Statement, Transaction } from "../db/index.ts";
import type { GrantHolder, ObjectAddress, StoredObject, Upload, UploadGrant, UploadPart } from "./types.ts";

const COLUMNS = "bucket, key, fileId, size, contentType, customMetadata, uploadedBy, uploaded, revision";
const FIND = `SELECT ${COLUMNS} FROM storage_objects WHERE bucket = ?1 AND key = ?2`;
const FIND_VERSION = "SELECT fileId, revision FROM storage_objects WHERE bucket = ?1 AND key = ?2";
const LIST = `SELECT ${COLUMNS} FROM storage_objects WHERE bucket = ?1 AND key > ?2 AND key >= ?3 ORDER BY key LIMIT ?4`;
const LIST_SLIM = `SELECT key, size, uploaded FROM storage_objects
  WHERE bucket = ?1 AND key > ?2 AND key >= ?3 ORDER BY key LIMIT ?4`;
const PUT = `INSERT OR REPLACE INTO storage_objects (${COLUMNS}) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)`;
const REMOVE = "DELETE FROM storage_objects WHERE bucket = ?1 AND key = ?2";
const HAS_FILE = `SELECT 1 FROM storage_objects WHERE fileId = ?1 UNION ALL SELECT 1 FROM storage_parts WHERE fileId = ?1`;

const UPLOAD_COLUMNS = "id, bucket, key, contentType, customMetadata, ownerId, createdAt";
const FIND_UPLOAD = `SELECT ${UPLOAD_COLUMNS} FROM storage_uploads WHERE id = ?1`;
const INSERT_UPLOAD = `INSERT INTO storage_uploads (${UPLOAD_COLUMNS}) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)`;
const COUNT_UPLOADS =
  "SELECT count(*) AS count FROM storage_uploads WHERE bucket = ?1 AND ownerId IS ?2 AND createdAt > 0";
const END_UPLOAD = "UPDATE storage_uploads SET createdAt = 0 WHERE id = ?1";
const REMOVE_UPLOAD = "DELETE FROM storage_uploads WHERE id = ?1";
const EXPIRED_UPLOADS = "SELECT id FROM storage_uploads WHERE createdAt <= ?1 ORDER BY createdAt LIMIT ?2";
const PARTS = "SELECT partNumber, fileId, size FROM storage_parts WHERE uploadId = ?1 ORDER BY partNumber";
const SOME_PARTS = `${PARTS} LIMIT ?2`;
const PART_FILE = "SELECT fileId FROM storage_parts WHERE uploadId = ?1 AND partNumber = ?2";
const PARTS_SIZE = "SELECT coalesce(sum(size), 0) AS size FROM storage_parts WHERE uploadId = ?1 AND partNumber <> ?2";
const PARTS_STAMP = `SELECT coalesce(group_concat(fileId, ''), '') AS stamp
  FROM (SELECT fileId FROM storage_parts WHERE uploadId = ?1 ORDER BY partNumber)`;
const REMOVE_PARTS = "DELETE FROM storage_parts WHERE uploadId = ?1 AND partNumber <= ?2";
const PUT_PART = "INSERT OR REPLACE INTO storage_parts (uploadId, partNumber, fileId, size) VALUES (?1, ?2, ?3, ?4)";

const FIND_GRANT = "SELECT id, bucket, key, auth, expiresAt FROM storage_grants WHERE id = ?1";
const INSERT_GRANT = "INSERT INTO storage_grants (id, bucket, key, auth, expiresAt) VALUES (?1, ?2, ?3, ?4, ?5)";
const REMOVE_GRANT = "DELETE FROM storage_grants WHERE id = ?1";
const EXPIRED_GRANTS = `DELETE FROM storage_grants WHERE id IN
  (SELECT id FROM storage_grants WHERE expiresAt <= ?1 ORDER BY expiresAt LIMIT ?2)`;

type ObjectRow = Omit<StoredObject, "customMetadata"> & { customMetadata: string };
type UploadRow = Omit<Upload, "customMetadata"> & { customMetadata: string };
type GrantRow = Omit<UploadGrant, "holder"> & { auth: string | null };

/** What can be done within one write; all of it happens or none. */
export interface StorageWrite {
  find(address: ObjectAddress): StoredObject | null;
  /** What changes with every change of a file, without its metadata, which may be large. */
  version(address: ObjectAddress): ObjectVersion | null;
  put(object: StoredObject): void;
  remove(address: ObjectAddress): void;
  insertUpload(upload: Upload): void;
  /** Unfinished uploads of one owner. */
  uploadCount(bucket: string, ownerId: string | null): number;
  findUpload(id: string): Upload | null;
  /** From now on it counts as expired: what is left of it goes piece by piece. */
  endUpload(id: string): void;
  /** Its parts go with it. */
  removeUpload(id: string): void;
  parts(uploadId: string): UploadPart[];
  /** Removes up to so many of the first ones, and gives them. */
  takeParts(uploadId: string, limit: number): UploadPart[];
  /** The bytes of one part; null: there is no such part. */
  partFile(uploadId: string, partNumber: number): string | null;
  /** Bytes of all parts but this one; 0: of all. */
  partsSize(uploadId: string, except: number): number;
  partsStamp(uploadId: string): string;
  putPart(uploadId: string, part: UploadPart): void;
  insertGrant(grant: UploadGrant): void;
  /** false: it has been used up. */
  consumeGrant(id: string): boolean;
}

export type ObjectVersion = Pick<StoredObject, "fileId" | "revision">;
export type SlimObject = Pick<StoredObject, "key" | "size" | "uploaded">;

interface ListRange {
  after: string;
  from: string;
  limit: number;
}

export interface StorageStore {
  find(address: ObjectAddress): StoredObject | null;
  /** In order of key (UTF-8 bytes): those after `after` that are not before `from`. */
  list(bucket: string, query: ListRange): StoredObject[];
  /** The same, with what a list shows and nothing else: metadata may be large. */
  listSlim(bucket: string, query: ListRange): SlimObject[];
  findUpload(id: string): Upload | null;
  parts(uploadId: string): UploadPart[];
  /** Bytes of all parts but this one; 0: of all. */
  partsSize(uploadId: string, except: number): number;
  /** Changes with every part that comes or is replaced. */
  partsStamp(uploadId: string): string;
  findGrant(id: string): UploadGrant | null;
  /** Whether a file or a part still has these bytes. */
  hasFile(fileId: string): boolean;
  expiredUploads(createdUntil: number, limit: number): string[];
  /** Resolves to how many went. */
  removeExpiredGrants(now: number, limit: number): Promise<number>;
  /** Durable when it resolves. */
  write<T>(work: (storage: StorageWrite) => T): Promise<T>;
}

export function createStorageStore(file: OpenedFile): StorageStore {
  const prepared = {
    find: file.prepare<ObjectRow>(FIND),
    list: file.prepare<ObjectRow>(LIST),
    listSlim: file.prepare<SlimObject>(LIST_SLIM),
    hasFile: file.prepare<unknown>(HAS_FILE),
    upload: file.prepare<UploadRow>(FIND_UPLOAD),
    parts: file.prepare<UploadPart>(PARTS),
    partsSize: file.prepare<{ size: number }>(PARTS_SIZE),
    partsStamp: file.prepare<{ stamp: string }>(PARTS_STAMP),
    grant: file.prepare<GrantRow>(FIND_GRANT),
    expiredUploads: file.prepare<{ id: string }>(EXPIRED_UPLOADS),
  };
  return {
    find: ({ bucket, key }) => readObject(prepared.find.get(bucket, key)),
    list: (bucket, { after, from, limit }) => prepared.list.all(bucket, after, from, limit).map(toObject),
    listSlim: (bucket, { after, from, limit }) => prepared.listSlim.all(bucket, after, from, limit),
    findUpload: (id) => readUpload(prepared.upload.get(id)),
    parts: (uploadId) => prepared.parts.all(uploadId),
    partsSize: (uploadId, except) => prepared.partsSize.get(uploadId, except)?.size ?? 0,
    partsStamp: (uploadId) => prepared.partsStamp.get(uploadId)?.stamp ?? "",
    findGrant(id) {
      const row = prepared.grant.get(id);
      if (row === null) return null;
      const { auth, ...grant } = row;
      return { ...grant, holder: readHolder(auth) };
    },
    hasFile: (fileId) => prepared.hasFile.get(fileId) !== null,
    expiredUploads: (until, limit) => prepared.expiredUploads.all(until, limit).map(({ id }) => id),
    removeExpiredGrants: (now, limit) => file.write((tx) => tx.query(EXPIRED_GRANTS).run(now, limit).changes),
    // What `work` returns here is no promise: every caller's type says so, but a generic one cannot be shown to be.
    write: <T>(work: (storage: StorageWrite) => T) =>
      file.write<unknown>((tx) => work(writeOf(tx)) as undefined) as Promise<T>,
  };
}

function writeOf(tx: Transaction): StorageWrite {
  const one = <R>(sql: string, ...params: (string | number | null)[]): R | null => statement<R>(tx, sql).get(...params);
  const run = (sql: string, ...params: (string | number | null)[]): number => tx.query(sql).run(...params).changes;
  return {
    find: ({ bucket, key }) => readObject(one<ObjectRow>(FIND, bucket, key)),
    version: ({ bucket, key }) => one<ObjectVersion>(FIND_VERSION, bucket, key),
    put(object) {
      const { bucket, key, fileId, size, contentType, uploadedBy, uploaded, revision } = object;
      const metadata = JSON.stringify(object.customMetadata);
      run(PUT, bucket, key, fileId, size, contentType, metadata, uploadedBy, uploaded, revision);
    },
    remove({ bucket, key }) {
      run(REMOVE, bucket, key);
    },
    insertUpload({ id, bucket, key, contentType, customMetadata, ownerId, createdAt }) {
      run(INSERT_UPLOAD, id, bucket, key, contentType, JSON.stringify(customMetadata), ownerId, createdAt);
    },
    uploadCount: (bucket, ownerId) => one<{ count: number }>(COUNT_UPLOADS, bucket, ownerId)?.count ?? 0,
    findUpload: (id) => readUpload(one<UploadRow>(FIND_UPLOAD, id)),
    endUpload(id) {
      run(END_UPLOAD, id);
    },
    removeUpload(id) {
      run(REMOVE_UPLOAD, id);
    },
    parts: (uploadId) => statement<UploadPart>(tx, PARTS).all(uploadId),
    takeParts(uploadId, limit) {
      const taken = statement<UploadPart>(tx, SOME_PARTS).all(uploadId, limit);
      const last = taken.at(-1);
      if (last !== undefined) run(REMOVE_PARTS, uploadId, last.partNumber);
      return taken;
    },
    partFile: (uploadId, number) => one<{ fileId: string }>(PART_FILE, uploadId, number)?.fileId ?? null,
    partsSize: (uploadId, except) => one<{ size: number }>(PARTS_SIZE, uploadId, except)?.size ?? 0,
    partsStamp: (uploadId) => one<{ stamp: string }>(PARTS_STAMP, uploadId)?.stamp ?? "",
    putPart(uploadId, { partNumber, fileId, size }) {
      run(PUT_PART, uploadId, partNumber, fileId, size);
    },
    insertGrant({ id, bucket, key, holder, expiresAt }) {
      run(INSERT_GRANT, id, bucket, key, holderText(holder), expiresAt);
    },
    consumeGrant: (id) => run(REMOVE_GRANT, id) === 1,
  };
}

/** A user as rules see one, or the name of a service key. */
function holderText(holder: GrantHolder): string | null {
  if (holder.kind === "user") return JSON.stringify(holder.auth);
  return holder.kind === "serviceKey" ? JSON.stringify({ serviceKey: holder.name }) : null;
}

function readHolder(text: string | null): GrantHolder {
  if (text === null) return { kind: "server" };
  // `holderText` has written it.
  const value = JSON.parse(text) as Auth | { serviceKey: string };
  return "serviceKey" in value ? { kind: "serviceKey", name: value.serviceKey } : { kind: "user", auth: value };
}

/** The row's type is what the columns named in `sql` give, by schema/migrations/002_storage.sql. */
const statement = <R>(tx: Transaction, sql: string): Statement<R> => tx.query<R>(sql);

const readObject = (row: ObjectRow | null): StoredObject | null => (row === null ? null : toObject(row));

const toObject = (row: ObjectRow): StoredObject => withMetadata(row);

const readUpload = (row: UploadRow | null): Upload | null => (row === null ? null : withMetadata(row));

/** Parses the metadata when it is asked for: most requests about a file are not about that. */
function withMetadata<Row extends { customMetadata: string }>(
  row: Row,
): Omit<Row, "customMetadata"> & { customMetadata: { [key: string]: string } } {
  const text = row.customMetadata;
  let parsed: { [key: string]: string } | null = null;
  // Every member of the row is there; the one that is defined anew is of the type that is returned.
  return Object.defineProperty(
    row as unknown as Row & { customMetadata: { [key: string]: string } },
    "customMetadata",
    {
      // `put` and `insertUpload` have written it as the JSON of an object of strings.
      get: () => (parsed ??= text === "{}" ? {} : (JSON.parse(text) as { [key: string]: string })),
      enumerable: true,
    },
  );
}
