import { Console } from "node:console";
import { Writable } from "node:stream";
import { Command } from "@commander-js/extra-typings";
import * as platformModule from "../../../index.ts";
import { systemClock } from "../../../kernel/clock.ts";
import { systemIds } from "../../../kernel/ids.ts";
import { STOP_MAX_MS } from "../../../kernel/limits.ts";
import type { Logger } from "../../../kernel/logger.ts";
import { endsWithin } from "../../../kernel/time/stop.ts";
import { linkAt, noteAddress } from "../../areas/admin/links.ts";
import { loadConfig } from "../../config/loading/load.ts";
import { ownProduct } from "../../config/loading/product.ts";
import type { PlatformConfig } from "../../config/types.ts";
import type { OpenPlatform } from "../../platform/open.ts";
import { CommandError, UsageError } from "../errors.ts";
import { WARNINGS_LOGGED_MAX } from "../limits.ts";
import { createLogger } from "../logs.ts";
import { configOption, dataOption } from "../options.ts";
import { errorOutput, plural, printNote } from "../output.ts";
import { StandardOutput } from "../standard-output.ts";
import { clusterHashOf, workersOf } from "./config-hash.ts";
import { drillOf, hostOption, logOption, portOption } from "./serve-options.ts";
import { endOnRequest, isOfDev, stopSignal, takeMcpKey } from "./signals.ts";

export const startCommand = new Command("start")
  .description("Starts the server")
  .addOption(configOption)
  .addOption(dataOption)
  .addOption(hostOption)
  .addOption(portOption)
  .addOption(logOption)
  .option("--drill", "Serve a restored copy: change nothing outside its data directory, and send nothing")
  .option(
    "--take-over",
    "Take over object stores and the place of backups from another data directory that no server uses any more",
  )
  .action(async ({ config: file, data, host, port, log, drill = false, takeOver = false }) => {
    const logger = createLogger(log);
    // An error that a hook does not handle must not end the server.
    process.on("unhandledRejection", (cause) => logger.error("unhandled promise rejection", { cause }));
    process.on("uncaughtException", (cause) => logger.error("uncaught exception", { cause }));
    const output = redirectConsole(logger);
    const isDrill = drillOf(drill, process.env);
    const loaded = endOnRequest();
    const beganAt = Date.now();
    const isDevelopment = isOfDev();
    const mcpKey = takeMcpKey();
    const { config, warnings } = await loadConfig(file, platformModule).catch(async (cause: unknown) => {
      if (isDevelopment) await (await import("../rehearsal/preview.ts")).putBackEdit(file, data, cause);
      throw cause;
    });
    loaded();
    const stopped = stopSignal();
    for (const { path, message } of warnings.slice(0, WARNINGS_LOGGED_MAX)) logger.warn(`config: ${path} ${message}`);
    if (warnings.length > WARNINGS_LOGGED_MAX) {
      logger.warn(`the config has ${plural(warnings.length, "warning")}: see "platform check"`);
    }
    // Loaded after the checks: a wrong option or config is reported without loading all areas.
    const { openPlatform } = await import("../../platform/open.ts");
    const openNode: typeof import("../../platform/cluster/open-node.ts").openNode = async (...asked) =>
      (await import("../../platform/cluster/open-node.ts")).openNode(...asked);
    const { rehearseBesideServer } = await import("../rehearsal/beside-server.ts");
    const { configFileOf, noteStart, putBackEdit } = await import("../rehearsal/preview.ts");
    let keyLine = "";
    let platform: Pick<OpenPlatform, "listen" | "lost" | "stop"> | null = null;
    let endRehearsal = () => {};
    try {
      const options = { data, environment: process.env, logger, takeOver };
      const { cluster } = config;
      if (cluster !== undefined && isDrill)
        throw new UsageError("--drill cannot be a node: leave `cluster` out of its config");
      platform =
        cluster === undefined
          ? await openPlatform(config, {
              ...options,
              isDrill,
              isDevelopment,
              development: mcpKey === null ? null : { key: mcpKey },
              configFile: ownProduct() === null ? configFileOf(file, data, isDevelopment) : null,
              workers: workersOf(config, { file, log, beganAt }),
              onNewServiceKey(serviceKey) {
                keyLine = `\nroot service key: ${serviceKey}`;
              },
            })
          : await openNode({ ...config, cluster }, { ...options, configHash: clusterHashOf(file) });
      const { url } = await platform.listen({ host, port });
      const address = (config.server?.publicUrl ?? url).replace(/\/$/, "");
      const link = config.admin !== false && process.stdout.isTTY ? dashboardLine(address, data) : "";
      // The server continues even if this output fails.
      const mcpLine =
        mcpKey === null || config.mcp === false ? "" : `\nmcp ${url.replace(/\/$/, "")}/mcp key ${mcpKey}`;
      output.write(`platform listening on ${url}${keyLine}${mcpLine}${link}\n`);
      if (config.admin !== false) noteAddress(data, address);
      if (isDevelopment) noteStart(file, data);
      // Code ran once so far (scripts/build.ts); from now on compiling it pays off.
      Bun.unsafe.setJITPolicy(1);
      endRehearsal = rehearseBesideServer(config, data, logger);
      const isLost = await Promise.race([stopped.then(() => false), platform.lost.then(() => true)]);
      if (isLost)
        throw new CommandError(
          cluster === undefined
            ? `${data} is now another server's data directory`
            : "this node cannot go on: see the log",
        );
    } catch (cause) {
      // A generated key is shown once, also when the start fails.
      if (keyLine !== "") output.write(`${keyLine.trimStart()}\n`);
      if (platform === null && isDevelopment) {
        await reportData(config, data);
        await putBackEdit(file, data, cause);
      }
      throw cause;
    } finally {
      endRehearsal();
      if (platform !== null) await stopInTime(platform);
      await output.flush();
    }
  });

/** Returns a line with a link that signs in to the dashboard. */
const dashboardLine = (address: string, dataDirectory: string): string =>
  `\ndashboard: ${linkAt(address, dataDirectory, { ids: systemIds })}\n           works once, within ten minutes`;

/** Reports all files that do not fit the config; the error names only the first. */
async function reportData(config: PlatformConfig, dataDirectory: string): Promise<void> {
  const { rehearseData, unfitText } = await import("../rehearsal/report.ts");
  const report = rehearseData(config, dataDirectory);
  if (report.unfit > 0) await printNote(unfitText(report, dataDirectory));
}

/**
 * Stops the platform. Errors: the stop has not ended after STOP_MAX_MS. The process then ends as in a crash, before a container
 * runtime kills it.
 */
async function stopInTime(platform: Pick<OpenPlatform, "stop">): Promise<void> {
  if (await endsWithin(platform.stop(), STOP_MAX_MS, systemClock)) return;
  throw new CommandError(`the stop took longer than ${STOP_MAX_MS} ms; what was answered is on disk`);
}

/** Redirects `console` of a config's code to the log: Bun's own blocks the whole server until standard output is read. */
export function redirectConsole(logger: Logger): StandardOutput {
  const output = new StandardOutput(1);
  output.onLost = (lines) => logger.warn("lines of standard output are lost, because it cannot be written", { lines });
  const redirected = new Console({
    stdout: writableOf(output),
    stderr: writableOf(errorOutput),
    colorMode: process.stdout.isTTY === true && process.env["NO_COLOR"] === undefined,
  });
  Object.assign(console, redirected);
  return output;
}

const writableOf = (output: StandardOutput): Writable =>
  new Writable({
    decodeStrings: false,
    write(text: string, _encoding, written) {
      output.write(text);
      written();
    },
  });
