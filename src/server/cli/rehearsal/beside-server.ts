import { existsSync } from "node:fs";
import { join, resolve } from "node:path";
import { Readable } from "node:stream";
import type { Logger } from "../../../kernel/logger.ts";
import { ownCommand } from "../../../kernel/process/own-command.ts";
import { declaredNamespaces } from "../../areas/tables/model/model.ts";
import type { PlatformConfig } from "../../config/types.ts";
import type { RehearsalJob } from "../../db/index.ts";
import { LOGGED_INSTANCES_MAX, SERVER_COPY_MAX_BYTES } from "../limits.ts";
import { plural } from "../output.ts";
import { REHEARSAL_JOB_COMMAND, type RehearsalLine } from "./protocol.ts";

/** Returns the directory of `NAME.db` and `NAME/INSTANCE.db`. */
export const databasesOf = (dataDirectory: string): string => join(resolve(dataDirectory), "databases");

/**
 * Tries the declared schema on every instance, in a process with a lower priority than the server, and logs the instances that do
 * not fit. Static files are already open. The returned function stops it.
 */
export function rehearseBesideServer(config: PlatformConfig, dataDirectory: string, logger: Logger): () => void {
  const directory = databasesOf(dataDirectory);
  const namespaces = declaredNamespaces(config.databases ?? {}).filter(
    ({ name, isDynamic }) => isDynamic && existsSync(join(directory, name)),
  );
  if (namespaces.length === 0) return () => {};
  const job: RehearsalJob = { directory, namespaces, copyMaxBytes: SERVER_COPY_MAX_BYTES, skipsWals: true };
  const child = Bun.spawn([...ownCommand(), REHEARSAL_JOB_COMMAND], {
    // The process ends with the server, even when the server is killed.
    env: { ...process.env, BUN_FEATURE_FLAG_NO_ORPHANS: "1" },
    stdin: Buffer.from(JSON.stringify(job)),
    stdout: "pipe",
    stderr: "ignore",
  });
  let isStopped = false;
  const log = async (): Promise<void> => {
    for await (const line of linesOf(child.stdout)) logLine(JSON.parse(line), logger);
    const code = await child.exited;
    if (code !== 0 && !isStopped) logger.warn("The schema was not tried on all instances", { code });
  };
  void log().catch((cause: unknown) => logger.warn("The schema was not tried on all instances", { cause }));
  return () => {
    isStopped = true;
    child.kill("SIGKILL");
  };
}

async function* linesOf(stream: ReadableStream<Uint8Array>): AsyncIterable<string> {
  // Loaded with the first process: most starts have none.
  const { createInterface } = await import("node:readline");
  // Bun's stream is compatible with Node's type.
  yield* createInterface({ input: Readable.fromWeb(stream as Parameters<typeof Readable.fromWeb>[0]) });
}

function logLine(line: RehearsalLine, logger: Logger): void {
  if ("file" in line) {
    const { file } = line;
    const place = `databases.${file.namespace}: the instance "${file.instanceId}"`;
    if (file.state === "unfit") {
      logger.error(`${place} does not fit the config; its requests are answered with 503`, { problems: file.problems });
    } else if (file.state === "untried") logger.warn(`${place} was not tried`, { reason: file.reason });
    return;
  }
  const { looked, unfit, untried } = line;
  if (unfit > 0) {
    logger.error(
      `${unfit} of ${plural(looked, "instance")} do not fit the config; "platform check --data" names the problems of all`,
    );
  } else if (untried > LOGGED_INSTANCES_MAX) logger.warn(`${untried} of ${plural(looked, "instance")} were not tried`);
}
