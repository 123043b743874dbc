import type { JsonValue } from "../../../kernel/json/json.ts";
import { LOG_LEVELS, type LogLevel, type LogLine } from "../../../kernel/observing/log-lines.ts";
import { nextTurn } from "../../../kernel/time/scheduler.ts";
import { LINES_PER_TURN } from "./limits.ts";

/** Which lines are wanted. */
export interface LogFilter {
  /** This level and those above it. */
  level: LogLevel;
  /** In lower case; a part of the message or the facts. Empty: any. */
  text: string;
}

/** A line as it is answered. */
export interface ShownLine {
  /** ISO 8601. */
  at: string;
  level: LogLevel;
  message: string;
  facts: JsonValue;
}

export const filterOf = (level: LogLevel = "info", q = ""): LogFilter => ({ level, text: q.toLowerCase() });

export function isWanted({ level, message, facts }: LogLine, filter: LogFilter): boolean {
  if (LOG_LEVELS.indexOf(level) < LOG_LEVELS.indexOf(filter.level)) return false;
  const { text } = filter;
  return text === "" || message.toLowerCase().includes(text) || facts?.toLowerCase().includes(text) === true;
}

/** Newest first, at most `limit`. Over several turns of the event loop, as lines may have megabytes together. */
export async function search(lines: readonly LogLine[], filter: LogFilter, limit: number): Promise<LogLine[]> {
  const found: LogLine[] = [];
  let looked = 0;
  for (const line of lines.toReversed()) {
    if (found.length === limit) break;
    if (isWanted(line, filter)) found.push(line);
    if (++looked % LINES_PER_TURN === 0) await nextTurn();
  }
  return found;
}

export const shownLine = ({ at, level, message, facts }: LogLine): ShownLine => ({
  at: new Date(at).toISOString(),
  level,
  message,
  facts: facts === null ? null : JSON.parse(facts),
});
