import { configureSync, getAnsiColorFormatter, getConfig, getLogger, jsonLinesFormatter } from "@logtape/logtape";
import type { Logger } from "../kernel/logger.ts";

const LINE_BREAK = /\n$/;

/** Readable lines on a terminal, JSON lines otherwise. On standard error, as standard output is for answers. */
export function createLogger(): Logger {
  if (getConfig() === null) configureLogs(process.stderr.isTTY === true);
  const logger = getLogger("platform");
  return {
    info: (message, facts) => logger.info(message, facts),
    warn: (message, facts) => logger.warn(message, facts),
    error: (message, facts) => logger.error(message, facts),
  };
}

function configureLogs(isTerminal: boolean): void {
  const readable = getAnsiColorFormatter({
    timestamp: "time",
    format: ({ timestamp, level, message, record }) =>
      `${timestamp} ${level} ${message}${readableFacts(record.properties)}`,
  });
  const format = isTerminal ? readable : jsonLinesFormatter;
  configureSync({
    sinks: { stderr: (record) => void process.stderr.write(`${format(record).replace(LINE_BREAK, "")}\n`) },
    loggers: [
      { category: "platform", lowestLevel: "info", sinks: ["stderr"] },
      { category: ["logtape", "meta"], lowestLevel: "error", sinks: ["stderr"] },
    ],
  });
}

function readableFacts(facts: Record<string, unknown>): string {
  return Object.entries(facts)
    .map(([name, fact]) =>
      fact instanceof Error ? `\n${fact.stack ?? String(fact)}` : ` ${name}=${Bun.inspect(fact)}`,
    )
    .join("");
}
