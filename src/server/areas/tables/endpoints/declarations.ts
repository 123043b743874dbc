import { type TSchema, Type } from "typebox";
import { nullable, optional } from "../../../../kernel/schema/types.ts";
import type { Place } from "../../../http/endpoint.ts";
import { IDEMPOTENCY_KEY } from "../../../http/exchange/idempotency-key.ts";
import { SMALL_BODY_MAX_BYTES } from "../../../http/limits.ts";
import {
  BATCH_BY_FILTER_RECORDS_MAX,
  BATCH_OPERATIONS_MAX,
  SIGNED_DEFAULT_SECONDS,
  SIGNED_MAX_SECONDS,
  TRANSACTION_OPERATIONS_MAX,
} from "../limits.ts";
import {
  AggregateQuery,
  BatchQuery,
  batchBody,
  byFilterBody,
  ChangeQuery,
  CountQuery,
  GetQuery,
  InsertQuery,
  ListQuery,
  NearestQuery,
  SearchQuery,
  SignQuery,
} from "../model/requests.ts";
import { HIGHLIGHTS } from "./record-schemas.ts";

/** Schemas of a table's records: as answered, inserted and updated. */
export interface RecordSchemas<Body extends TSchema> {
  answer: TSchema;
  insert: Body;
  update: Body;
  /** Forms that insert and update records with files; null: the table has none. */
  forms: { insert: TSchema; update: TSchema } | null;
}

/** Headers of the endpoints that accept an idempotency key. */
const ONCE = { headers: [IDEMPOTENCY_KEY] };
const UNREADABLE = "A caller that may not read the record gets its id and the values that it has sent.";
const READ_ERRORS = [400, 404, 408, 503];
const WRITE_ERRORS = [400, 404, 409, 503];
const WITH_HIGHLIGHTS = Type.Object({ highlights: HIGHLIGHTS });

const WITH_SIMILARITY = Type.Object({
  similarity: Type.Number({ description: "The cosine between both vectors: 1 for the same direction" }),
});

const GROUP = Type.Unsafe<object>({
  type: "object",
  description: "By the names of groupBy and select",
  additionalProperties: { type: ["string", "number", "boolean", "null"] },
});

const pageOf = (items: TSchema, description: string) =>
  Type.Object(
    {
      items: Type.Array(items),
      total: nullable(Type.Integer()),
      page: nullable(Type.Integer()),
      perPage: nullable(Type.Integer()),
      hasMore: nullable(Type.Boolean()),
      cursor: nullable(Type.String()),
    },
    { description },
  );

const placeOf = (path: Readonly<Record<string, string>>): Place => ("instance" in path ? "instance" : "namespace");

/**
 * Declares the endpoints of one table, or of every table of a path. `path` describes the parameters of the path except the id.
 */
export function declareTableEndpoints<Path extends Readonly<Record<string, string>>, Body extends TSchema>(
  path: Path,
  records: RecordSchemas<Body>,
) {
  const common = { tag: "Tables", caller: "rules" as const, place: placeOf(path), path };
  const withId = { ...common, path: { ...path, id: "The record id" } };
  const ofFile = { ...withId, path: { ...withId.path, field: "A field of files", fileId: "The id of the file" } };
  return {
    ...declareReads(common, withId, records.answer),
    ...declareFiles(ofFile),
    ...declareWrites(common, withId, records),
  };
}

/** Declares the transactions of one namespace, or of every namespace of a path. */
export function declareTransaction<Path extends Readonly<Record<string, string>>, Body extends TSchema>(
  path: Path,
  { body, answer }: { body: Body; answer: TSchema },
) {
  return {
    tag: "Tables",
    caller: "rules" as const,
    place: placeOf(path),
    path,
    ...ONCE,
    summary: `Up to ${TRANSACTION_OPERATIONS_MAX} operations on the tables of one file, all or nothing`,
    description: "Operations run in order, and each sees what the ones before it did.",
    body,
    answers: {
      200: Type.Object(
        { results: Type.Array(answer) },
        { description: "The records in the order of the operations; of a deleted one its id" },
      ),
    },
    errors: [...WRITE_ERRORS, 412, 422],
  };
}

function declareReads<Common extends object, WithId extends object>(common: Common, withId: WithId, record: TSchema) {
  return {
    list: {
      ...common,
      summary: "List records",
      query: { ...ListQuery, ...SignQuery },
      answers: { 200: pageOf(record, "A page of records") },
      errors: READ_ERRORS,
    },
    count: {
      ...common,
      summary: "Count records",
      query: CountQuery,
      answers: { 200: Type.Object({ total: Type.Integer() }, { description: "The number of matching records" }) },
      errors: READ_ERRORS,
    },
    aggregate: {
      ...common,
      summary: "Count, sum and compare records by groups",
      query: AggregateQuery,
      answers: { 200: Type.Object({ groups: Type.Array(GROUP) }, { description: "The groups, in order" }) },
      errors: [...READ_ERRORS, 413],
    },
    search: {
      ...common,
      summary: "Search the text of records",
      query: { ...SearchQuery, ...SignQuery },
      answers: { 200: pageOf(Type.Intersect([record, WITH_HIGHLIGHTS]), "The best matches first, with highlights") },
      errors: [...READ_ERRORS, 413, 429],
    },
    nearest: {
      ...withId,
      summary: "List the records nearest in meaning to one",
      description: "For a table whose records have vectors. A record without a vector has no nearest ones.",
      query: { ...NearestQuery, ...SignQuery },
      answers: { 200: pageOf(Type.Intersect([record, WITH_SIMILARITY]), "The nearest first") },
      errors: [...READ_ERRORS, 413],
    },
    get: {
      ...withId,
      summary: "Read a record",
      query: { ...GetQuery, ...SignQuery },
      answers: { 200: { description: "The record", schema: record } },
      errors: READ_ERRORS,
    },
  };
}

const BYTES = Type.Unsafe<string>({ type: "string", format: "binary" });
const BYTES_TYPE = "application/octet-stream";
const DOWNLOAD = {
  thumb: Type.Optional(Type.String({ description: "A size that the bucket declares, such as 200x200" })),
  token: Type.Optional(Type.String({ description: "Of a signed URL" })),
};
const SignBody = Type.Object({
  expiresIn: optional(
    Type.Integer({ minimum: 1, maximum: SIGNED_MAX_SECONDS, default: SIGNED_DEFAULT_SECONDS, description: "Seconds" }),
  ),
});

function declareFiles<OfFile extends object>(ofFile: OfFile) {
  const ofMethod = { ...ofFile, query: DOWNLOAD, errors: [400, 404, 413, 415, 503] };
  const notModified = { description: "The file has this ETag" };
  return {
    file: {
      ...ofMethod,
      summary: "Download a file of a record",
      headers: [{ name: "Range" }, { name: "If-None-Match" }, { name: "If-Range" }],
      answers: {
        200: { description: "The file", schema: BYTES, contentType: BYTES_TYPE },
        206: { description: "The bytes of the range", schema: BYTES, contentType: BYTES_TYPE },
        304: notModified,
      },
      errors: [...ofMethod.errors, 416],
    },
    fileHead: {
      ...ofMethod,
      summary: "Get the headers of a record's file",
      headers: [{ name: "If-None-Match" }],
      answers: { 200: { description: "The file exists" }, 304: notModified },
    },
    signFile: {
      ...ofFile,
      summary: "Sign a URL of a record's file",
      body: SignBody,
      bodyMaxBytes: SMALL_BODY_MAX_BYTES,
      answers: {
        200: Type.Object(
          { url: Type.String() },
          { description: "Good for GET and HEAD until it expires, or its signer may not read the record any more" },
        ),
      },
      errors: [404],
    },
  };
}

function declareWrites<Common extends object, WithId extends object, Body extends TSchema>(
  common: Common,
  withId: WithId,
  { answer, insert, update, forms }: RecordSchemas<Body>,
) {
  return {
    insert: {
      ...common,
      ...ONCE,
      summary: "Insert or upsert a record",
      description: UNREADABLE,
      query: InsertQuery,
      body: insert,
      formBody: forms?.insert,
      answers: {
        201: { description: "The new record", schema: answer },
        200: { description: "The record that an upsert has updated", schema: answer },
      },
      errors: [...WRITE_ERRORS, 422],
    },
    update: {
      ...withId,
      ...ONCE,
      summary: "Update a record",
      description: `Other fields keep their values. A field may also be { $op: increment, value } or { $op: deleteField }. ${UNREADABLE}`,
      query: ChangeQuery,
      body: update,
      formBody: forms?.update,
      answers: { 200: { description: "The updated record", schema: answer } },
      errors: [...WRITE_ERRORS, 412, 422],
    },
    delete: {
      ...withId,
      summary: "Delete a record",
      query: ChangeQuery,
      answers: { 200: Type.Object({ ok: Type.Literal(true) }, { description: "The record is deleted" }) },
      errors: [...WRITE_ERRORS, 412],
    },
    batch: {
      ...common,
      ...ONCE,
      summary: `Up to ${BATCH_OPERATIONS_MAX} inserts, updates and deletes, all or nothing`,
      query: BatchQuery,
      body: batchBody(insert, update),
      answers: {
        200: Type.Object(
          {
            inserted: Type.Array(answer),
            updated: Type.Array(answer),
            deleted: Type.Array(Type.Object({ id: Type.String() })),
          },
          { description: "The records, in the order of the request" },
        ),
      },
      errors: [...WRITE_ERRORS, 422],
    },
    batchByFilter: {
      ...common,
      ...ONCE,
      summary: `Update or delete at most ${BATCH_BY_FILTER_RECORDS_MAX} records that match a filter`,
      body: byFilterBody(update),
      answers: {
        200: Type.Object(
          { processed: Type.Integer(), succeeded: Type.Integer() },
          { description: "How many records matched, and how many of them were changed" },
        ),
      },
      errors: [...WRITE_ERRORS, 422],
    },
  };
}
