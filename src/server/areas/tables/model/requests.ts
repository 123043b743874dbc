import { type Static, type TObject, type TSchema, Type } from "typebox";
import type { JsonObject } from "../../../../kernel/json/json.ts";
import { optional } from "../../../../kernel/schema/types.ts";
import type { Principal } from "../../../access/principal.ts";
import type { ReadCaller } from "../../../db/index.ts";
import {
  AGGREGATE_GROUPS_DEFAULT,
  AGGREGATE_GROUPS_MAX,
  BATCH_OPERATIONS_MAX,
  EXPAND_DEPTH_MAX,
  EXPAND_PATHS_MAX,
  FILTER_CONDITIONS_MAX,
  LIMIT_DEFAULT,
  LIMIT_MAX,
  MARK_LENGTH_MAX,
  NEAREST_DEFAULT,
  NEAREST_MAX,
  OR_CONDITIONS_MAX,
  POSITION_MAX,
  QUERY_LENGTH_MAX,
  SIGNED_MAX_SECONDS,
  TRANSACTION_OPERATIONS_MAX,
} from "../limits.ts";
import { OPERATOR_NAMES } from "./operators.ts";

// Query parameters and bodies of the table endpoints.

/** A record in a body. Its table's validator checks the members, after the rules. */
export const AnyRecord = Type.Unsafe<JsonObject>({
  type: "object",
  description: "id, createdAt, updatedAt and the fields of the table's schema",
});

const text = (description: string) => Type.Optional(Type.String({ description }));
const whole = (description: string, minimum: number, maximum?: number) =>
  Type.Optional(Type.Integer(maximum === undefined ? { description, minimum } : { description, minimum, maximum }));

const ELEMENTS =
  `an array of [field, operator, value], such as ["year", ">=", 1999], with one of ${OPERATOR_NAMES}, and of groups: ` +
  `{"or": […]}, {"and": […]}, {"not": […]}; at most ${FILTER_CONDITIONS_MAX} together`;
const filter = text(`JSON: ${ELEMENTS}. All must match`);
const orFilter = text(`JSON array of conditions, of which one must match; at most ${OR_CONDITIONS_MAX}`);
const sort = text(
  "field:asc or field:desc, comma-separated. Records of equal values are ordered by id, in the direction of the last field; all records by id by default",
);
const limit = whole(`Records per page: ${LIMIT_DEFAULT} by default, ${LIMIT_MAX} at most`, 1);
const page = whole("The page, from 1", 1, POSITION_MAX);
const offset = whole("Number of records to skip", 0, POSITION_MAX);
const fields = text("Only these fields, comma-separated, and the id");

const expand = text(
  `References to follow, comma-separated: a field with references, or table(field) for the records that refer here; at most ${EXPAND_PATHS_MAX} paths of ${EXPAND_DEPTH_MAX} steps, such as author,comments(postId).author`,
);

const near = text(
  "field:lat:lng, such as at:48.2:16.37: the nearest records first, each with its `distance` in metres. Without sort, after and before",
);

export const ListQuery = {
  filter,
  orFilter,
  sort,
  near,
  limit,
  perPage: whole("The same as limit", 1),
  page,
  offset,
  after: text("Records after this cursor"),
  before: text("Records before this cursor"),
  total: Type.Optional(Type.Boolean({ description: "false: total is null, and nothing is counted" })),
  fields,
  expand,
};

export const GetQuery = { fields, expand };
/** The query parameter `signFiles` of lists, searches and GET one over HTTP. */
export const SignQuery = {
  signFiles: whole(
    "The urls of files are signed, and good for so many seconds without credentials",
    1,
    SIGNED_MAX_SECONDS,
  ),
};
export const CountQuery = { filter, orFilter };

export const AggregateQuery = {
  select: text("count(), sum(field), avg(field), min(field) and max(field), comma-separated; count() by default"),
  groupBy: text(
    "Fields, comma-separated; a datetime may have :minute, :hour, :day, :week, :month or :year, a date those from :day. Without it: one group",
  ),
  filter,
  orFilter,
  sort: text("Names of groupBy and select, each with :asc or :desc, comma-separated. By default by the groups"),
  limit: whole(`Groups: ${AGGREGATE_GROUPS_DEFAULT} by default, ${AGGREGATE_GROUPS_MAX} at most`, 1),
  timezone: text("The zone of days, weeks and so on, such as Europe/Berlin; UTC by default"),
};

export const SearchQuery = {
  q: Type.String({
    minLength: 1,
    maxLength: QUERY_LENGTH_MAX,
    description: "Words that must all occur; the last one may be a prefix",
  }),
  mode: Type.Optional(
    Type.Union([Type.Literal("words"), Type.Literal("hybrid")], {
      description: "hybrid: by words and by meaning, where the table has vectors; words by default",
    }),
  ),
  filter,
  orFilter,
  sort,
  limit,
  offset,
  page,
  highlightPre: Type.Optional(
    Type.String({ maxLength: MARK_LENGTH_MAX, description: "Text before each match; <mark> by default" }),
  ),
  highlightPost: Type.Optional(
    Type.String({ maxLength: MARK_LENGTH_MAX, description: "Text after each match; </mark> by default" }),
  ),
  fields,
  expand,
};

export const NearestQuery = {
  limit: whole(`Records: ${NEAREST_DEFAULT} by default`, 1, NEAREST_MAX),
  filter,
  orFilter,
  fields,
  expand,
};

export const InsertQuery = {
  upsert: Type.Optional(Type.Boolean({ description: "true: an existing record is updated" })),
  conflictTarget: text("The unique field that identifies an existing record; id by default"),
};
export const ChangeQuery = {
  if: text("JSON array of conditions, as filter. The stored record must meet all of them; else 412"),
};
export const BatchQuery = {
  upsert: Type.Optional(Type.Boolean({ description: "true: inserts update existing records of the same id" })),
};

export const batchBody = <Insert extends TSchema, Update extends TSchema>(insert: Insert, update: Update) =>
  Type.Object(
    {
      inserts: optional(Type.Array(insert)),
      updates: optional(Type.Array(Type.Object({ id: Type.String(), data: update }))),
      deletes: optional(Type.Array(Type.String())),
    },
    { description: `At most ${BATCH_OPERATIONS_MAX} operations` },
  );
export const BatchBody = batchBody(AnyRecord, AnyRecord);
export type BatchBody = Static<typeof BatchBody>;

/** A filter in a body, which `parseFilter` checks: a list, or a single group. */
const conditions = (description: string) => optional(Type.Unknown({ description: `${description}: ${ELEMENTS}` }));
const FILTER_MEMBERS = {
  filter: conditions("A filter that must match"),
  orFilter: conditions(`A filter of which one condition must match, at most ${OR_CONDITIONS_MAX}`),
};

export const byFilterBody = <Update extends TSchema>(update: Update) =>
  Type.Union([
    Type.Object({ action: Type.Literal("update"), ...FILTER_MEMBERS, data: update }),
    Type.Object({ action: Type.Literal("delete"), ...FILTER_MEMBERS }),
  ]);
export const ByFilterBody = byFilterBody(AnyRecord);
export type ByFilterBody = Static<typeof ByFilterBody>;

const CONDITION_OF_OPERATION = {
  if: conditions("A filter that the stored record must meet, else 412"),
};

/** Returns the schemas of a transaction's operations on one table. `table` is its name. */
export const tableOperations = <Table extends TSchema, Insert extends TSchema, Update extends TSchema>(
  table: Table,
  insert: Insert,
  update: Update,
) =>
  [
    Type.Object({ table, action: Type.Literal("insert"), data: insert }),
    Type.Object({
      table,
      action: Type.Literal("update"),
      id: Type.String(),
      data: update,
      ...CONDITION_OF_OPERATION,
    }),
    Type.Object({
      table,
      action: Type.Literal("upsert"),
      data: insert,
      conflictTarget: optional(Type.String({ description: "A unique field; id by default" })),
      ...CONDITION_OF_OPERATION,
    }),
    Type.Object({ table, action: Type.Literal("delete"), id: Type.String(), ...CONDITION_OF_OPERATION }),
  ] as const;

export const transactionBody = <Operation extends TSchema>(operation: Operation) =>
  Type.Object({ operations: Type.Array(operation, { minItems: 1, maxItems: TRANSACTION_OPERATIONS_MAX }) });
const AnyTable = Type.String({ description: "A table of the namespace" });
export const TransactionBody = transactionBody(Type.Union([...tableOperations(AnyTable, AnyRecord, AnyRecord)]));
export type TransactionBody = Static<typeof TransactionBody>;
export type Operation = TransactionBody["operations"][number];

export type ListValues = Static<TObject<typeof ListQuery>>;
export type GetValues = Static<TObject<typeof GetQuery>>;
export type CountValues = Static<TObject<typeof CountQuery>>;
export type AggregateValues = Static<TObject<typeof AggregateQuery>>;
export type NearestValues = Static<TObject<typeof NearestQuery>>;
export type SearchValues = Static<TObject<typeof SearchQuery>>;

/** A read: its principal, its parameters, and the caller whose queue share long reads take. */
export interface ReadRequest<Values> extends ReadCaller {
  readonly principal: Principal;
  /** Parses the parameters. Called after the rights are known. Errors: 400 that names each faulty parameter. */
  query(): Values;
  /** Returns the query string. Equal texts have equal parameters. */
  queryText?(): string;
}
