import { mkdirSync } from "node:fs";
import { join } from "node:path";
import type { AnyElysia } from "elysia";
import type { BucketAccessor } from "../config/app-access.ts";
import type { BucketConfig } from "../config/types.ts";
import type { OpenedFile } from "../db/index.ts";
import type { Http } from "../http/http.ts";
import type { Clock } from "../kernel/clock.ts";
import { notFound } from "../kernel/errors.ts";
import type { Ids } from "../kernel/ids.ts";
import type { Logger } from "../kernel/logger.ts";
import { createBucketAccessor } from "./accessor.ts";
import { createListCursors } from "./cursors.ts";
import { createFileLife } from "./garbage.ts";
import { createGates } from "./gates.ts";
import { FILE_MAX_BYTES } from "./limits.ts";
import { createLocalFiles } from "./local-files.ts";
import { createStorageRoutes } from "./routes.ts";
import { createS3Files } from "./s3-files.ts";
import { createStorageService } from "./service.ts";
import { createUrlSigner } from "./signed-urls.ts";
import { createSigning } from "./signing.ts";
import { createStorageStore } from "./store.ts";
import { startSweeps } from "./sweep.ts";
import { createThumbs } from "./thumbs.ts";
import type { Bucket } from "./types.ts";
import { createUploads } from "./uploads.ts";

export interface StorageArea {
  routes(http: Http): AnyElysia;
  /** Errors: 404 for a bucket that is not declared. */
  accessor(bucket: string): BucketAccessor;
  /** Ends the sweeps, and removes what waits to be removed. */
  stop(): Promise<void>;
}

export interface StorageAreaDeps {
  buckets: Readonly<Record<string, BucketConfig>>;
  /** The server's own file, with the tables of schema/storage.ts. */
  file: OpenedFile;
  dataDirectory: string;
  /** Signed URLs are signed, and cursors sealed, with keys derived from this. */
  secret: string;
  /** What signed URLs begin with; absent: the address that the request was sent to. */
  publicUrl?: string | undefined;
  clock: Clock;
  ids: Ids;
  logger: Logger;
}

/** Files in buckets: bytes under `<data>/storage`, or in a bucket's own object store; records in the server's file. */
export function createStorageArea(deps: StorageAreaDeps): StorageArea {
  const { clock, ids, logger } = deps;
  const directory = join(deps.dataDirectory, "storage");
  mkdirSync(directory, { recursive: true });
  const local = createLocalFiles(join(directory, "objects"));
  const staging = createLocalFiles(join(directory, "parts"));
  const thumbs = createThumbs({ directory: join(directory, "thumbs"), ids });
  const buckets = new Map(
    Object.entries(deps.buckets).map(([name, config]): [string, Bucket] => {
      const files = config.backend === undefined ? local : createS3Files(config.backend.s3);
      return [name, { name, config, files, maxFileBytes: config.maxFileSize ?? FILE_MAX_BYTES }];
    }),
  );

  const store = createStorageStore(deps.file);
  const cursors = createListCursors(deps.secret);
  const gates = createGates({ buckets, clock, logger });
  const life = createFileLife({ clock, ids, logger, onRemove: thumbs.remove });
  const service = createStorageService({ store, gates, life, clock });
  const signer = createUrlSigner({ secret: deps.secret, nowMs: clock.now });
  const signing = createSigning({ store, gates, service, signer, clock, ids });
  const uploads = createUploads({ store, gates, service, life, staging, clock, ids });
  const remote = [...buckets.values()].map(({ files }) => files).filter((files) => files !== local);
  const stopSweeps = startSweeps({ store, life, places: [local, staging, ...remote], staging, thumbs, clock, logger });
  const publicUrl = deps.publicUrl?.replace(/\/$/, "") ?? null;

  return {
    routes: (http) =>
      createStorageRoutes(http, { store, gates, life, clock, service, signing, uploads, thumbs, cursors, publicUrl }),
    accessor(bucket) {
      if (!buckets.has(bucket)) throw notFound(`There is no bucket "${bucket}"`);
      return createBucketAccessor({ service, store, gates, cursors }, bucket);
    },
    async stop() {
      await stopSweeps();
      await life.stop();
      await local.close();
      await staging.close();
    },
  };
}
