import { rmSync } from "node:fs";
import { dirname } from "node:path";
import { Command } from "@commander-js/extra-typings";
import * as platformModule from "../../../index.ts";
import { reasonOf } from "../../../kernel/errors.ts";
import { loadConfig } from "../../config/loading/load.ts";
import { WORKER_COMMAND } from "../../platform/workers/command.ts";
import type { FromWorker, ToWorker, WorkerOrder } from "../../platform/workers/messages.ts";
import { createLogger } from "../logs.ts";
import { configOption } from "../options.ts";
import { hashOfConfig } from "./config-hash.ts";
import { logOption } from "./serve-options.ts";
import { redirectConsole } from "./start.ts";

/** Runs a worker of the server that has started this process, and ends with it. */
export const workerCommand = new Command(WORKER_COMMAND)
  .description("Answers requests beside a server")
  .addOption(configOption)
  .addOption(logOption)
  .action(async ({ config: file, log }) => {
    // A signal to the process group is for the server, which stops its workers itself.
    for (const signal of ["SIGTERM", "SIGINT"] as const) process.on(signal, () => {});
    const logger = createLogger(log);
    process.on("unhandledRejection", (cause) => logger.error("unhandled promise rejection", { cause }));
    process.on("uncaughtException", (cause) => logger.error("uncaught exception", { cause }));
    const output = redirectConsole(logger);
    const listeners: ((message: ToWorker) => void)[] = [];
    const send = (message: FromWorker): void => void process.send?.(message);
    const ordered = new Promise<WorkerOrder>((resolve) => {
      process.on("message", (message: ToWorker) => {
        if (message.kind === "begin") resolve(message.order);
        for (const listener of listeners) listener(message);
      });
    });
    send({ kind: "waiting" });
    try {
      const order = await ordered;
      // The server has ended: nothing more is answered, and nobody else removes what the processes have shared.
      process.on("disconnect", () => {
        rmSync(dirname(order.page), { recursive: true, force: true });
        process.exit(1);
      });
      const { config } = await loadConfig(file, platformModule);
      if (hashOfConfig(file) !== order.configHash)
        throw new Error("the config has changed since the server has started");
      const { runWorker } = await import("../../platform/workers/worker.ts");
      Bun.unsafe.setJITPolicy(1);
      await runWorker(config, order, { send, listen: (onMessage) => void listeners.push(onMessage) });
    } catch (cause) {
      send({ kind: "failed", message: reasonOf(cause) });
    }
    await output.flush();
  });
