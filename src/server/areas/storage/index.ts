import { mkdirSync } from "node:fs";
import { join } from "node:path";
import type { Clock } from "../../../kernel/clock.ts";
import { notFound } from "../../../kernel/errors.ts";
import type { Ids } from "../../../kernel/ids.ts";
import type { Logger } from "../../../kernel/logger.ts";
import { Scheduler } from "../../../kernel/time/scheduler.ts";
import type { Accounts } from "../../access/accounts.ts";
import type { ServiceKeys } from "../../access/keys/service-keys.ts";
import type { Lookups } from "../../access/lookups/lookups.ts";
import type { Principal } from "../../access/principal.ts";
import type { Principals } from "../../access/principals.ts";
import { COMPARE_FILES_JOB, type ComparedFiles, type FileReferences } from "../../access/record-files.ts";
import type { BucketAccessor } from "../../config/app/index.ts";
import type { BucketConfig, StorageConfig } from "../../config/types.ts";
import { type OpenedFile, RemovalHold } from "../../db/index.ts";
import type { StandingRights } from "../../sockets/standing-rights.ts";
import { FileLife } from "./contents/file-life.ts";
import { createLocalFiles } from "./contents/local-files.ts";
import { type ObjectStoresMode, openObjectStores } from "./contents/object-stores.ts";
import { Thumbs } from "./contents/thumbs.ts";
import { storageEndpoints } from "./endpoints/index.ts";
import { Gates } from "./gates.ts";
import { COMPARE_RETRIES, COMPARE_TIMEOUT_SECONDS, FILE_MAX_BYTES } from "./limits.ts";
import { createListCursors } from "./model/cursors.ts";
import type { Bucket, FileNotes, FileStore, SweptPlace } from "./model/types.ts";
import { createBucketAccessor } from "./service/accessor.ts";
import { exportedFiles } from "./service/exported.ts";
import { StorageService } from "./service/files.ts";
import { EndedUploads, Uploads } from "./service/multipart.ts";
import { RecordFileService } from "./service/record-files.ts";
import { Signing, UrlSigner } from "./service/signing.ts";
import { startSweeps } from "./service/sweep.ts";
import { openQuotas } from "./store/quotas.ts";
import { StorageStore } from "./store/store.ts";

export { countFilesOf, moveFilesOf } from "./store/holdings.ts";

export interface StorageAreaDeps {
  buckets: Readonly<Record<string, BucketConfig>>;
  /** system.db, with the tables of schema/storage.ts. */
  file: OpenedFile;
  notes: FileNotes;
  /** Called with the path of each content that is on the local disk. */
  onContent: (path: string) => void;
  dataDirectory: string;
  /** Keys for signed URLs and sealed cursors are derived from this. */
  secret: string;
  /** Looks up present users and service keys, for signed URLs. */
  account: Accounts["get"];
  serviceKey: ServiceKeys["named"];
  thumbs: StorageConfig["thumbs"];
  /** Use of the object stores of buckets. */
  objectStores: ObjectStoresMode;
  /** Origin of signed URLs; absent: the address that the request was sent to. */
  publicUrl?: string | undefined;
  /** Lookups in the context of rules. */
  lookups: Lookups;
  requirePresent: Principals["requirePresent"];
  /** Looks up which files records have. */
  references: () => FileReferences;
  /** Defines the job that removes files of records. */
  define(name: string, definition: CompareJob): void;
  /** Watches the lookups of rules while they are awaited. */
  rights: Pick<StandingRights, "begin">;
  clock: Clock;
  ids: Ids;
  logger: Logger;
}

/** The job that compares files with records, for the queue. */
interface CompareJob {
  run(job: { readonly data: unknown }): Promise<void>;
  retries: number;
  timeout: number;
  concurrency: number;
}

export type StorageArea = Awaited<ReturnType<typeof createStorageArea>>;

/**
 * Creates the storage area: bytes of files are in `<data>/storage` or in an object store of the bucket, their records in
 * system.db. Errors: PrefixTaken for a prefix that belongs to another data directory.
 */
export async function createStorageArea(deps: StorageAreaDeps) {
  const { clock, ids, logger } = deps;
  const directory = join(deps.dataDirectory, "storage");
  mkdirSync(directory, { recursive: true });
  const local = createLocalFiles(join(directory, "objects"), undefined, deps.onContent);
  const staging = createLocalFiles(join(directory, "parts"), undefined, deps.onContent);
  const thumbs = new Thumbs({ directory: join(directory, "thumbs"), config: deps.thumbs, ids, clock });
  const store = new StorageStore(deps.file, deps.notes, await openQuotas(deps.file, deps.buckets));
  const knows = (fileId: string): boolean => store.hasFile(fileId);
  const stores = await openObjectStores({ ...deps, knows });
  const buckets = new Map(
    Object.entries(deps.buckets).map(([name, config]): [string, Bucket] => {
      const remote = stores.of(config);
      const maxFileBytes = config.maxFileSize ?? FILE_MAX_BYTES;
      const isReadOnly = remote !== null && deps.objectStores.mode === "readOnly";
      return [name, { name, config, files: remote ?? local, isReadOnly, maxFileBytes }];
    }),
  );
  const scheduler = new Scheduler();
  const paces = () => scheduler.pace();
  const cursors = createListCursors(deps.secret);
  const gates = new Gates({ ...deps, buckets });
  const life = new FileLife({ clock, ids, logger, isNamed: knows, onRemove: (fileId) => thumbs.remove(fileId) });
  const service = new StorageService({ store, gates, life, clock, paces });
  const signer = new UrlSigner({ secret: deps.secret, nowMs: clock.now });
  const { account, serviceKey } = deps;
  const signing = new Signing({ store, gates, service, signer, account, serviceKey, clock, ids, paces });
  const ended = new EndedUploads({ store, life, staging, paces, logger });
  const uploads = new Uploads({ store, gates, service, life, ended, staging, paces, clock, ids });
  const hold = new RemovalHold(deps.dataDirectory);
  const isHeld = () => hold.isHeld();
  const recordFiles = new RecordFileService({ ...deps, store, gates, life, thumbs, isHeld });
  deps.define(COMPARE_FILES_JOB, {
    run({ data }) {
      // Written by the outbox of a file of tables.
      const { fileIds, ...place } = data as ComparedFiles;
      return recordFiles.compare(place, fileIds);
    },
    retries: COMPARE_RETRIES,
    timeout: COMPARE_TIMEOUT_SECONDS,
    concurrency: 1,
  });
  const places = [localPlace(local), localPlace(staging), ...stores.swept];
  const stopSweeps = startSweeps({ store, life, places, ended, recordFiles, thumbs, paces, clock, logger });
  const shared = { service, store, gates, cursors, paces };
  const publicUrl = deps.publicUrl?.replace(/\/$/, "") ?? null;

  return {
    endpoints: storageEndpoints({ ...shared, life, signing, uploads, thumbs, clock, publicUrl }),
    /** Errors: 404 for a bucket that is not declared. */
    accessor(principal: Principal, bucket: string): BucketAccessor {
      if (!buckets.has(bucket)) throw notFound(`There is no bucket "${bucket}"`);
      return createBucketAccessor(shared, principal, bucket);
    },
    recordFiles,
    /** Yields the files of a user's export, as far as the caller may read them. `origin`: of the request. */
    exportedFiles: (
      principal: Principal,
      { userId, origin }: { userId: string; origin: string },
      signal: AbortSignal,
    ) =>
      exportedFiles(
        { ...shared, signing, buckets: buckets.keys() },
        principal,
        { userId, origin: publicUrl ?? origin },
        signal,
      ),
    /** Stops the sweeps, and runs the delayed removals. */
    async stop(): Promise<void> {
      await Promise.all([recordFiles.stop(), stopSweeps(), ended.stop(), thumbs.stop()]);
      await life.stop();
      hold.close();
    },
  };
}

/** The data directory as a swept place. Its lock excludes other servers, so files that no record names can be removed at once. */
const localPlace = (files: FileStore): SweptPlace => ({ files, graceMs: 0, isOurs: async () => true });
