import type { Clock } from "../../../../kernel/clock.ts";
import { type AppError, notFound } from "../../../../kernel/errors.ts";
import type { Ids } from "../../../../kernel/ids.ts";
import type { Paces } from "../../../../kernel/time/pace.ts";
import type { Principal } from "../../../access/principal.ts";
import type { FileLife } from "../contents/file-life.ts";
import { UPLOAD_TTL_MS } from "../limits.ts";
import { factsOfNew, type Gates } from "../rules/gates.ts";
import type { StorageService } from "./files.ts";
import type { StorageStore } from "../store/store.ts";
import type { FileStore, Gate, Upload, UploadPart } from "../model/types.ts";
import type { EndedUploads } from "./ended-uploads.ts";

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
