import type { Clock } from "../../../../kernel/clock.ts";
import { AppError } from "../../../../kernel/errors.ts";
import type { Ids } from "../../../../kernel/ids.ts";
import type { Logger } from "../../../../kernel/logger.ts";
import type { BucketConfig, ObjectStore } from "../../../config/types.ts";
import { ownerIdOf } from "../../../disk/owner-id.ts";
import { describeOwner, markerText, type Owner, parseMarker } from "../../../disk/owner-marker.ts";
import { storeFailed } from "../../../http/bodies/remote-body.ts";
import { CLAIM_TIMEOUT_MS, SWEEP_REMOTE_GRACE_MS } from "../limits.ts";
import type { FileStore, RemoteFiles } from "../model/types.ts";
import { createS3Files } from "./s3-files.ts";

/** Use of object stores. `own`: they are marked as this data directory's, written and swept. `readOnly`: for a drill. */
export type ObjectStoresMode = { mode: "own"; takeOver: boolean } | { mode: "readOnly" };

interface Deps {
  buckets: Readonly<Record<string, BucketConfig>>;
  objectStores: ObjectStoresMode;
  dataDirectory: string;
  /** Whether a record names the file. */
  knows: (fileId: string) => boolean;
  clock: Clock;
  ids: Ids;
  logger: Logger;
}

/**
 * Opens the object stores of all buckets. Buckets with the same prefix share a store. A store that does not respond is
 * claimed later. Errors: PrefixTaken.
 */
export async function openObjectStores(deps: Deps) {
  const { objectStores, clock, logger } = deps;
  const opened = new Map<string, FileStore>();
  const owned: OwnedFiles[] = [];
  const nameOf = ({ backend }: BucketConfig): string | null => (backend === undefined ? null : addressOf(backend.s3));
  for (const bucket of Object.values(deps.buckets)) {
    const name = nameOf(bucket);
    if (bucket.backend === undefined || name === null || opened.has(name)) continue;
    const files = createS3Files(bucket.backend.s3, clock);
    if (objectStores.mode === "readOnly") {
      opened.set(name, readOnlyFiles(files));
      continue;
    }
    const owner = { id: ownerIdOf(deps.dataDirectory, deps.ids), directory: deps.dataDirectory };
    const own = ownFiles(files, { owner, clock, logger, knows: deps.knows });
    opened.set(name, own);
    owned.push(own);
  }
  if (objectStores.mode === "own") {
    await Promise.all(owned.map((files) => claimAtStart(files, objectStores.takeOver, { clock, logger })));
  }
  return {
    /** Returns the object store of the bucket; null when its files are in the data directory. */
    of(bucket: BucketConfig): FileStore | null {
      const name = nameOf(bucket);
      return name === null ? null : (opened.get(name) ?? null);
    },
    swept: owned.map((files) => ({ files, graceMs: SWEEP_REMOTE_GRACE_MS, isOurs: files.isOurs })),
  };
}

const addressOf = ({ endpoint, bucket, prefix = "", accessKeyId }: ObjectStore): string =>
  JSON.stringify([endpoint, bucket, prefix, accessKeyId]);

async function claimAtStart(
  files: OwnedFiles,
  takeOver: boolean,
  { clock, logger }: Pick<Deps, "clock" | "logger">,
): Promise<void> {
  const { promise: timeout, resolve } = Promise.withResolvers<"timeout">();
  const cancel = clock.after(CLAIM_TIMEOUT_MS, () => resolve("timeout"));
  const claim = files.claim({ takeOver }).then(
    () => null,
    (cause: unknown) => cause,
  );
  const cause = await Promise.race([claim, timeout]);
  cancel();
  if (cause instanceof PrefixTaken) throw cause;
  if (cause !== null)
    logger.error("storage: an object store does not answer; it is tried again before the first write", { cause });
}

/** Thrown when the prefix belongs to another data directory. The message says what to do. */
class PrefixTaken extends Error {}

export interface OwnedFiles extends FileStore {
  /**
   * Marks the prefix as this data directory's, unless it is already. `takeOver` replaces the marker of another data
   * directory. Errors: PrefixTaken; 503 when the store does not respond.
   */
  claim(options: { takeOver: boolean }): Promise<void>;
  /**
   * Whether the prefix still belongs to this data directory. Queries the store, as another one may have taken it over.
   * Errors: 503.
   */
  isOurs(): Promise<boolean>;
}

/**
 * Stores files under a prefix that belongs to one data directory: the sweep deletes files that its own database does not
 * know. The prefix is claimed before the first write or deletion there, even when the store did not respond at start.
 */
function ownFiles(
  files: RemoteFiles,
  deps: { owner: Owner; clock: Clock; logger: Logger; knows: (fileId: string) => boolean },
): OwnedFiles {
  const { owner, clock, logger, knows } = deps;
  let isClaimed = false;

  const claim = async (takeOver: boolean): Promise<void> => {
    const present = parseMarker(await files.readMarker());
    if (present?.owner === owner.id) {
      isClaimed = true;
      return;
    }
    if (present !== null && !takeOver) throw taken(files.name, `belongs to ${describeOwner(present)}`);
    if (present === null && !takeOver && (await holdsOthers(files, knows))) {
      throw taken(files.name, "holds files that this data directory does not know");
    }
    await files.writeMarker(markerText(owner, clock));
    // When two servers claim it at once, the later one wins: the store knows which.
    const written = parseMarker(await files.readMarker());
    if (written?.owner !== owner.id)
      throw taken(files.name, `belongs to ${written === null ? "no data directory yet" : describeOwner(written)}`);
    if (present !== null)
      logger.warn("storage: an object store was taken over", { store: files.name, from: describeOwner(present) });
    isClaimed = true;
  };
  const require = async (): Promise<void> => {
    try {
      await claim(false);
    } catch (cause) {
      if (!(cause instanceof PrefixTaken)) throw cause;
      logger.error(cause.message);
      throw storeFailed(cause);
    }
  };

  return {
    ...files,
    async create(fileId) {
      if (!isClaimed) await require();
      return files.create(fileId);
    },
    async remove(fileId) {
      if (!isClaimed) await require();
      return files.remove(fileId);
    },
    claim: ({ takeOver }) => claim(takeOver),
    async isOurs() {
      isClaimed = parseMarker(await files.readMarker())?.owner === owner.id;
      return isClaimed;
    },
  };
}

/** Returns a read-only view of the files, for a drill. Errors: 503 on every write or deletion. */
function readOnlyFiles(files: RemoteFiles): FileStore {
  const refuse = async (): Promise<never> => {
    throw readOnly(files.name);
  };
  return { ...files, create: refuse, remove: refuse };
}

export const readOnly = (name: string): AppError =>
  new AppError(503, `This server runs as a drill: ${name} is read only`);

/**
 * Whether the records know none of the first files found under the prefix: it then belongs to an early version, which wrote
 * no marker, with another database.
 */
async function holdsOthers(files: FileStore, knows: (fileId: string) => boolean): Promise<boolean> {
  for await (const some of files.ids()) {
    if (some.length > 0) return !some.some(({ fileId }) => knows(fileId));
  }
  return false;
}

const taken = (name: string, state: string): PrefixTaken =>
  new PrefixTaken(
    `${name} ${state}. Two servers with one prefix would delete each other's files. To look at a restored copy, start it with --drill. To take the prefix over, when no other server uses it, start once with --take-over.`,
  );
