import type { Static } from "typebox";
import { badField, badRequest } from "../../../../kernel/errors.ts";
import type { Principal } from "../../../access/principal.ts";
import type { StorageReads } from "../store/store.ts";
import type { FileStore, Gate, IncomingFile, StoredObject, UploadPart } from "../model/types.ts";
import { earlierReceiptOf, leaveReceipt, receiptOfParts } from "./receipts.ts";
import { tooBig } from "./receive.ts";
import { sizeOf, type UploadContext, unknownUpload } from "./upload-context.ts";
import { type CompletedUpload, requireAscending, type WantedPart } from "../model/upload-requests.ts";

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
