import type { Principal } from "../../../access/principal.ts";
import type { Gate } from "../model/types.ts";
import { bodyChunks, createReceiver, requireDeclaredLength, tooBig } from "./receive.ts";
import type { UploadContext } from "./upload-context.ts";
import type { NamedPart } from "../model/upload-requests.ts";

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
