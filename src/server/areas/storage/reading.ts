import { join } from "node:path";
import type { Clock } from "../../../kernel/clock.ts";
import type { Logger } from "../../../kernel/logger.ts";
import type { Lookups } from "../../access/lookups/lookups.ts";
import type { Principals } from "../../access/principals.ts";
import type { SignerDeps } from "../../access/signers.ts";
import type { BucketConfig } from "../../config/types.ts";
import type { Readable } from "../../db/query.ts";
import type { Endpoint } from "../../http/endpoint.ts";
import { StandingRights } from "../../sockets/standing-rights.ts";
import { createKeptThumbs } from "./contents/kept-thumbs.ts";
import { createLocalReads } from "./contents/local-files.ts";
import { downloadEndpoints } from "./endpoints/contents.ts";
import { Gates } from "./gates.ts";
import { FILE_MAX_BYTES } from "./limits.ts";
import type { Bucket, FileStore } from "./model/types.ts";
import { FileFinding } from "./service/finding.ts";
import { UrlSigner, verifiedDownload } from "./service/signing.ts";
import { StorageReads } from "./store/store.ts";

/**
 * Opens the downloads in a process that does not write. `spoil` throws, and marks what is under way as unanswerable here: object
 * stores, thumbnails that are still to be made, and rules that look up what this process cannot.
 */
export function createStorageReading({
  spoil,
  ...deps
}: SignerDeps & {
  buckets: Readonly<Record<string, BucketConfig>>;
  dataDirectory: string;
  /** The file `system.db`. */
  file: Readable;
  secret: string;
  lookups: Lookups;
  requirePresent: Principals["requirePresent"];
  clock: Clock;
  logger: Logger;
  spoil: () => never;
}): readonly Endpoint[] {
  const directory = join(deps.dataDirectory, "storage");
  const others = { create: spoil, remove: spoil, ids: spoil };
  const local: FileStore = { ...createLocalReads(join(directory, "objects")), ...others };
  const remote: FileStore = { body: spoil, localPath: spoil, blob: spoil, ...others };
  const buckets = new Map(
    Object.entries(deps.buckets).map(([name, config]): [string, Bucket] => {
      const files = config.backend === undefined ? local : remote;
      return [name, { name, config, files, isReadOnly: true, maxFileBytes: FILE_MAX_BYTES }];
    }),
  );
  const gates = new Gates({ ...deps, buckets, rights: new StandingRights(deps) });
  const service = new FileFinding({ store: new StorageReads(deps.file), gates });
  const signer = new UrlSigner({ secret: deps.secret, nowMs: deps.clock.now });
  return downloadEndpoints({
    service,
    signing: {
      verifyDownload: (token, bucket, key) => verifiedDownload({ ...deps, signer }, token, { bucket, key }),
    },
    thumbs: createKeptThumbs(join(directory, "thumbs"), spoil),
  });
}
