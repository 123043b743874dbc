import type { Static, TSchema } from "typebox";
import type { Principal } from "../../access/principal.ts";
import type { Clock } from "../../kernel/clock.ts";
import { badField, badRequest, conflict, notFound } from "../../kernel/errors.ts";
import type { Ids } from "../../kernel/ids.ts";
import type { Paces } from "../../kernel/pace.ts";
import { parseContentType, parseMetadata } from "../content.ts";
import type { FileLife } from "../files/file-life.ts";
import { UNFINISHED_UPLOADS_MAX, UPLOAD_TTL_MS } from "../limits.ts";
import { factsOfNew, type Gates } from "../rights/gates.ts";
import { ownerOf, type StorageService } from "../service.ts";
import type { StorageStore, StorageWrite } from "../store.ts";
import type { FileStore, Gate, IncomingFile, StoredObject, Upload, UploadPart } from "../types.ts";
import { bodyChunks, createReceiver, requireDeclaredLength, tooBig } from "../uploads/receive.ts";
import type { EndedUploads } from "./ended-uploads.ts";
import {
  type CompletedUpload,
  type NamedPart,
  type NamedUpload,
  type NewUpload,
  requireAscending,
  type WantedPart,
} from "./upload-requests.ts";

type Body<Schema extends TSchema> = () => Promise<Static<Schema>>;

/** Multipart uploads. Every call asks the write rule. */
export interface Uploads {
  create(
    principal: Principal,
    bucket: string,
    body: Body<typeof NewUpload>,
  ): Promise<{ uploadId: string; key: string }>;
  putPart(
    principal: Principal,
    bucket: string,
    query: () => NamedPart,
    request: Request,
  ): Promise<{ partNumber: number; etag: string }>;
  complete(principal: Principal, bucket: string, body: Body<typeof CompletedUpload>): Promise<StoredObject>;
  abort(principal: Principal, bucket: string, body: Body<typeof NamedUpload>): Promise<void>;
  parts(
    principal: Principal,
    bucket: string,
    uploadId: string,
    key: () => string,
  ): Promise<{ partNumber: number; size: number; etag: string }[]>;
}

export interface UploadDeps {
  store: StorageStore;
  gates: Gates;
  service: StorageService;
  life: FileLife;
  ended: EndedUploads;
  paces: Paces;
  /** Where parts are until they become a file; always on this machine. */
  staging: FileStore;
  clock: Clock;
  ids: Ids;
}

export function createUploads(deps: UploadDeps): Uploads {
  const { store, gates, ended } = deps;
  const context: UploadContext = {
    ...deps,
    owned(upload, principal, bucket, key) {
      const isPresent = upload !== null && upload.createdAt + UPLOAD_TTL_MS > deps.clock.now();
      const isOwner = principal.kind !== "user" || upload?.ownerId === principal.auth.id;
      if (isPresent && isOwner && upload.bucket === bucket && upload.key === key) return upload;
      throw unknownUpload();
    },
    async ask(gate, upload, size) {
      if (gate.verdict !== null) return;
      const present = store.find({ bucket: gate.bucket.name, key: upload.key });
      gate.enforce(await gate.ask(factsOfNew({ key: upload.key, size, contentType: upload.contentType }, present)));
    },
  };

  return {
    async create(principal, bucket, body) {
      const gate = await gates.enter(principal, bucket, "write");
      return createUpload(context, principal, gate, await body());
    },
    async putPart(principal, bucket, query, request) {
      const gate = await gates.enter(principal, bucket, "write");
      return putPart(context, principal, gate, query(), request);
    },
    async complete(principal, bucket, body) {
      const gate = await gates.enter(principal, bucket, "write");
      return completeUpload(context, principal, gate, await body());
    },
    async abort(principal, bucket, body) {
      const gate = await gates.enter(principal, bucket, "write");
      const { uploadId, key } = await body();
      const upload = context.owned(store.findUpload(uploadId), principal, bucket, key);
      await context.ask(gate, upload, store.partsSize(upload.id, 0));
      await store.write((storage) => {
        context.owned(storage.findUpload(upload.id), principal, bucket, upload.key);
        storage.endUpload(upload.id);
      });
      ended.clear(upload.id);
    },
    async parts(principal, bucket, uploadId, key) {
      const gate = await gates.enter(principal, bucket, "write");
      const upload = context.owned(store.findUpload(uploadId), principal, bucket, key());
      const pace = deps.paces();
      await pace.next();
      const parts = store.parts(upload.id);
      await context.ask(gate, upload, sizeOf(parts));
      await pace.next();
      return parts.map(({ partNumber, size, fileId }) => ({ partNumber, size, etag: fileId }));
    },
  };
}

interface UploadContext extends UploadDeps {
  /** Errors: 404 for an upload that is unknown, finished, expired or another owner's; the answer does not say which. */
  owned(upload: Upload | null, principal: Principal, bucket: string, key: string): Upload;
  /** Asks a rule that reads the file, with the size that the file has so far. */
  ask(gate: Gate, upload: Pick<Upload, "key" | "contentType">, size: number): Promise<void>;
}

const unknownUpload = () => notFound("There is no such multipart upload");

async function createUpload(
  { store, clock, ids, ask }: UploadContext,
  principal: Principal,
  gate: Gate,
  fields: Static<typeof NewUpload>,
): Promise<{ uploadId: string; key: string }> {
  const bucket = gate.bucket.name;
  const { key } = fields;
  const contentType = parseContentType(fields.contentType);
  const customMetadata = parseMetadata(fields.metadata);
  await ask(gate, { key, contentType }, 0);
  const ownerId = ownerOf(principal);
  const upload: Upload = { id: ids.uuid(), bucket, key, contentType, customMetadata, ownerId, createdAt: clock.now() };
  await store.write((storage) => {
    if (storage.uploadCount(bucket, ownerId) >= UNFINISHED_UPLOADS_MAX) {
      throw conflict(`There are ${UNFINISHED_UPLOADS_MAX} unfinished uploads already; complete or abort some`);
    }
    storage.insertUpload(upload);
  });
  return { uploadId: upload.id, key };
}

async function putPart(
  { store, life, staging, clock, owned, ask }: UploadContext,
  principal: Principal,
  gate: Gate,
  { uploadId, key, partNumber }: NamedPart,
  request: Request,
): Promise<{ partNumber: number; etag: string }> {
  const { name: bucket, maxFileBytes } = gate.bucket;
  const upload = owned(store.findUpload(uploadId), principal, bucket, key);
  const others = store.partsSize(uploadId, partNumber);
  const limit = { maxBytes: maxFileBytes, takenBytes: others };
  requireDeclaredLength(request, limit);
  await ask(gate, upload, others + Number(request.headers.get("content-length") ?? 0));
  return life.withNew(staging, async (incoming, fileId) => {
    const receiver = createReceiver(incoming, limit);
    for await (const chunk of bodyChunks(request, clock)) await receiver.take(chunk);
    await incoming.finish();
    const replaced = await store.write((storage) => {
      owned(storage.findUpload(uploadId), principal, bucket, key);
      // Counted again: parts in parallel could exceed the limit together.
      const size = receiver.byteCount;
      if (storage.partsSize(uploadId, partNumber) + size > maxFileBytes) throw tooBig({ maxBytes: maxFileBytes });
      const present = storage.partFile(uploadId, partNumber);
      storage.putPart(uploadId, { partNumber, fileId, size });
      return present;
    });
    if (replaced !== null) life.dispose(staging, [replaced]);
    return { partNumber, etag: fileId };
  });
}

async function completeUpload(
  context: UploadContext,
  principal: Principal,
  gate: Gate,
  { uploadId, key, parts: wanted }: Static<typeof CompletedUpload>,
): Promise<StoredObject> {
  const { store, service, ended, staging } = context;
  const pace = context.paces();
  await pace.next();
  requireAscending(wanted);
  const upload = context.owned(store.findUpload(uploadId), principal, gate.bucket.name, key);
  await pace.next();
  const stamp = store.partsStamp(upload.id);
  const stored = store.parts(upload.id);
  await pace.next();
  const parts = chooseParts(wanted, stored);
  const size = sizeOf(parts);
  if (size > gate.bucket.maxFileBytes) throw tooBig({ maxBytes: gate.bucket.maxFileBytes });
  await context.ask(gate, upload, size);
  const object = await service.put({
    gate,
    uploadedBy: upload.ownerId,
    async receive(incoming) {
      for (const part of parts) {
        await copy(staging, part, incoming);
        // Small parts are read at once: thousands of them would hold the event loop.
        if (pace.isDue()) await pace.next();
      }
      const { key, contentType, customMetadata } = upload;
      return { key, contentType, customMetadata, size };
    },
    within: (storage) => finishUpload(storage, upload.id, { parts, stamp }),
  });
  ended.clear(upload.id);
  return object;
}

const sizeOf = (parts: readonly UploadPart[]): number => parts.reduce((sum, { size }) => sum + size, 0);

/** The stored parts that the request names. Errors: 400 for a missing part or a wrong etag. */
function chooseParts(named: readonly WantedPart[], stored: readonly UploadPart[]): UploadPart[] {
  const byNumber = new Map(stored.map((part) => [part.partNumber, part]));
  return named.map(({ partNumber, etag, size = null }, index) => {
    const field = `parts.${index}`;
    const part = byNumber.get(partNumber);
    if (part === undefined) throw badField(field, "invalid_value", `Part ${partNumber} has not been uploaded`);
    if (part.fileId !== etag) throw badField(field, "invalid_value", `The etag of part ${partNumber} does not match`);
    if (size !== null && part.size !== size) {
      throw badField(field, "invalid_value", `Part ${partNumber} has ${part.size} bytes, not ${size}`);
    }
    return part;
  });
}

async function copy(staging: FileStore, part: UploadPart, incoming: IncomingFile): Promise<void> {
  let byteCount = 0;
  for await (const chunk of (await staging.blob(part.fileId, part.size)).stream()) {
    byteCount += chunk.byteLength;
    await incoming.write(chunk);
  }
  // An abort may have removed the bytes meanwhile.
  if (byteCount !== part.size) throw unknownUpload();
}

/** Runs in the write that makes the file visible: of two calls of complete one finds the upload ended. Errors: 404, 400. */
function finishUpload(
  storage: StorageWrite,
  uploadId: string,
  { parts, stamp }: { parts: readonly UploadPart[]; stamp: string },
): void {
  const upload = storage.findUpload(uploadId);
  if (upload === null || upload.createdAt === 0) throw unknownUpload();
  if (storage.partsStamp(uploadId) !== stamp) {
    const present = new Set(storage.parts(uploadId).map(({ fileId }) => fileId));
    if (!parts.every(({ fileId }) => present.has(fileId)))
      throw badRequest("A part was replaced while the upload was completed");
  }
  storage.endUpload(uploadId);
}
