import { rm } from "node:fs/promises";
import { join } from "node:path";
import { systemClock } from "../../../kernel/clock.ts";
import { reasonOf } from "../../../kernel/errors.ts";
import { systemIds } from "../../../kernel/ids.ts";
import { SECOND_MS } from "../../../kernel/time/duration.ts";
import { endsWithin } from "../../../kernel/time/stop.ts";
import { requireArchive } from "../../areas/backup/continuous/restore/restore.ts";
import { openStore, type Store } from "../../areas/backup/continuous/store/store.ts";
import { scanFiles } from "../../areas/backup/layout.ts";
import { BackupError } from "../../areas/backup/types.ts";
import { rowOf } from "../../cluster/follower/followed-file.ts";
import { CLUSTER_FOLDER, FollowerFiles } from "../../cluster/follower/follower-files.ts";
import type { FollowedFacts } from "../../cluster/follower/follower-state.ts";
import { endOf, entriesIn } from "../../cluster/follower/log-source.ts";
import { placeOfCopies } from "../../cluster/objects/stored-place.ts";
import { PostgresConnection } from "../../cluster/postgres/connection.ts";
import type { Place } from "../../cluster/protocol/statements.ts";
import type { ClusterConfig } from "../../config/types.ts";

const NONCE_BYTES = 18;
/** The time within which what was read of the log has to be applied. */
const SETTLED_MAX_MS = 60 * SECOND_MS;

const connectionOf = ({ postgres }: ClusterConfig) => ({
  url: postgres,
  applicationName: "platform restore",
  nonce: () => systemIds.secret(NONCE_BYTES),
});

/** Opens the object store of a cluster, whose id PostgreSQL has. Errors: PostgreSQL does not answer, or has no cluster. */
export async function storeOfCluster(cluster: ClusterConfig): Promise<Store> {
  const connection = await PostgresConnection.open({ ...connectionOf(cluster), closed() {} });
  try {
    const { rows } = await connection.run("SELECT id FROM platform.cluster");
    const id = new TextDecoder().decode(rows[0]?.[0] ?? new Uint8Array(0));
    if (id === "") throw new BackupError("cluster.postgres has no cluster");
    return openStore(placeOfCopies(cluster.objects, id), systemClock);
  } finally {
    connection.close();
  }
}

/** State of an object store before a restore from it. */
export interface StoredBefore {
  /** A place of the log that everything has reached which is restored from now on. */
  place: Place;
  /** Ids of the files, by their paths in the data directory. */
  ids: ReadonlyMap<string, string>;
}

/** Looks at an object store before a restore. Errors: BackupError, it is not complete yet. */
export async function lookAtStore(store: Store): Promise<StoredBefore> {
  const { manifest } = await requireArchive(store);
  const place = manifest.covered?.log;
  if (place === undefined) throw new BackupError(`${store.name} is not complete yet: it has no place of the log`);
  const present = manifest.files.filter(({ removed }) => removed === null);
  return { place, ids: new Map(present.map(({ id, path }) => [`${path}.db`, id])) };
}

/** Leads a restored data directory on, up to the end of the log. Errors: the log has not what follows. */
export async function followLog(cluster: ClusterConfig, dataDirectory: string, before: StoredBefore): Promise<void> {
  const { place } = before;
  const failures = new Map<string, unknown>();
  const files = new FollowerFiles(
    {
      directory: dataDirectory,
      clock: systemClock,
      ids: systemIds,
      onVisible() {},
      onClosing() {},
      onFailure: (path, cause) => void failures.set(path, cause),
      source: null,
    },
    { wasOwner: false },
  );
  try {
    files.takeOver(place, factsIn(dataDirectory, before));
    const options = connectionOf(cluster);
    const upTo = await endOf(options);
    for await (const entry of entriesIn(options, null, { after: place, upTo })) {
      files.apply([entry]);
      if (!files.hasRoom) await endsWithin(files.settled(), SETTLED_MAX_MS, systemClock);
    }
    if (!(await endsWithin(files.settled(), SETTLED_MAX_MS, systemClock)))
      throw new BackupError(`the log does not go on from what was restored: ${reasonOf([...failures.values()][0])}`);
  } finally {
    await files.close();
  }
  await rm(join(dataDirectory, CLUSTER_FOLDER), { recursive: true, force: true });
}

function* factsIn(dataDirectory: string, { ids }: StoredBefore): Generator<FollowedFacts> {
  for (const { path, kind } of scanFiles(dataDirectory)) {
    if (kind !== "database") continue;
    const { file, number, nonce } = rowOf(join(dataDirectory, path));
    const id = file === "" ? (ids.get(path) ?? "") : file;
    if (id !== "") yield { id, path, number, nonce };
  }
}
