import {
  configureSync,
  type FormattedValues,
  getAnsiColorFormatter,
  getConfig,
  getLogger,
  getTextFormatter,
  jsonLinesFormatter,
  type TextFormatter,
} from "@logtape/logtape";
import type { Logger } from "../kernel/logger.ts";
import { UsageError } from "./errors.ts";

const LINE_BREAK = /\n$/;

export type LogForm = "json" | "pretty";

/** undefined for undefined. Errors: UsageError. */
export function parseLogForm(text: string | undefined, name = "--log"): LogForm | undefined {
  if (text === undefined || text === "json" || text === "pretty") return text;
  throw new UsageError(`${name} must be json or pretty, got "${text}"`);
}

/** By default readable lines on a terminal, JSON lines otherwise. On standard error, as standard output is for answers. */
export function createLogger(form: LogForm = process.stderr.isTTY === true ? "pretty" : "json"): Logger {
  if (getConfig() === null) configureLogs(form);
  const logger = getLogger("platform");
  return {
    info: (message, facts) => logger.info(message, facts),
    warn: (message, facts) => logger.warn(message, facts),
    error: (message, facts) => logger.error(message, facts),
  };
}

function configureLogs(form: LogForm): void {
  const format = form === "pretty" ? readableFormat() : jsonLinesFormatter;
  configureSync({
    sinks: { stderr: (record) => void process.stderr.write(`${format(record).replace(LINE_BREAK, "")}\n`) },
    loggers: [
      { category: "platform", lowestLevel: "info", sinks: ["stderr"] },
      { category: ["logtape", "meta"], lowestLevel: "error", sinks: ["stderr"] },
    ],
  });
}

/** Colours are for terminals: a file or the journal would keep their escapes. */
function readableFormat(): TextFormatter {
  const options = {
    timestamp: "time",
    format: ({ timestamp, level, message, record }: FormattedValues): string =>
      `${timestamp} ${level} ${message}${readableFacts(record.properties)}`,
  } as const;
  return process.stderr.isTTY === true ? getAnsiColorFormatter(options) : getTextFormatter(options);
}

function readableFacts(facts: Record<string, unknown>): string {
  return Object.entries(facts)
    .map(([name, fact]) =>
      fact instanceof Error ? `\n${fact.stack ?? String(fact)}` : ` ${name}=${Bun.inspect(fact)}`,
    )
    .join("");
}
