import {
  configureSync,
  type FormattedValues,
  getAnsiColorFormatter,
  getConfig,
  getLogger,
  getTextFormatter,
  jsonLinesFormatter,
  type LogRecord,
  type Sink,
  type TextFormatter,
} from "@logtape/logtape";
import type { Logger } from "../kernel/logger.ts";
import { UsageError } from "./errors.ts";
import { LOG_WAITING_MAX_CHARACTERS } from "./limits.ts";

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
    sinks: { stderr: boundedSink((record) => `${format(record).replace(LINE_BREAK, "")}\n`) },
    loggers: [
      { category: "platform", lowestLevel: "info", sinks: ["stderr"] },
      { category: ["logtape", "meta"], lowestLevel: "error", sinks: ["stderr"] },
    ],
  });
}

/** A pipe that nobody reads must not fill the memory. [CL413] */
function boundedSink(format: (record: LogRecord) => string): Sink {
  let waiting = 0;
  let lost = 0;
  return (record) => {
    if (waiting > LOG_WAITING_MAX_CHARACTERS) {
      lost++;
      return;
    }
    if (lost > 0) {
      const lines = lost;
      lost = 0;
      getLogger("platform").warn("Lines of the log are lost, as nobody has read standard error", { lines });
    }
    const line = format(record);
    waiting += line.length;
    process.stderr.write(line, () => {
      waiting -= line.length;
    });
  };
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
