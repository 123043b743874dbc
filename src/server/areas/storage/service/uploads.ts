import { createHash } from "node:crypto";
import type { Clock } from "../../../../kernel/clock.ts";
import { AppError, badField, badRequest } from "../../../../kernel/errors.ts";
import { currentTrace } from "../../../../kernel/observing/request-trace.ts";
import type { Principal } from "../../../access/principal.ts";
import { bodyChunks } from "../../../http/bodies/body-chunks.ts";
import { parseBoundary } from "../../../http/bodies/form-boundary.ts";
import { callerKeyOf, IDEMPOTENCY_KEY_HEADER } from "../../../http/exchange/idempotency-key.ts";
import type { Gates } from "../gates.ts";
import { FORM_OVERHEAD_MAX_BYTES } from "../limits.ts";
import { parseContentType, parseMetadataText } from "../model/content.ts";
import { parseKey } from "../model/keys.ts";
import type { StoredObject } from "../model/types.ts";
import type { ReceiptRecord } from "../statements/receipts.ts";
import type { StorageStore, StorageWrite } from "../store/store.ts";
import { ownerOf, type ReceivedFile, type StorageService } from "./files.ts";
import { createReceiver, readUploadForm, requireDeclaredLength } from "./receiving.ts";
import { type Signing, usedUp } from "./signing.ts";

interface Deps {
  store: Pick<StorageStore, "findReceipt" | "arrival">;
  gates: Gates;
  service: StorageService;
  signing: Signing;
  clock: Clock;
}

/** Result of an upload. */
export interface Uploaded {
  file: Pick<StoredObject, "key" | "size" | "contentType" | "customMetadata" | "uploaded">;
  /** Whether an earlier request with the same idempotency key has stored it. */
  isReplay: boolean;
}

/** Receives a form with `file`, `key` and `metadata` in any order. Errors: 400, 401, 403, 404, 413, 415, 422, 507. */
export async function receiveForm(
  { store, gates, service, clock }: Deps,
  principal: Principal,
  bucket: string,
  { request, checkForm, requirePresent }: { request: Request; checkForm: () => void; requirePresent: () => void },
): Promise<Uploaded> {
  const gate = await gates.enter(principal, bucket, "write");
  checkForm();
  const onceKey = request.headers.get(IDEMPOTENCY_KEY_HEADER);
  const ownerId = ownerOf(principal);
  const once = onceKey === null ? null : { id: receiptOfKey(principal, bucket, onceKey), bucket, ownerId };
  const boundary = parseBoundary(request.headers.get("content-type"));
  const limit = { maxBytes: gate.bucket.maxFileBytes };
  requireDeclaredLength(request, limit, FORM_OVERHEAD_MAX_BYTES);
  const arrival = store.arrival(bucket, ownerId);
  let received: ReceivedFile | null = null;
  try {
    const file = await service.put({
      gate,
      uploadedBy: ownerId,
      async receive(incoming) {
        const receiver = createReceiver(incoming, limit, arrival);
        const form = await readUploadForm(bodyChunks(request, clock), boundary, receiver.take);
        requirePresent();
        if (form.file === null) throw badField("file", "required", "file is required");
        const { contentType } = form.file;
        const customMetadata = parseMetadataText(form.metadata);
        received = { key: parseKey(form.key), contentType, customMetadata, size: receiver.byteCount };
        // Before the rule is evaluated: it may allow new files only, and the file exists already.
        if (once !== null && store.findReceipt(once.id) !== null) throw new StoredBefore();
        return received;
      },
      within: (storage, made) => once !== null && leaveReceipt(storage, once, made),
    });
    return { file, isReplay: false };
  } catch (cause) {
    // Looked up whatever the cause: a rule that allows new files only has refused the second of two concurrent uploads.
    const before = once === null ? null : store.findReceipt(once.id);
    if (before === null || received === null) throw cause;
    requireSameFile(before, received);
    return { file: { ...(received as ReceivedFile), uploaded: before.uploaded }, isReplay: true };
  } finally {
    arrival?.end();
  }
}

/** Receives the bytes that are PUT to a signed upload URL. The transaction that stores the file consumes the grant. */
export async function receiveSigned(
  { store, gates, service, signing, clock }: Deps,
  token: string,
  address: { bucket: string; key: string },
  request: Request,
): Promise<StoredObject> {
  const { bucket, key } = address;
  const { grant, principal, contentType: signedType } = signing.verifyUpload(token, bucket, key);
  // Whoever sends the bytes, the uploader is who asked for the URL.
  const trace = currentTrace();
  if (trace !== undefined && grant.actor !== null) trace.actor = grant.actor;
  const gate = await gates.enter(principal, bucket, "write");
  const contentType = parseContentType(request.headers.get("content-type"));
  if (signedType !== null && contentType !== signedType) {
    throw badRequest(`The Content-Type must be ${signedType}, as signed in the URL, got ${contentType}`);
  }
  const limit = { maxBytes: gate.bucket.maxFileBytes };
  requireDeclaredLength(request, limit);
  const uploadedBy = ownerOf(principal);
  const arrival = store.arrival(bucket, uploadedBy);
  const stored = service.put({
    gate,
    uploadedBy,
    async receive(incoming) {
      const receiver = createReceiver(incoming, limit, arrival);
      for await (const chunk of bodyChunks(request, clock)) await receiver.take(chunk);
      signing.requirePresent(grant, principal);
      return { key, contentType, customMetadata: {}, size: receiver.byteCount };
    },
    within(storage) {
      if (!storage.consumeGrant(grant.id)) throw usedUp();
    },
  });
  return stored.finally(() => arrival?.end());
}

// Receipts: what an upload stored, for a client that repeats it because it did not get the response. [ST210] [ST211]

/** Thrown by the second of two equal uploads, which is answered by the receipt of the first; nothing of it is stored. */
class StoredBefore extends Error {
  constructor() {
    super("The upload has been stored before");
  }
}

/** The id of a receipt, and its owner. */
export interface ReceiptName {
  id: string;
  bucket: string;
  ownerId: string | null;
}

/** Returns the receipt id of a completed upload. The same upload with other parts is another request. */
export function receiptOfParts(uploadId: string, parts: readonly { partNumber: number; etag: string }[]): string {
  const hash = createHash("sha256");
  for (const { partNumber, etag } of parts) hash.update(`${partNumber} ${JSON.stringify(etag)}\n`);
  return `upload:${uploadId}:${hash.digest("base64url")}`;
}

/** Returns the receipt id of version 0.2.0, which ignores the parts: its clients may repeat their requests after an upgrade. */
export const earlierReceiptOf = (uploadId: string): string => `upload:${uploadId}`;

/** Returns the receipt id of an idempotency key. Errors: 400 for a key of another form. */
function receiptOfKey(principal: Principal, bucket: string, key: string): string {
  const { caller } = callerKeyOf(principal, key);
  return `key:${createHash("sha256").update(`${caller}\0${bucket}\0${key}`).digest("base64url")}`;
}

/** Checks that a receipt is of the same file. Errors: 422 when the idempotency key was used for another file. */
function requireSameFile(receipt: ReceiptRecord, { key, size }: { key: string; size: number }): void {
  if (receipt.key !== key || receipt.size !== size) {
    throw new AppError(422, "The idempotency key was used for another file");
  }
}

/** Stores the receipt. Must be called in the transaction that stores the file. Errors: `StoredBefore`. */
export function leaveReceipt(
  storage: StorageWrite,
  name: ReceiptName,
  file: { key: string; size: number; uploaded: number },
): void {
  if (storage.findReceipt(name.id) !== null) throw new StoredBefore();
  const { id, bucket, ownerId } = name;
  const { key, size, uploaded } = file;
  storage.insertReceipt({ id, bucket, ownerId, key, size, uploaded });
}
