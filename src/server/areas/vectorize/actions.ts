import { type Static, Type } from "typebox";
import { AppError, badField } from "../../../kernel/errors.ts";
import type { JsonObject } from "../../../kernel/json/json.ts";
import { AnyObject, optional, refine } from "../../../kernel/schema/types.ts";
import { nextTurn } from "../../../kernel/time/scheduler.ts";
import { parseMetadataFilter } from "./filter.ts";
import {
  ID_LENGTH_MAX,
  LENGTH_MAX,
  LENGTH_MIN,
  LIST_DEFAULT,
  LIST_MAX,
  METADATA_MAX_BYTES,
  NUMBERS_PER_TURN_MAX,
  TOP_K_DEFAULT,
  TOP_K_MAX,
  VECTORS_MAX,
} from "./limits.ts";
import type { IndexDefinition, ListQuery, SearchQuery, StoredVector } from "./types.ts";

const Id = refine(
  Type.String({ minLength: 1, maxLength: ID_LENGTH_MAX }),
  (id) => !/\p{Cc}/u.test(id),
  (name) => ({ code: "invalid_value", message: `${name} must not have control characters` }),
);
const Values = Type.Array(Type.Number(), { description: "As many numbers as the index has dimensions" });
const Ids = Type.Array(Id, { maxItems: VECTORS_MAX });
const Vector = Type.Object({ id: Id, values: Values, metadata: optional(AnyObject) });

export const Action = Type.Union([
  Type.Object({ action: Type.Literal("upsert"), vectors: Type.Array(Vector, { maxItems: VECTORS_MAX }) }),
  Type.Object({
    action: Type.Literal("search"),
    vector: Values,
    topK: optional(Type.Integer({ minimum: 1, maximum: TOP_K_MAX, default: TOP_K_DEFAULT })),
    filter: optional(
      Type.Record(Type.String(), Type.Unknown(), {
        description: "Metadata that must be equal, or `{ $eq, $ne, $in, $gt, $gte, $lt, $lte }`",
      }),
    ),
    returnValues: optional(Type.Boolean({ default: false })),
  }),
  Type.Object({ action: Type.Literal("delete"), ids: Ids }),
  Type.Object({ action: Type.Literal("getByIds"), ids: Ids }),
  Type.Object({
    action: Type.Literal("list"),
    prefix: optional(Type.String({ maxLength: ID_LENGTH_MAX, description: "Ids that begin with this" })),
    limit: optional(Type.Integer({ minimum: 1, maximum: LIST_MAX, default: LIST_DEFAULT })),
    cursor: optional(Type.String({ maxLength: ID_LENGTH_MAX, description: "`cursor` of the previous page" })),
  }),
  Type.Object({ action: Type.Literal("describe") }),
]);
/** Action of a request, or of a call of `app.vectors(name)`. */
export type Action = Static<typeof Action>;
type ActionOf<Name extends Action["action"]> = Extract<Action, { action: Name }>;

/**
 * Converts the vectors of an upsert, over several turns of the event loop, as a request may have millions of numbers. Errors:
 * 400 that names the member at fault, 413 for metadata that is too large.
 */
export async function storedVectors(index: IndexDefinition, { vectors }: ActionOf<"upsert">): Promise<StoredVector[]> {
  const stored: StoredVector[] = [];
  let countInTurn = NUMBERS_PER_TURN_MAX;
  for (const [position, { id, values, metadata }] of vectors.entries()) {
    // The first turn has already been used to check the whole request.
    if (countInTurn >= NUMBERS_PER_TURN_MAX && vectors.length > 1) {
      await nextTurn();
      countInTurn = 0;
    }
    const field = `vectors.${position}`;
    // The body was parsed from JSON.
    const text = metadataText(`${field}.metadata`, (metadata ?? {}) as JsonObject);
    countInTurn += values.length + text.length;
    stored.push({ id, values: floatsOf(index, `${field}.values`, values), metadata: text });
  }
  return stored;
}

/** Returns the query of a search. Errors: 400 that names the member at fault. */
export function searchQuery(index: IndexDefinition, action: ActionOf<"search">): SearchQuery {
  const { vector, topK, filter, returnValues } = action;
  return {
    vector: floatsOf(index, "vector", vector),
    topK: topK ?? TOP_K_DEFAULT,
    filter: parseMetadataFilter((filter ?? {}) as JsonObject), // Parsed from JSON, as every body.
    returnValues: returnValues ?? false,
  };
}

export const listQuery = ({ prefix, limit, cursor }: ActionOf<"list">): ListQuery => ({
  prefix: prefix ?? "",
  limit: limit ?? LIST_DEFAULT,
  after: cursor ?? "",
});

/** Converts numbers to 32-bit floats, as they are stored, and refuses numbers that would become infinite. */
function floatsOf(
  { dimensions, metric }: IndexDefinition,
  field: string,
  list: readonly number[],
): Float32Array<ArrayBuffer> {
  if (list.length !== dimensions) {
    throw badField(field, "invalid_value", `"${field}" must have ${dimensions} dimensions, got ${list.length}`);
  }
  const values = Float32Array.from(list);
  let square = 0;
  for (const value of values) square += value * value;
  if (!Number.isFinite(square)) {
    const position = values.findIndex((value) => !Number.isFinite(value));
    if (position >= 0) {
      throw badField(field, "invalid_value", `"${field}.${position}" must be a finite number of 32 bits`);
    }
  }
  const length = Math.sqrt(square);
  if (length > LENGTH_MAX || (length < LENGTH_MIN && length !== 0)) {
    throw badField(field, "invalid_value", `"${field}" must have a length of ${LENGTH_MIN} to ${LENGTH_MAX}`);
  }
  if (length === 0 && metric === "cosine") {
    throw badField(field, "invalid_value", `"${field}" must not be all zeros: cosine compares directions`);
  }
  return values;
}

function metadataText(field: string, metadata: JsonObject): string {
  const text = JSON.stringify(metadata);
  if (Buffer.byteLength(text) <= METADATA_MAX_BYTES) return text;
  const message = `"${field}" must be at most ${METADATA_MAX_BYTES} bytes of JSON`;
  throw new AppError(413, message, { data: { [field]: { code: "too_large", message } } });
}

/** Copies numbers that a config's code passes in, which may be values that JSON lacks. Errors: 400 that names the number. */
export function numbersCopy(field: string, values: readonly number[]): number[] {
  const position = values.findIndex((value) => typeof value === "number" && !Number.isFinite(value));
  if (position < 0) return [...values];
  throw badField(field, "invalid_value", `"${field}.${position}" must be a finite number of 32 bits`);
}
