import type { Principal } from "../access/principal.ts";
import type { Clock } from "../kernel/clock.ts";
import { badField, badRequest, conflict, notFound } from "../kernel/errors.ts";
import type { Ids } from "../kernel/ids.ts";
import type { JsonObject } from "../kernel/json.ts";
import { refuseUnknownMembers } from "../kernel/members.ts";
import { parseContentType, parseMetadata } from "./content.ts";
import type { FileLife } from "./garbage.ts";
import { factsOfNew, type Gates } from "./gates.ts";
import { parseKey } from "./keys.ts";
import { UNFINISHED_UPLOADS_MAX, UPLOAD_TTL_MS } from "./limits.ts";
import { bodyChunks, createReceiver, requireDeclaredLength, tooBig } from "./receive.ts";
import { ownerOf, type StorageService } from "./service.ts";
import type { StorageStore, StorageWrite } from "./store.ts";
import type { FileStore, Gate, IncomingFile, StoredObject, Upload, UploadPart } from "./types.ts";
import { type NamedPart, type NamedUpload, parseNamed, parseParts } from "./upload-requests.ts";

type Body = () => Promise<JsonObject>;

/** The calls of a multipart upload; every one asks the write rule. Spec: Storage endpoints; decisions 13. */
export interface Uploads {
  create(principal: Principal, bucket: string, body: Body): Promise<{ uploadId: string; key: string }>;
  putPart(
    principal: Principal,
    bucket: string,
    query: () => { uploadId: string; key: string; partNumber: number },
    request: Request,
  ): Promise<{ partNumber: number; etag: string }>;
  complete(principal: Principal, bucket: string, body: Body): Promise<StoredObject>;
  abort(principal: Principal, bucket: string, body: Body): Promise<void>;
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
  /** Where parts lie until they become a file; always on this machine. */
  staging: FileStore;
  clock: Clock;
  ids: Ids;
}

export function createUploads(deps: UploadDeps): Uploads {
  const { store, gates, life, staging } = deps;
  const context: UploadContext = {
    ...deps,
    owned(upload, principal, bucket, key) {
      const isPresent = upload !== null && upload.createdAt + UPLOAD_TTL_MS > deps.clock.now();
      const isOwner = principal.kind !== "user" || upload?.ownerId === principal.auth.id;
      if (isPresent && isOwner && upload.bucket === bucket && upload.key === key) return upload;
      throw unknownUpload();
    },
    async ask(gate, upload, size) {
      if (gate.isDecided) return;
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
      const fields = await body();
      refuseUnknownMembers(fields, ["uploadId", "key"], "multipart/abort");
      const upload = namedUpload(context, parseNamed(fields), principal, bucket);
      await context.ask(gate, upload, sizeOf(store.parts(upload.id)));
      const parts = await store.write((storage) => {
        context.owned(storage.findUpload(upload.id), principal, bucket, upload.key);
        const removed = storage.parts(upload.id);
        storage.removeUpload(upload.id);
        return removed;
      });
      life.dispose(staging, fileIds(parts));
    },
    async parts(principal, bucket, uploadId, key) {
      const gate = await gates.enter(principal, bucket, "write");
      const upload = context.owned(store.findUpload(uploadId), principal, bucket, parseKey(key()));
      const parts = store.parts(upload.id);
      await context.ask(gate, upload, sizeOf(parts));
      return parts.map(({ partNumber, size, fileId }) => ({ partNumber, size, etag: fileId }));
    },
  };
}

interface UploadContext extends UploadDeps {
  /** Errors: 404 for one that is unknown, finished, expired or another owner's: which of them is nobody's business. */
  owned(upload: Upload | null, principal: Principal, bucket: string, key: string): Upload;
  /** Asks a rule that looks at the file, as large as it is so far. */
  ask(gate: Gate, upload: Pick<Upload, "key" | "contentType">, size: number): Promise<void>;
}

const unknownUpload = () => notFound("There is no such multipart upload");

/** The upload that a body names, with its key. Errors: 404. */
const namedUpload = (
  { store, owned }: UploadContext,
  { uploadId, key }: NamedUpload,
  principal: Principal,
  bucket: string,
): Upload => owned(store.findUpload(uploadId), principal, bucket, key);

async function createUpload(
  { store, clock, ids, ask }: UploadContext,
  principal: Principal,
  gate: Gate,
  fields: JsonObject,
): Promise<{ uploadId: string; key: string }> {
  const bucket = gate.bucket.name;
  refuseUnknownMembers(fields, ["key", "contentType", "metadata"], "multipart/create");
  const key = parseKey(fields["key"]);
  const contentType = parseContentType(fields["contentType"]);
  const customMetadata = parseMetadata(fields["metadata"]);
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
  { uploadId, key, partNumber }: { uploadId: string; key: string; partNumber: number },
  request: Request,
): Promise<{ partNumber: number; etag: string }> {
  const { name: bucket, maxFileBytes } = gate.bucket;
  const upload = owned(store.findUpload(uploadId), principal, bucket, parseKey(key));
  const others = sizeOf(store.parts(uploadId).filter((part) => part.partNumber !== partNumber));
  const limit = { maxBytes: maxFileBytes, takenBytes: others };
  requireDeclaredLength(request, limit);
  await ask(gate, upload, others + Number(request.headers.get("content-length") ?? 0));
  return life.withNew(staging, async (incoming, fileId) => {
    const receiver = createReceiver(incoming, limit);
    for await (const chunk of bodyChunks(request, clock)) await receiver.take(chunk);
    await incoming.finish();
    const replaced = await store.write((storage) => {
      owned(storage.findUpload(uploadId), principal, bucket, key);
      const present = storage.parts(uploadId);
      storage.putPart(uploadId, { partNumber, fileId, size: receiver.byteCount });
      // Parts that came meanwhile count too: in parallel they could pass the limit together.
      requireTotal(storage.parts(uploadId), maxFileBytes);
      return present.find((part) => part.partNumber === partNumber)?.fileId ?? null;
    });
    if (replaced !== null) life.dispose(staging, [replaced]);
    return { partNumber, etag: fileId };
  });
}

async function completeUpload(
  context: UploadContext,
  principal: Principal,
  gate: Gate,
  fields: JsonObject,
): Promise<StoredObject> {
  const { store, service, life, staging } = context;
  refuseUnknownMembers(fields, ["uploadId", "key", "parts"], "multipart/complete");
  const named = parseNamed(fields);
  const wanted = parseParts(fields["parts"]);
  const upload = namedUpload(context, named, principal, gate.bucket.name);
  const stored = store.parts(upload.id);
  const parts = chooseParts(wanted, stored);
  requireTotal(parts, gate.bucket.maxFileBytes);
  await context.ask(gate, upload, sizeOf(parts));
  const object = await service.put({
    gate,
    uploadedBy: upload.ownerId,
    async receive(incoming) {
      for (const part of parts) await copy(staging, part, incoming);
      const { key, contentType, customMetadata } = upload;
      return { key, contentType, customMetadata, size: sizeOf(parts) };
    },
    within: (storage) => finishUpload(storage, upload.id, parts),
  });
  life.dispose(staging, fileIds(stored));
  return object;
}

const sizeOf = (parts: readonly UploadPart[]): number => parts.reduce((sum, { size }) => sum + size, 0);
const fileIds = (parts: readonly UploadPart[]): string[] => parts.map(({ fileId }) => fileId);

function requireTotal(parts: readonly UploadPart[], maxBytes: number): void {
  if (sizeOf(parts) > maxBytes) throw tooBig({ maxBytes });
}

/** The stored parts that are named. Errors: 400 for a missing part or a wrong etag. */
function chooseParts(named: readonly NamedPart[], stored: readonly UploadPart[]): UploadPart[] {
  const byNumber = new Map(stored.map((part) => [part.partNumber, part]));
  return named.map(({ partNumber, etag, size }, index) => {
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
  // An abort may have taken the bytes away in the middle.
  if (byteCount !== part.size) throw unknownUpload();
}

/** Runs in the write that makes the file visible: of two complete calls one finds the upload gone. Errors: 404, 400. */
function finishUpload(storage: StorageWrite, uploadId: string, parts: readonly UploadPart[]): void {
  if (storage.findUpload(uploadId) === null) throw unknownUpload();
  const present = new Set(fileIds(storage.parts(uploadId)));
  if (!parts.every(({ fileId }) => present.has(fileId))) throw badRequest("A part was replaced meanwhile");
  storage.removeUpload(uploadId);
}
