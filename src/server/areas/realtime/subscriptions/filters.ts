import { AppError } from "../../../../kernel/errors.ts";
import { isJsonObject } from "../../../../kernel/json/json.ts";
import type { RecordFilter, TableDoor } from "../../../access/table-door.ts";
import type { ChannelFilters, TableChannel } from "../channel.ts";
import { FILTERS_LENGTH_MAX } from "../limits.ts";

/** The filters of a subscription. */
export interface Filters {
  /** JSON of `[filters, orFilters]` as the client sent them. */
  text: string;
  /** Compiled filters; null when none are in force. */
  filter: RecordFilter | null;
}

/** Filters as a client sends them; undefined or null: none. */
export interface SentFilters {
  filters?: unknown;
  orFilters?: unknown;
}

/**
 * Returns filters with relations, which are judged by the right to the channel; null where they have none; or a message for the client
 * when they are too long. Their form is checked when the right is asked.
 */
export function relatedFilters({ filters, orFilters }: SentFilters): ChannelFilters | { problem: string } | null {
  const count = relationCount(filters) + relationCount(orFilters);
  if (count === 0) return null;
  const text = JSON.stringify([filters, orFilters]);
  return text.length > FILTERS_LENGTH_MAX ? { problem: tooLong(text) } : { text, count, all: filters, any: orFilters };
}

/** Returns the filters in force where the right judges them. */
export const judgedByRight = ({ text }: ChannelFilters): Filters => ({
  text,
  filter: { key: text, matches: () => true },
});

/** Counts the relations in a filter, those within others too. Conditions have none. */
function relationCount(filter: unknown): number {
  const sum = (parts: readonly unknown[]) => parts.reduce<number>((count, one) => count + relationCount(one), 0);
  if (Array.isArray(filter)) return typeof filter[0] === "string" ? 0 : sum(filter);
  if (!isJsonObject(filter)) return 0;
  const own = Number("some" in filter || "none" in filter);
  return own + sum(Object.values(filter));
}

const tooLong = ({ length }: string): string =>
  `filters and orFilters must have at most ${FILTERS_LENGTH_MAX} characters of JSON, got ${length}`;

/** Returns the parsed filters, or a message for the client when they are refused; `known` itself when the same were sent. */
export function parseFilters(
  tables: Pick<TableDoor, "parseFilter">,
  channel: TableChannel,
  { filters, orFilters }: SentFilters,
  known: Filters | null,
): Filters | { problem: string } {
  const text = JSON.stringify([filters, orFilters]);
  if (text === known?.text) return known;
  if (text.length > FILTERS_LENGTH_MAX) return { problem: tooLong(text) };
  try {
    const filter = tables.parseFilter(channel.address, { all: filters, any: orFilters });
    return { text, filter: isEmpty(filters) && isEmpty(orFilters) ? null : filter };
  } catch (cause) {
    if (cause instanceof AppError && cause.status === 400) return { problem: cause.message };
    throw cause;
  }
}

/** Returns the sent filters, with absent members replaced by those in force. */
export function mergeFilters({ filters, orFilters }: SentFilters, known: Filters): SentFilters {
  if (filters !== undefined && orFilters !== undefined) return { filters, orFilters };
  const [knownFilters, knownOrFilters]: unknown[] = JSON.parse(known.text);
  return {
    filters: filters === undefined ? knownFilters : filters,
    orFilters: orFilters === undefined ? knownOrFilters : orFilters,
  };
}

const isEmpty = (filters: unknown): boolean =>
  filters === undefined || filters === null || (Array.isArray(filters) && filters.length === 0);
