import type { JsonValue } from "../../../kernel/json/json.ts";
import { PROBLEMS_SHOWN_MAX } from "../limits.ts";

/** What a check found: figures, and what is wrong in words. */
export type Finding = { ok: boolean; problems: string[] } & { [figure: string]: JsonValue };

export interface Patient {
  dataDirectory: string;
  /** Whether a server uses the directory now. */
  isRunning: boolean;
}

/** Not more than can be read. */
export function finding(problems: readonly string[], figures: Record<string, JsonValue> = {}): Finding {
  const shown = problems.slice(0, PROBLEMS_SHOWN_MAX);
  if (problems.length > shown.length) shown.push(`and ${problems.length - shown.length} more`);
  return { ...figures, ok: problems.length === 0, problems: shown };
}
