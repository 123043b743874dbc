import {
  type FormattedValues,
  getAnsiColorFormatter,
  getTextFormatter,
  jsonLinesFormatter,
  type LogLevel,
  type LogRecord,
  type TextFormatter,
} from "@logtape/logtape";
import type { Logger } from "../../kernel/logger.ts";
import { errorOutput } from "./output.ts";

const LINE_BREAK = /\n$/;

export const LOG_FORMS = ["json", "pretty"] as const;
export type LogForm = (typeof LOG_FORMS)[number];

let format: TextFormatter | undefined;

/**
 * Creates a logger: by default readable lines on a terminal, JSON lines otherwise. It writes to standard error, as standard output
 * is for answers. The first call sets the form of all lines.
 */
export function createLogger(form: LogForm = process.stderr.isTTY === true ? "pretty" : "json"): Logger {
  format ??= form === "pretty" ? readableFormat() : jsonLinesFormatter;
  const at = (level: LogLevel) => (message: string, facts?: Record<string, unknown>) =>
    errorOutput.write(lineOf(level, message, facts ?? {}));
  const logger = { info: at("info"), warn: at("warning"), error: at("error") };
  errorOutput.onLost = (lines) =>
    logger.warn("lines of the log are lost, because standard error cannot be written", { lines });
  return logger;
}

/** Formats a line. LogTape's own loggers treat every message as a template whose braces name facts. */
function lineOf(level: LogLevel, message: string, facts: Record<string, unknown>): string {
  const record = { category: ["platform"], level, message: [message], rawMessage: message, timestamp: Date.now() };
  return lineOfRecord({ ...record, properties: facts }) ?? lineOfRecord({ ...record, properties: UNREADABLE }) ?? "\n";
}

const UNREADABLE = { facts: "cannot be read" };

/** Formats a record as a line; null: a getter of the facts throws. */
function lineOfRecord(record: LogRecord): string | null {
  try {
    return `${(format ?? jsonLinesFormatter)(record).replace(LINE_BREAK, "")}\n`;
  } catch {
    return null;
  }
}

/** Creates the readable format. Colours are for terminals: a file or the journal would retain their escapes. */
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
