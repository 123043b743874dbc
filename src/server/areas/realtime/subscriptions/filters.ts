import { AppError } from "../../../../kernel/errors.ts";
import type { RecordFilter, TableDoor } from "../../../access/table-door.ts";
import type { TableChannel } from "../channel.ts";
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

/** Returns the parsed filters, or a message for the client when they are refused; `known` itself when the same were sent. */
export function parseFilters(
  tables: Pick<TableDoor, "parseFilter">,
  channel: TableChannel,
  { filters, orFilters }: SentFilters,
  known: Filters | null,
): Filters | { problem: string } {
  const text = JSON.stringify([filters, orFilters]);
  if (text === known?.text) return known;
  if (text.length > FILTERS_LENGTH_MAX) {
    const wanted = `filters and orFilters must have at most ${FILTERS_LENGTH_MAX} characters of JSON`;
    return { problem: `${wanted}, got ${text.length}` };
  }
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
