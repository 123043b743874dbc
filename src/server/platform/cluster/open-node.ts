import { join } from "node:path";
import { systemClock } from "../../../kernel/clock.ts";
import { systemIds } from "../../../kernel/ids.ts";
import { type Logger, silentLogger } from "../../../kernel/logger.ts";
import { VERSION } from "../../../kernel/version.ts";
import { nodeCredentials } from "../../cluster/node/credentials.ts";
import { prepare } from "../../cluster/node/preparation.ts";
import { environmentSecrets } from "../../config/secrets/secrets.ts";
import type { ClusterConfig, PlatformConfig } from "../../config/types.ts";
import { openDirectory } from "../open.ts";
import { ClusterServer } from "./cluster-server.ts";

export interface OpenNodeOptions {
  data: string;
  environment: Readonly<Record<string, string | undefined>>;
  /** The hash of the config, which is the same on all nodes with the same one. */
  configHash: string;
  logger?: Logger;
}

/**
 * Opens a node of the config's cluster on a data directory: as a follower, until the group is vacant. Errors: a secret is not set, or is
 * another one than the cluster's; PostgreSQL does not answer; the directory is in use.
 */
export async function openNode(
  config: PlatformConfig & { cluster: ClusterConfig },
  { data, environment, configHash, logger = silentLogger }: OpenNodeOptions,
): Promise<ClusterServer> {
  const secrets = environmentSecrets(environment);
  const { cluster } = config;
  const { dataDirectory, lock } = openDirectory(data);
  try {
    const node = new URL(cluster.url).origin;
    const prepared = await prepare({
      postgres: cluster.postgres,
      durability: cluster.durability ?? "standby",
      secrets,
      facts: { node, version: VERSION, config: configHash },
      clock: systemClock,
      ids: systemIds,
      onWait: (reason) => logger.warn("cluster: PostgreSQL does not answer yet", { reason }),
    });
    return await ClusterServer.open(config, {
      node,
      cluster: prepared.cluster,
      configHash,
      dataDirectory,
      lock,
      secrets,
      credentials: nodeCredentials(secrets),
      noted: join(dataDirectory, "cluster", "noted"),
      logger,
    });
  } catch (cause) {
    lock.release();
    throw cause;
  }
}
