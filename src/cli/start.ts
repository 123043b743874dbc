import { loadConfig } from "../config/loading/load.ts";
import * as platformModule from "../index.ts";
import { systemClock } from "../kernel/clock.ts";
import { endsWithin, STOP_MAX_MS } from "../kernel/stop.ts";
import type { OpenPlatform } from "../platform/open.ts";
import { declareCommand } from "./command.ts";
import { createLogger } from "./logs.ts";
import { parsePort } from "./options.ts";
import { printAnswer, ReaderGone } from "./output.ts";
import { drillOf, serveOptions, startOptions } from "./serve-options.ts";
import { endOnRequest, stopSignal } from "./signals.ts";
import { plural } from "./transfer/amounts.ts";
import { CommandError } from "./usage-error.ts";

/** Warnings of the config that a start names one by one. */
const WARNINGS_LOGGED_MAX = 20;

export const startCommand = declareCommand({
  meta: { name: "start", description: "Serves what the config declares" },
  args: { ...serveOptions, ...startOptions },
  async run({ args }) {
    const port = parsePort(args.port);
    const logger = createLogger();
    // What a hook left unattended must not take the server down with it.
    process.on("unhandledRejection", (cause) => logger.error("a promise was rejected and nobody looked", { cause }));
    process.on("uncaughtException", (cause) => logger.error("an error was thrown and nobody caught it", { cause }));
    const isDrill = drillOf(args.drill, process.env);
    const loaded = endOnRequest();
    const { config, warnings } = await loadConfig(args.config, platformModule);
    loaded();
    const stopped = stopSignal();
    for (const { path, message } of warnings.slice(0, WARNINGS_LOGGED_MAX)) logger.warn(`config: ${path} ${message}`);
    if (warnings.length > WARNINGS_LOGGED_MAX) {
      logger.warn(`the config has ${plural(warnings.length, "warning")}: see "platform check"`);
    }
    // All areas at once: whoever mistyped an option, or a config, need not wait for them.
    const { openPlatform } = await import("../platform/open.ts");
    const { rehearseBesideServer } = await import("./rehearsal/beside-server.ts");
    let keyLine = "";
    let platform: OpenPlatform | null = null;
    let endRehearsal = () => {};
    try {
      platform = await openPlatform(config, {
        ...{ data: args.data, environment: process.env, isDrill, takeOver: args["take-over"], logger },
        onNewServiceKey(serviceKey) {
          keyLine = `\nroot service key: ${serviceKey}`;
        },
      });
      const { url } = await platform.listen({ host: args.host, port });
      await printAnswer(`platform listening on ${url}${keyLine}`).catch((cause: unknown) => {
        // A server is there for its clients: whether somebody reads its first lines does not end it.
        if (!(cause instanceof ReaderGone)) throw cause;
        logger.warn("nobody reads the standard output");
      });
      endRehearsal = rehearseBesideServer(config, args.data, logger);
      await stopped;
    } catch (cause) {
      // It is generated once and so must be shown once, also when something keeps the server from starting.
      if (keyLine !== "") await printAnswer(keyLine.trimStart());
      throw cause;
    } finally {
      endRehearsal();
      if (platform !== null) await stopInTime(platform);
    }
    return 0;
  },
});

/** Errors: after STOP_MAX_MS it is left as a crash would leave it, before whoever asked for the stop kills it. */
async function stopInTime(platform: OpenPlatform): Promise<void> {
  if (await endsWithin(platform.stop(), STOP_MAX_MS, systemClock)) return;
  throw new CommandError(`the stop took longer than ${STOP_MAX_MS} ms; what was answered is on disk`);
}
