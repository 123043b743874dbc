import { Command } from "@commander-js/extra-typings";
import * as platformModule from "../../index.ts";
import { systemClock } from "../../kernel/clock.ts";
import { reasonOf } from "../../kernel/errors.ts";
import { systemIds } from "../../kernel/ids.ts";
import type { ClusterStatus } from "../cluster/node/operations.ts";
import type { PostgresConnection } from "../cluster/postgres/connection.ts";
import { loadConfig } from "../config/loading/load.ts";
import { environmentSecrets } from "../config/secrets/secrets.ts";
import { CommandError, UsageError } from "./errors.ts";
import { configOption, dataOption, isHttpUrl, option } from "./options.ts";
import { printAnswer } from "./output.ts";

const NONCE_BYTES = 18;

const statusCommand = new Command("status")
  .description("Prints the nodes, who owns what, and the log")
  .addOption(configOption)
  .addOption(dataOption)
  .option("--json", "As JSON")
  .action(async ({ config, json = false }) => {
    const { run } = await clusterOf(config);
    const { clusterStatus } = await import("../cluster/node/operations.ts");
    const status = await run((connection) => clusterStatus(connection, systemClock));
    await printAnswer(json ? JSON.stringify(status) : textOf(status));
  });

const moveCommand = new Command("move")
  .description("Moves what the owner owns to another node, and waits until it has it")
  .addOption(configOption)
  .addOption(dataOption)
  .addOption(option("--to <URL>", "The node that becomes the owner").makeOptionMandatory())
  .action(async ({ config, to }) => {
    const { run } = await clusterOf(config);
    const node = nodeOf(to, "--to");
    const { movedTo, ownerOf } = await import("../cluster/node/operations.ts");
    const { askOwner } = await import("../cluster/node/asking.ts");
    const secrets = environmentSecrets(process.env);
    const moved = await run(async (connection) => {
      const owner = await ownerOf(connection);
      if (owner === node) return null;
      if (owner === null) return "no node owns anything: one takes it as soon as it can";
      const refused = await askOwner(owner, secrets, `/move?to=${encodeURIComponent(node)}`);
      return refused ?? (await movedTo(connection, node, systemClock));
    });
    if (moved !== null) throw new CommandError(moved);
    await printAnswer(`${node} is the owner`);
  });

const leaveCommand = new Command("leave")
  .description("Takes a node out of the cluster whose server runs no more")
  .addOption(configOption)
  .addOption(dataOption)
  .addOption(option("--node <URL>", "The node; by default the config's"))
  .action(async ({ config, node: given }) => {
    const { cluster, run } = await clusterOf(config);
    const { leaveCluster } = await import("../cluster/node/operations.ts");
    const node = nodeOf(given ?? cluster.url, "--node");
    const problem = await run((connection) => leaveCluster(connection, node, systemClock));
    if (problem !== null) throw new CommandError(problem);
    await printAnswer(`${node} has left the cluster`);
  });

const acceptLossCommand = new Command("accept-loss")
  .description("Goes on after the log has lost what was acknowledged: that stays lost")
  .addOption(configOption)
  .addOption(dataOption)
  .addOption(option("--at <POSITION>", "The end of the log, as the status prints it").makeOptionMandatory())
  .action(async ({ config, at }) => {
    if (!/^\d{1,15}$/.test(at)) throw new UsageError(`--at must be a position, got "${at}"`);
    const { run } = await clusterOf(config);
    const { acceptLoss } = await import("../cluster/node/operations.ts");
    const problem = await run((connection) => acceptLoss(connection, Number(at)));
    if (problem !== null) throw new CommandError(problem);
    await printAnswer(`The cluster goes on from position ${at}`);
  });

export const clusterCommand = new Command("cluster")
  .description("Shows and operates a cluster")
  .addCommand(statusCommand)
  .addCommand(moveCommand)
  .addCommand(leaveCommand)
  .addCommand(acceptLossCommand);

/** Loads what the commands need. Errors: CommandError, the config has no cluster, or PostgreSQL does not answer. */
async function clusterOf(file: string) {
  const { config } = await loadConfig(file, platformModule);
  const { cluster } = config;
  if (cluster === undefined) throw new CommandError("the config has no cluster");
  const { PostgresConnection } = await import("../cluster/postgres/connection.ts");
  const run = async <T>(work: (connection: PostgresConnection) => Promise<T>): Promise<T> => {
    const nonce = (): string => systemIds.secret(NONCE_BYTES);
    const options = { url: cluster.postgres, applicationName: "platform cluster", nonce, closed() {} };
    try {
      const connection = await PostgresConnection.open(options);
      try {
        return await work(connection);
      } finally {
        connection.close();
      }
    } catch (cause) {
      throw new CommandError(`cluster.postgres: ${reasonOf(cause)}`);
    }
  };
  return { cluster, run };
}

function nodeOf(text: string, name: string): string {
  if (!isHttpUrl(text)) throw new UsageError(`${name} must be the URL of a node, got "${text}"`);
  return new URL(text).origin;
}

function textOf({ nodes, groups, log, lastCopyAt }: ClusterStatus): string {
  const lines = nodes.map(({ url, live, role, behind, version, config }) => {
    const state = live ? role : `${role}, not live`;
    return `${url}  ${state}  ${behind} behind  version ${version ?? "unknown"}  config ${config ?? "unknown"}`;
  });
  const owners = groups.map(({ name, owner, epoch }) => `${name}: ${owner ?? "no owner"}, epoch ${epoch}`);
  const end = `log: position ${log.position}, ${log.bytes} bytes, standbys "${log.standbyNames}"${log.stopped ? ", STOPPED" : ""}`;
  return [...lines, ...owners, end, `last copy: ${lastCopyAt ?? "none"}`].join("\n");
}
