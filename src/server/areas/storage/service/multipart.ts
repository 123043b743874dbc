import type { Static, TSchema } from "typebox";
import type { Clock } from "../../../../kernel/clock.ts";
import { type AppError, badField, badRequest, conflict, notFound } from "../../../../kernel/errors.ts";
import type { Ids } from "../../../../kernel/ids.ts";
import type { Logger } from "../../../../kernel/logger.ts";
import type { Pace } from "../../../../kernel/time/scheduler.ts";
import type { Principal } from "../../../access/principal.ts";
import type { FileLife } from "../contents/file-life.ts";
import { factsOfNew, type Gates } from "../gates.ts";
import { EXPIRY_STEP, UNFINISHED_UPLOADS_MAX, UPLOAD_TTL_MS } from "../limits.ts";
import { parseContentType, parseMetadata } from "../model/content.ts";
import {
  type CompletedUpload,
  type NamedPart,
  type NamedUpload,
  type NewUpload,
  requireAscending,
  type WantedPart,
} from "../model/schemas.ts";
import type { FileStore, Gate, IncomingFile, StoredObject, Upload, UploadPart } from "../model/types.ts";
import type { StorageReads, StorageStore } from "../store/store.ts";
import { ownerOf, type StorageService } from "./files.ts";
import { bodyChunks, createReceiver, requireDeclaredLength, tooBig } from "./receiving.ts";
import { earlierReceiptOf, leaveReceipt, receiptOfParts } from "./uploads.ts";

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
    asked: { request: Request; requirePresent: () => void },
  ): Promise<{ partNumber: number; etag: string }>;
  complete(principal: Principal, bucket: string, body: Body<typeof CompletedUpload>): Promise<Completed>;
  abort(principal: Principal, bucket: string, body: Body<typeof NamedUpload>): Promise<void>;
  parts(
    principal: Principal,
    bucket: string,
    uploadId: string,
    key: () => string,
  ): Promise<{ partNumber: number; size: number; etag: string }[]>;
}

export function createUploads(deps: UploadDeps): Uploads {
  const { store, gates, ended } = deps;
  const context = createUploadContext(deps);
  const inTurn = createUploadTurns();

  return {
    async create(principal, bucket, body) {
      const gate = await gates.enter(principal, bucket, "write");
      return createUpload(context, principal, gate, await body());
    },
    async putPart(principal, bucket, query, asked) {
      const gate = await gates.enter(principal, bucket, "write");
      return putPart(context, principal, gate, query(), asked);
    },
    async complete(principal, bucket, body) {
      const gate = await gates.enter(principal, bucket, "write");
      const asked = await body();
      return inTurn(asked.uploadId, () => completeUpload(context, principal, gate, asked));
    },
    async abort(principal, bucket, body) {
      const gate = await gates.enter(principal, bucket, "write");
      const { uploadId, key } = await body();
      const upload = context.owned(store.findUpload(uploadId), principal, bucket, key);
      await context.ask(gate, upload, store.partsSize(upload.id, 0));
      await store.write((storage) => {
        context.owned(storage.findUpload(upload.id), principal, bucket, upload.key);
        storage.abortUpload(upload, gate.actor);
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

/** Runs the work on one upload one after the other: the parts would be copied by each at once, and fill the disk. [ST213] */
function createUploadTurns() {
  const last = new Map<string, Promise<unknown>>();
  return async <T>(uploadId: string, work: () => Promise<T>): Promise<T> => {
    const running = (last.get(uploadId) ?? Promise.resolve()).then(work, work);
    last.set(uploadId, running);
    try {
      return await running;
    } finally {
      if (last.get(uploadId) === running) last.delete(uploadId);
    }
  };
}

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

/** Stores one part, in place of the one with its number. Errors: 400, 401, 404, 408, 413, 507. */
export async function putPart(
  { store, life, staging, clock, owned, ask }: UploadContext,
  principal: Principal,
  gate: Gate,
  { uploadId, key, partNumber }: NamedPart,
  { request, requirePresent }: { request: Request; requirePresent: () => void },
): Promise<{ partNumber: number; etag: string }> {
  const { name: bucket, maxFileBytes } = gate.bucket;
  const upload = owned(store.findUpload(uploadId), principal, bucket, key);
  const others = store.partsSize(uploadId, partNumber);
  const limit = { maxBytes: maxFileBytes, takenBytes: others };
  requireDeclaredLength(request, limit);
  await ask(gate, upload, others + Number(request.headers.get("content-length") ?? 0));
  const arrival = store.arrival(bucket, upload.ownerId);
  const stored = life.withNew(staging, async (incoming, fileId) => {
    const receiver = createReceiver(incoming, limit, arrival);
    for await (const chunk of bodyChunks(request, clock)) await receiver.take(chunk);
    requirePresent();
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
  return stored.finally(() => arrival?.end());
}

export type Completed = Pick<StoredObject, "key" | "size" | "uploaded">;

/** Joins the parts to a file and ends the upload. Errors: 400, 403, 404, 409, 413, 507. */
export async function completeUpload(
  context: UploadContext,
  principal: Principal,
  gate: Gate,
  { uploadId, key, parts: wanted }: Static<typeof CompletedUpload>,
): Promise<Completed> {
  const { store, service, ended, staging } = context;
  const pace = context.paces();
  await pace.next();
  requireAscending(wanted);
  const receiptId = receiptOfParts(uploadId, wanted);
  const receipt = (): Completed | null => {
    const found = store.findReceipt(receiptId) ?? store.findReceipt(earlierReceiptOf(uploadId));
    if (found === null || found.bucket !== gate.bucket.name || found.key !== key) return null;
    if (principal.kind === "user" && found.ownerId !== principal.auth.id) return null;
    return found;
  };
  // Completed before: the client did not get the answer. [ST210]
  const before = receipt();
  if (before !== null) return before;
  const upload = context.owned(store.findUpload(uploadId), principal, gate.bucket.name, key);
  await pace.next();
  const stamp = store.partsStamp(upload.id);
  const stored = store.parts(upload.id);
  await pace.next();
  const parts = chooseParts(wanted, stored);
  const size = sizeOf(parts);
  if (size > gate.bucket.maxFileBytes) throw tooBig({ maxBytes: gate.bucket.maxFileBytes });
  await context.ask(gate, upload, size);
  const done = service.put({
    gate,
    uploadedBy: upload.ownerId,
    isCounted: true,
    async receive(incoming) {
      for (const part of parts) {
        await copy(staging, part, incoming);
        // Small parts are read at once: thousands of them would hold the event loop.
        if (pace.isDue()) await pace.next();
      }
      const { key, contentType, customMetadata } = upload;
      return { key, contentType, customMetadata, size };
    },
    within(storage, made) {
      leaveReceipt(storage, { id: receiptId, bucket: upload.bucket, ownerId: upload.ownerId }, made);
      requireParts(storage, upload.id, { parts, stamp });
      storage.endUpload(upload.id);
    },
  });
  try {
    const object = await done;
    ended.clear(upload.id);
    return object;
  } catch (cause) {
    // The same request, sent twice: the other one was first.
    const first = receipt();
    if (first !== null) return first;
    // Parts that were aborted or replaced meanwhile cannot be read any more.
    requireParts(store, upload.id, { parts, stamp });
    throw cause;
  }
}

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

/**
 * In the write that makes the file visible: of two calls of complete one finds the upload ended. Errors: 404 for an upload that has
 * ended, 400 where one of the parts was replaced.
 */
function requireParts(
  storage: StorageReads,
  uploadId: string,
  { parts, stamp }: { parts: readonly UploadPart[]; stamp: string },
): void {
  const upload = storage.findUpload(uploadId);
  if (upload === null || upload.createdAt === 0) throw unknownUpload();
  if (storage.partsStamp(uploadId) === stamp) return;
  const present = new Set(storage.parts(uploadId).map(({ fileId }) => fileId));
  if (!parts.every(({ fileId }) => present.has(fileId)))
    throw badRequest("A part was replaced while the upload was completed");
}

export interface UploadDeps {
  store: StorageStore;
  gates: Gates;
  service: StorageService;
  life: FileLife;
  ended: EndedUploads;
  paces: () => Pace;
  /** Where parts are until they become a file; always on this machine. */
  staging: FileStore;
  clock: Clock;
  ids: Ids;
}

/** What the calls of multipart uploads share. */
export interface UploadContext extends UploadDeps {
  /** Errors: 404 for an upload that is unknown, finished, expired or another owner's; the answer does not say which. */
  owned(upload: Upload | null, principal: Principal, bucket: string, key: string): Upload;
  /** Asks a rule that reads the file, with the size that the file has so far. */
  ask(gate: Gate, upload: Pick<Upload, "key" | "contentType">, size: number): Promise<void>;
}

export function createUploadContext(deps: UploadDeps): UploadContext {
  return {
    ...deps,
    owned(upload, principal, bucket, key) {
      const isPresent = upload !== null && upload.createdAt + UPLOAD_TTL_MS > deps.clock.now();
      const isOwner = principal.kind !== "user" || upload?.ownerId === principal.auth.id;
      if (isPresent && isOwner && upload.bucket === bucket && upload.key === key) return upload;
      throw unknownUpload();
    },
    async ask(gate, upload, size) {
      if (gate.verdict !== null) return;
      const present = deps.store.find({ bucket: gate.bucket.name, key: upload.key });
      gate.enforce(await gate.ask(factsOfNew({ key: upload.key, size, contentType: upload.contentType }, present)));
    },
  };
}

export const unknownUpload = (): AppError => notFound("There is no such multipart upload");

export const sizeOf = (parts: readonly UploadPart[]): number => parts.reduce((sum, { size }) => sum + size, 0);

/**
 * The parts of uploads that have ended, up to 10,000 each, which are removed in steps. What a stop leaves counts as expired and
 * is removed after the next start.
 */
export interface EndedUploads {
  /** In the background. The next sweep removes what this cannot. */
  clear(uploadId: string): void;
  /** Resolves when nothing of the upload is left, or the server stops. */
  clearNow(uploadId: string): Promise<void>;
  /** Begins no further step. Resolves when none is under way. */
  stop(): Promise<void>;
}

export function createEndedUploads(deps: {
  store: StorageStore;
  life: FileLife;
  staging: FileStore;
  paces: () => Pace;
  logger: Logger;
}): EndedUploads {
  const { store, life, staging, logger } = deps;
  const running = new Set<Promise<void>>();
  let isStopped = false;

  const clearNow = async (uploadId: string): Promise<void> => {
    const pace = deps.paces();
    while (!isStopped) {
      const parts = await store.write((storage) => {
        const taken = storage.takeParts(uploadId, EXPIRY_STEP);
        if (taken.length < EXPIRY_STEP) storage.removeUpload(uploadId);
        return taken;
      });
      life.dispose(
        staging,
        parts.map(({ fileId }) => fileId),
      );
      if (parts.length < EXPIRY_STEP) return;
      await pace.next();
    }
  };

  return {
    clearNow,
    clear(uploadId) {
      const work = clearNow(uploadId)
        .catch((cause: unknown) => {
          logger.warn("the parts of an upload could not be removed; the next sweep tries again", { uploadId, cause });
        })
        .finally(() => running.delete(work));
      running.add(work);
    },
    async stop() {
      isStopped = true;
      await Promise.all(running);
    },
  };
}
