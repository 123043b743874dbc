import type { Clock } from "../../../../kernel/clock.ts";
import type { Ids } from "../../../../kernel/ids.ts";
import type { Logger } from "../../../../kernel/logger.ts";
import type { BucketConfig, ObjectStore } from "../../../config/types.ts";
import { ownerIdOf } from "../../../disk/owner-id.ts";
import { CLAIM_TIMEOUT_MS, SWEEP_REMOTE_GRACE_MS } from "../limits.ts";
import type { FileStore } from "../model/types.ts";
import { type OwnedFiles, ownFiles, PrefixTaken, readOnlyFiles } from "./owned-files.ts";
import { createS3Files } from "./s3-files.ts";
import type { SweptPlace } from "../service/sweep.ts";

/** `own`: the stores are marked as this data directory's, written and swept. `readOnly`: for a drill. */
export type ObjectStoresMode = { mode: "own"; takeOver: boolean } | { mode: "readOnly" };

export interface ObjectStores {
  /** null: the files of the bucket are in the data directory. */
  of(bucket: BucketConfig): FileStore | null;
  readonly swept: readonly SweptPlace[];
}

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

/** Buckets with the same prefix share a store. A store that does not answer is claimed later. Errors: PrefixTaken. */
export async function openObjectStores(deps: Deps): Promise<ObjectStores> {
  const { objectStores, clock, logger } = deps;
  const opened = new Map<string, FileStore>();
  const owned: OwnedFiles[] = [];
  const nameOf = ({ backend }: BucketConfig): string | null => (backend === undefined ? null : addressOf(backend.s3));
  for (const bucket of Object.values(deps.buckets)) {
    const name = nameOf(bucket);
    if (bucket.backend === undefined || name === null || opened.has(name)) continue;
    const files = createS3Files(bucket.backend.s3);
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
    of(bucket) {
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
    logger.error("an object store does not answer; it is asked again before the first write", { cause });
}
