import { type Static, Type } from "typebox";
import type { JsonValue } from "../../../kernel/json/json.ts";
import { createParser } from "../../../kernel/schema/parser.ts";
import { optional, refine } from "../../../kernel/schema/types.ts";
import { PARAMETERS_MAX, SQL_MAX_CHARACTERS } from "./limits.ts";
import type { QueryRequest } from "./types.ts";

const Sql = refine(
  Type.String({ maxLength: SQL_MAX_CHARACTERS, description: "One statement" }),
  (sql) => !sql.includes("\0"),
  (name) => ({ code: "invalid_value", message: `${name} must not have a NUL character` }),
);
const Parameter = Type.Union([Type.String(), Type.Number(), Type.Boolean(), Type.Null()]);

export const QueryBody = Type.Object({
  query: Sql,
  params: optional(
    Type.Array(Parameter, { maxItems: PARAMETERS_MAX, description: "Bound to the statement's `?` in order" }),
  ),
});

const parser = createParser(QueryBody);

export const queryOf = ({ query, params }: Static<typeof QueryBody>): QueryRequest => ({
  sql: query,
  params: params ?? [],
});

/** Errors: 400 that names each member at fault. */
export const parseQuery = (body: JsonValue): QueryRequest => queryOf(parser.parse(body));
