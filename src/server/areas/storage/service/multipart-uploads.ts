import type { Static, TSchema } from "typebox";
import { conflict } from "../../../../kernel/errors.ts";
import type { Principal } from "../../../access/principal.ts";
import { parseContentType, parseMetadata } from "../model/content.ts";
import { UNFINISHED_UPLOADS_MAX } from "../limits.ts";
import { ownerOf } from "./files.ts";
import type { Gate, Upload } from "../model/types.ts";
import { type Completed, completeUpload } from "./complete-upload.ts";
import { putPart } from "./put-part.ts";
import { createUploadContext, sizeOf, type UploadContext, type UploadDeps } from "./upload-context.ts";
import type { CompletedUpload, NamedPart, NamedUpload, NewUpload } from "../model/upload-requests.ts";

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
