/** Options of an aggregate over untyped field names. */
export interface AggregateOptions {
  select: readonly string[];
  groupBy?: readonly string[];
  sort?: readonly (string | readonly [string, "asc" | "desc"])[];
  limit?: number;
  timezone?: string;
}

/** Returns the parameters of an aggregate, without its filter. */
export const aggregateParameters = ({ select, groupBy, sort = [], limit, timezone }: AggregateOptions) => ({
  select: select.join(),
  groupBy: groupBy?.join() || null,
  sort: sort.map((key) => (typeof key === "string" ? key : key.join(":"))).join() || null,
  limit,
  timezone,
});
