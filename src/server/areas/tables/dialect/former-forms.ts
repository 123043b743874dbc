import type { Logger } from "../../../../kernel/logger.ts";
import { callerLine } from "../../../../kernel/observing/caller-line.ts";
import { FORMER_FORMS, type FormerForm, type SayFormer } from "../../../../kernel/records/record-query.ts";
import { FORMER_CALLS_TRACED, FORMER_LINES_MAX, FORMER_SAMPLED } from "../limits.ts";

/** Logs the lines of the config's code that use former forms of queries, each once. */
export type FormerForms = ReturnType<typeof createFormerForms>;

/**
 * Creates the log. Finding a line takes microseconds, and a rule may be called a hundred thousand times a second: it is looked for at the
 * first calls of a form on a table, and then at every thousandth.
 */
export function createFormerForms(logger: Logger) {
  const said = new Set<string>();
  const say = (table: string, form: FormerForm, filter: unknown, at: string | null): void => {
    const asked = fieldsOf(filter);
    const key = `${table} ${form} ${at ?? asked}`;
    if (said.has(key) || said.size >= FORMER_LINES_MAX) return;
    said.add(key);
    const facts = { table, form, filter: asked, at, instead: FORMER_FORMS[form] };
    logger.warn("a form of queries is used that ends with 0.4", facts);
  };
  const calls = new Map<string, number>();
  return {
    of:
      (table: string): SayFormer =>
      (form, filter, called) => {
        const name = `${table} ${form}`;
        const count = (calls.get(name) ?? 0) + 1;
        if (count === 1 && calls.size >= FORMER_LINES_MAX) return;
        calls.set(name, count);
        if (count <= FORMER_CALLS_TRACED || count % FORMER_SAMPLED === 0) say(table, form, filter, callerLine(called));
      },
  };
}

/** Returns the fields and operators of a filter, by which its place is found where its line is not known. */
function fieldsOf(filter: unknown): string {
  if (!Array.isArray(filter)) return typeof filter === "object" && filter !== null ? Object.keys(filter).join() : "";
  const parts = filter.map((one: unknown) => (Array.isArray(one) ? `${one[0]} ${one[1]}` : fieldsOf(one)));
  return parts.join(", ").slice(0, FIELDS_LENGTH);
}

const FIELDS_LENGTH = 200;
