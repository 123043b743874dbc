import { type TSchema, Type } from "typebox";
import { type OperationParameter, operation, optional } from "../http/operation.ts";
import { FILTER_CONDITIONS_MAX, OR_CONDITIONS_MAX } from "./query/filter.ts";
import { LIMIT_DEFAULT, LIMIT_MAX } from "./query/list-query.ts";
import { BATCH_OPERATIONS_MAX } from "./write/batch.ts";

/** What OpenAPI says of the table endpoints. Spec: Table endpoints. */
const RecordSchema = Type.Record(Type.String(), Type.Unknown(), {
  description: "id, createdAt, updatedAt and the fields of the table's schema",
});
const nullable = (schema: TSchema) => Type.Union([schema, Type.Null()]);
const ListSchema = Type.Object({
  items: Type.Array(RecordSchema),
  total: nullable(Type.Integer()),
  page: nullable(Type.Integer()),
  perPage: nullable(Type.Integer()),
  hasMore: nullable(Type.Boolean()),
  cursor: nullable(Type.String()),
});
const TupleSchema = Type.Array(Type.Unknown(), { minItems: 3, maxItems: 3, description: "[field, operator, value]" });
const text = (name: string, description: string, required = false): OperationParameter => ({
  name,
  description,
  required,
});
const whole = (name: string, description: string, minimum: number): OperationParameter => ({
  name,
  description,
  schema: Type.Integer({ minimum }),
});

const FILTERS = [
  text("filter", `JSON array of [field, operator, value], all of which must hold; at most ${FILTER_CONDITIONS_MAX}`),
  text("orFilter", `JSON array of tuples of which one must hold; at most ${OR_CONDITIONS_MAX}`),
];
const FIELDS = text("fields", "Only these fields, comma-separated; the id always");
const SORT = text("sort", "field:asc or field:desc, comma-separated; ties and the default are by id");
const LIMIT = whole("limit", `Records per page; default ${LIMIT_DEFAULT}, at most ${LIMIT_MAX}`, 1);

const READ_ERRORS = [400, 401, 403, 404, 408, 503];
const WRITE_ERRORS = [400, 401, 403, 404, 409, 413, 415, 503];

interface Family {
  tag: string;
  security: "rules";
  path: Record<string, string>;
}

/** The descriptions of one family of paths, static or dynamic. */
export function describeTables(family: "static" | "dynamic") {
  const path = {
    namespace: "A declared namespace",
    ...(family === "dynamic" ? { instance: "The instance id: 1 to 128 of A-Z a-z 0-9 _ -" } : {}),
    table: "A table of the namespace",
  };
  const common: Family = { tag: "Tables", security: "rules", path };
  return { ...describeReads(common), ...describeWrites(common), ...describeBatches(common) };
}

const withId = ({ path, ...rest }: Family) => ({ ...rest, path: { ...path, id: "The record id" } });

function describeReads(common: Family) {
  return {
    list: operation({
      ...common,
      summary: "List records",
      query: [
        ...FILTERS,
        SORT,
        LIMIT,
        { ...LIMIT, name: "perPage", description: "The same as limit" },
        whole("page", "Offset mode: the page, from 1", 1),
        whole("offset", "Offset mode: records to step over", 0),
        text("after", "Cursor mode: the records behind this cursor"),
        text("before", "Cursor mode: the records just before this cursor"),
        FIELDS,
      ],
      answers: { 200: { description: "A page of records", schema: ListSchema } },
      errors: READ_ERRORS,
    }),
    get: operation({
      ...withId(common),
      summary: "Read one record",
      query: [FIELDS],
      answers: { 200: { description: "The record", schema: RecordSchema } },
      errors: READ_ERRORS,
    }),
    count: operation({
      ...common,
      summary: "Count records",
      query: FILTERS,
      answers: { 200: { description: "How many match", schema: Type.Object({ total: Type.Integer() }) } },
      errors: READ_ERRORS,
    }),
    search: operation({
      ...common,
      summary: "Search the text of records",
      query: [
        text("q", "Words, all of which must occur; the last one may be unfinished", true),
        ...FILTERS,
        SORT,
        LIMIT,
        whole("offset", "Records to step over", 0),
        whole("page", "The page, from 1", 1),
        text("highlightPre", "Before each match; default <mark>"),
        text("highlightPost", "Behind each match; default </mark>"),
        FIELDS,
      ],
      answers: { 200: { description: "Best match first; each item with its highlights", schema: ListSchema } },
      errors: [...READ_ERRORS, 413],
    }),
  };
}

function describeWrites(common: Family) {
  return {
    insert: operation({
      ...common,
      summary: "Insert or upsert a record",
      query: [
        { name: "upsert", description: "true: an existing record is updated", schema: Type.Boolean() },
        text("conflictTarget", "The unique field that decides whether the record exists; default id"),
      ],
      body: { schema: RecordSchema },
      answers: {
        201: { description: "The record, new", schema: RecordSchema },
        200: { description: "The record, updated by an upsert", schema: RecordSchema },
      },
      errors: WRITE_ERRORS,
    }),
    update: operation({
      ...withId(common),
      summary: "Update a record",
      description: "Fields not named stay. A field may be { $op: increment, value } or { $op: deleteField }.",
      body: { schema: RecordSchema },
      answers: { 200: { description: "The record as it is now", schema: RecordSchema } },
      errors: WRITE_ERRORS,
    }),
    delete: operation({
      ...withId(common),
      summary: "Delete a record",
      answers: { 200: { description: "It is gone", schema: Type.Object({ ok: Type.Literal(true) }) } },
      errors: WRITE_ERRORS,
    }),
  };
}

function describeBatches(common: Family) {
  return {
    batch: operation({
      ...common,
      summary: `Up to ${BATCH_OPERATIONS_MAX} inserts, updates and deletes, all or nothing`,
      query: [{ name: "upsert", description: "true: inserts become upserts by id", schema: Type.Boolean() }],
      body: {
        schema: Type.Object({
          inserts: optional(Type.Array(RecordSchema)),
          updates: optional(Type.Array(Type.Object({ id: Type.String(), data: RecordSchema }))),
          deletes: optional(Type.Array(Type.String())),
        }),
      },
      answers: {
        200: {
          description: "In the order asked",
          schema: Type.Object({
            inserted: Type.Array(RecordSchema),
            updated: Type.Array(RecordSchema),
            deleted: Type.Array(Type.Object({ id: Type.String() })),
          }),
        },
      },
      errors: WRITE_ERRORS,
    }),
    batchByFilter: operation({
      ...common,
      summary: "Update or delete what matches a filter, at most 500 records",
      body: {
        schema: Type.Object({
          action: Type.Union([Type.Literal("update"), Type.Literal("delete")]),
          filter: optional(Type.Array(TupleSchema)),
          orFilter: optional(Type.Array(TupleSchema, { maxItems: OR_CONDITIONS_MAX })),
          data: Type.Optional(RecordSchema),
        }),
      },
      answers: {
        200: {
          description: "How many matched, and how many were changed",
          schema: Type.Object({ processed: Type.Integer(), succeeded: Type.Integer() }),
        },
      },
      errors: WRITE_ERRORS,
    }),
  };
}
