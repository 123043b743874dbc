import type { TSchema } from "typebox";
import { createParser, type Parser } from "../../../kernel/schema/parser.ts";
import type { JsonSchema } from "../../../kernel/schema/strict.ts";
import type { AnyDeclaration, Caller, Endpoint } from "../endpoint.ts";
import { createQueryParser, type QueryParser } from "./query-parser.ts";

/** The parts of one endpoint that its exchanges share. */
export interface EndpointParts {
  handle: Endpoint["handle"];
  caller: Caller;
  missingKeyStatus: 401 | 403;
  refusesScopedKeys: boolean;
  query: QueryParser;
  /** Whether a body is declared, JSON or other. Otherwise any body is refused. */
  takesBody: boolean;
  /** The parser of the JSON body; null: none is declared. */
  body: { parser: Parser<TSchema>; isObject: boolean; isOptional: boolean } | null;
}

/** Builds the parts that the exchanges of an endpoint share from its declaration. */
export function partsOf({ declaration, handle }: Endpoint): EndpointParts {
  return {
    handle,
    caller: declaration.caller,
    missingKeyStatus: declaration.missingKeyStatus ?? 401,
    refusesScopedKeys: declaration.refusesScopedKeys ?? false,
    query: createQueryParser(declaration.query ?? {}, { takesOthers: declaration.otherQuery !== undefined }),
    takesBody: declaration.body !== undefined || declaration.rawBody !== undefined,
    body: bodyOf(declaration),
  };
}

function bodyOf({ body, isBodyOptional = false }: AnyDeclaration): EndpointParts["body"] {
  if (body === undefined) return null;
  const isObject = (body as JsonSchema).type === "object" || (body as JsonSchema).anyOf !== undefined;
  return { parser: createParser(body), isObject, isOptional: isBodyOptional };
}
