import type { Static, TSchema } from "typebox";
import type { Clock } from "../../../../kernel/clock.ts";
import { type AppError, badField, badRequest, conflict, notFound } from "../../../../kernel/errors.ts";
import type { Ids } from "../../../../kernel/ids.ts";
import type { Logger } from "../../../../kernel/logger.ts";
import type { Pace } from "../../../../kernel/time/scheduler.ts";
import type { Principal } from "../../../access/principal.ts";
import { bodyChunks } from "../../../http/bodies/body-chunks.ts";
import type { FileLife } from "../contents/file-life.ts";
import { factsOfNew, type Gate, type Gates } from "../gates.ts";
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
import type { FileStore, IncomingFile, StoredObject, Upload, UploadPart } from "../model/types.ts";
import type { StorageReads, StorageStore } from "../store/store.ts";
import { ownerOf, type StorageService } from "./files.ts";
import { createReceiver, requireDeclaredLength, tooBig } from "./receiving.ts";
import { earlierReceiptOf, leaveReceipt, receiptOfParts } from "./uploads.ts";

type Body<Schema extends TSchema> = () => Promise<Static<Schema>>;
type Completed = Pick<StoredObject, "key" | "size" | "uploaded">;

interface UploadsDeps {
  store: StorageStore;
  gates: Gates;
  service: StorageService;
  life: FileLife;
  ended: EndedUploads;
  paces: () => Pace;
  /** Store of parts until they become a file; always on this machine. */
  staging: FileStore;
  clock: Clock;
  ids: Ids;
}

/** Multipart uploads. Every call evaluates the write rule. */
export class Uploads {
  readonly #deps: UploadsDeps;
  /** The last work on each upload, by upload id. */
  readonly #turns = new Map<string, Promise<unknown>>();

  constructor(deps: UploadsDeps) {
    this.#deps = deps;
  }

  /** Begins an upload. Errors: 400, 403, 404, 409. */
  async create(
    principal: Principal,
    bucket: string,
    body: Body<typeof NewUpload>,
  ): Promise<{ uploadId: string; key: string }> {
    const { store, gates, clock, ids } = this.#deps;
    const gate = await gates.enter(principal, bucket, "write");
    const { key, contentType: declared, metadata } = await body();
    const contentType = parseContentType(declared);
    const customMetadata = parseMetadata(metadata);
    await this.#ask(gate, { key, contentType }, 0);
    const ownerId = ownerOf(principal);
    const upload = { id: ids.uuid(), bucket, key, contentType, customMetadata, ownerId, createdAt: clock.now() };
    await store.write((storage) => {
      if (storage.uploadCount(bucket, ownerId) >= UNFINISHED_UPLOADS_MAX) {
        throw conflict(`There are ${UNFINISHED_UPLOADS_MAX} unfinished uploads already; complete or abort some`);
      }
      storage.insertUpload(upload);
    });
    return { uploadId: upload.id, key };
  }

  /** Stores one part, replacing the one with its number. Errors: 400, 401, 404, 408, 413, 507. */
  async putPart(
    principal: Principal,
    bucket: string,
    query: () => NamedPart,
    { request, requirePresent }: { request: Request; requirePresent: () => void },
  ): Promise<{ partNumber: number; etag: string }> {
    const { store, gates, life, staging, clock } = this.#deps;
    const gate = await gates.enter(principal, bucket, "write");
    const { uploadId, key, partNumber } = query();
    const { maxFileBytes } = gate.bucket;
    const upload = this.#owned(store.findUpload(uploadId), principal, bucket, key);
    const others = store.partsSize(uploadId, partNumber);
    const limit = { maxBytes: maxFileBytes, takenBytes: others };
    requireDeclaredLength(request, limit);
    await this.#ask(gate, upload, others + Number(request.headers.get("content-length") ?? 0));
    const arrival = store.arrival(bucket, upload.ownerId);
    const stored = life.withNew(staging, async (incoming, fileId) => {
      const receiver = createReceiver(incoming, limit, arrival);
      for await (const chunk of bodyChunks(request, clock)) await receiver.take(chunk);
      requirePresent();
      await incoming.finish();
      const replaced = await store.write((storage) => {
        this.#owned(storage.findUpload(uploadId), principal, bucket, key);
        // Checked again: concurrent parts could exceed the limit together.
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

  /** Joins the parts into a file and ends the upload. Errors: 400, 403, 404, 409, 413, 507. */
  async complete(principal: Principal, bucket: string, body: Body<typeof CompletedUpload>): Promise<Completed> {
    const gate = await this.#deps.gates.enter(principal, bucket, "write");
    const asked = await body();
    return this.#inTurn(asked.uploadId, () => this.#join(principal, gate, asked));
  }

  /** Ends an upload and removes its parts. Errors: 400, 403, 404. */
  async abort(principal: Principal, bucket: string, body: Body<typeof NamedUpload>): Promise<void> {
    const { store, gates, ended } = this.#deps;
    const gate = await gates.enter(principal, bucket, "write");
    const { uploadId, key } = await body();
    const upload = this.#owned(store.findUpload(uploadId), principal, bucket, key);
    await this.#ask(gate, upload, store.partsSize(upload.id, 0));
    await store.write((storage) => {
      this.#owned(storage.findUpload(upload.id), principal, bucket, upload.key);
      storage.abortUpload(upload, gate.actor);
    });
    ended.clear(upload.id);
  }

  /** Lists the parts that have arrived, in order of number. Errors: 400, 403, 404. */
  async parts(
    principal: Principal,
    bucket: string,
    uploadId: string,
    key: () => string,
  ): Promise<{ partNumber: number; size: number; etag: string }[]> {
    const { store, gates, paces } = this.#deps;
    const gate = await gates.enter(principal, bucket, "write");
    const upload = this.#owned(store.findUpload(uploadId), principal, bucket, key());
    const pace = paces();
    await pace.next();
    const parts = store.parts(upload.id);
    await this.#ask(gate, upload, sizeOf(parts));
    await pace.next();
    return parts.map(({ partNumber, size, fileId }) => ({ partNumber, size, etag: fileId }));
  }

  async #join(
    principal: Principal,
    gate: Gate,
    { uploadId, key, parts: wanted }: Static<typeof CompletedUpload>,
  ): Promise<Completed> {
    const { store, service, ended, staging, paces } = this.#deps;
    const pace = paces();
    await pace.next();
    requireAscending(wanted);
    const receiptId = receiptOfParts(uploadId, wanted);
    const receipt = (): Completed | null => {
      const found = store.findReceipt(receiptId) ?? store.findReceipt(earlierReceiptOf(uploadId));
      if (found === null || found.bucket !== gate.bucket.name || found.key !== key) return null;
      if (principal.kind === "user" && found.ownerId !== principal.auth.id) return null;
      return found;
    };
    // Already completed: the client did not get the response. [ST210]
    const before = receipt();
    if (before !== null) return before;
    const upload = this.#owned(store.findUpload(uploadId), principal, gate.bucket.name, key);
    await pace.next();
    const stamp = store.partsStamp(upload.id);
    const stored = store.parts(upload.id);
    await pace.next();
    const parts = chooseParts(wanted, stored);
    const size = sizeOf(parts);
    if (size > gate.bucket.maxFileBytes) throw tooBig({ maxBytes: gate.bucket.maxFileBytes });
    await this.#ask(gate, upload, size);
    const done = service.put({
      gate,
      uploadedBy: upload.ownerId,
      isCounted: true,
      async receive(incoming) {
        for (const part of parts) {
          await copy(staging, part, incoming);
          // Small parts are read without waiting: thousands of them would block the event loop.
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
      // The same request was sent twice, and the other one finished first.
      const first = receipt();
      if (first !== null) return first;
      // Aborted or replaced parts can no longer be read.
      requireParts(store, upload.id, { parts, stamp });
      throw cause;
    }
  }

  /**
   * Returns the caller's upload. Errors: 404 for one that is unknown, finished, expired or another owner's; the response
   * does not say which.
   */
  #owned(upload: Upload | null, principal: Principal, bucket: string, key: string): Upload {
    const isPresent = upload !== null && upload.createdAt + UPLOAD_TTL_MS > this.#deps.clock.now();
    const isOwner = principal.kind !== "user" || upload?.ownerId === principal.auth.id;
    if (isPresent && isOwner && upload.bucket === bucket && upload.key === key) return upload;
    throw unknownUpload();
  }

  /** Evaluates a rule that reads the file, with the size stored so far. */
  #ask(gate: Gate, { key, contentType }: Pick<Upload, "key" | "contentType">, size: number): Promise<void> {
    return gate.require(() =>
      factsOfNew({ key, size, contentType }, this.#deps.store.find({ bucket: gate.bucket.name, key })),
    );
  }

  /** Runs the work on one upload sequentially: concurrent completions would each copy the parts, and fill the disk. [ST213] */
  async #inTurn<T>(uploadId: string, work: () => Promise<T>): Promise<T> {
    const running = (this.#turns.get(uploadId) ?? Promise.resolve()).then(work, work);
    this.#turns.set(uploadId, running);
    try {
      return await running;
    } finally {
      if (this.#turns.get(uploadId) === running) this.#turns.delete(uploadId);
    }
  }
}

/** Returns the stored parts that the request names. Errors: 400 for a missing part or a wrong etag. */
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
 * Checks the parts in the transaction that makes the file visible: of two concurrent completions one finds the upload
 * ended. Errors: 404 for an upload that has ended, 400 when one of the parts was replaced.
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

const unknownUpload = (): AppError => notFound("There is no such multipart upload");

const sizeOf = (parts: readonly UploadPart[]): number => parts.reduce((sum, { size }) => sum + size, 0);

/**
 * Removes the parts of uploads that have ended, up to 10,000 each, in steps. What remains at a stop counts as expired and
 * is removed after the next start.
 */
export class EndedUploads {
  readonly #deps: { store: StorageStore; life: FileLife; staging: FileStore; paces: () => Pace; logger: Logger };
  readonly #running = new Set<Promise<void>>();
  #isStopped = false;

  constructor(deps: { store: StorageStore; life: FileLife; staging: FileStore; paces: () => Pace; logger: Logger }) {
    this.#deps = deps;
  }

  /** Removes the parts in the background. A failed removal is left to the next sweep. */
  clear(uploadId: string): void {
    const work = this.clearNow(uploadId)
      .catch((cause: unknown) => {
        const message = "the parts of an upload could not be removed; the next sweep tries again";
        this.#deps.logger.warn(message, { uploadId, cause });
      })
      .finally(() => this.#running.delete(work));
    this.#running.add(work);
  }

  /** Removes the parts. Resolves when nothing of the upload is left, or the server stops. */
  async clearNow(uploadId: string): Promise<void> {
    const { store, life, staging, paces } = this.#deps;
    const pace = paces();
    while (!this.#isStopped) {
      const parts = await store.write((storage) => {
        const taken = storage.takeParts(uploadId, EXPIRY_STEP);
        if (taken.length < EXPIRY_STEP) storage.removeUpload(uploadId);
        return taken;
      });
      const fileIds = parts.map(({ fileId }) => fileId);
      life.dispose(staging, fileIds);
      if (parts.length < EXPIRY_STEP) return;
      await pace.next();
    }
  }

  /** Prevents further steps. Resolves when none is under way. */
  async stop(): Promise<void> {
    this.#isStopped = true;
    await Promise.all(this.#running);
  }
}
