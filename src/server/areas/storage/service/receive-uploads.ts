import type { Clock } from "../../../../kernel/clock.ts";
import { badField, badRequest } from "../../../../kernel/errors.ts";
import { currentTrace } from "../../../../kernel/observing/request-trace.ts";
import type { Principal } from "../../../access/principal.ts";
import { parseBoundary } from "../../../http/bodies/form-boundary.ts";
import { IDEMPOTENCY_KEY_HEADER } from "../../../http/exchange/idempotency-key.ts";
import { parseContentType, parseMetadataText } from "../model/content.ts";
import { parseKey } from "../model/keys.ts";
import { FORM_OVERHEAD_MAX_BYTES } from "../limits.ts";
import type { Gates } from "../rules/gates.ts";
import { ownerOf, type ReceivedFile, type StorageService } from "./files.ts";
import { type Signing, usedUp } from "./signing.ts";
import type { StorageStore } from "../store/store.ts";
import type { StoredObject } from "../model/types.ts";
import { readUploadForm } from "./form.ts";
import { leaveReceipt, receiptOfKey, requireSameFile, StoredBefore } from "./receipts.ts";
import { bodyChunks, createReceiver, requireDeclaredLength } from "./receive.ts";

interface Deps {
  store: Pick<StorageStore, "findReceipt" | "arrival">;
  gates: Gates;
  service: StorageService;
  signing: Signing;
  clock: Clock;
}

/** What an upload has stored. */
export interface Uploaded {
  file: Pick<StoredObject, "key" | "size" | "contentType" | "customMetadata" | "uploaded">;
  /** An earlier request with the same idempotency key has stored it. */
  isReplay: boolean;
}

/** A form with `file`, `key` and `metadata` in any order. Errors: 400, 401, 403, 404, 413, 415, 422, 507. */
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
        // Before the rule is asked: it may allow new files only, and the file is there.
        if (once !== null && store.findReceipt(once.id) !== null) throw new StoredBefore();
        return received;
      },
      within: (storage, made) => once !== null && leaveReceipt(storage, once, made),
    });
    return { file, isReplay: false };
  } catch (cause) {
    // Whatever the cause: a rule that allows new files only has refused the second of two that arrived at once.
    const before = once === null ? null : store.findReceipt(once.id);
    if (before === null || received === null) throw cause;
    requireSameFile(before, received);
    return { file: { ...(received as ReceivedFile), uploaded: before.uploaded }, isReplay: true };
  } finally {
    arrival?.end();
  }
}

/** The bytes that are PUT to a signed upload URL. The write that stores the file uses the grant up. */
export async function receiveSigned(
  { store, gates, service, signing, clock }: Deps,
  token: string,
  address: { bucket: string; key: string },
  request: Request,
): Promise<StoredObject> {
  const { bucket, key } = address;
  const { grant, principal, contentType: signedType } = signing.verifyUpload(token, bucket, key);
  // Whoever sends the bytes, it is an upload of who asked for the URL.
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
