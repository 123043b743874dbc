import type { TSchema } from "typebox";
import { createParser, type Parser } from "../../../kernel/schema/parser.ts";
import type { JsonSchema } from "../../../kernel/schema/strict.ts";
import type { AnyDeclaration, Caller, Endpoint } from "../endpoint.ts";
import { createQueryParser, type QueryParser } from "./query-parser.ts";

/** What the exchanges of one endpoint share. */
export interface EndpointParts {
  handle: Endpoint["handle"];
  caller: Caller;
  missingKeyStatus: 401 | 403;
  refusesScopedKeys: boolean;
  query: QueryParser;
  /** Whether a body is declared, JSON or other. Any body is refused otherwise. */
  takesBody: boolean;
  /** null: no JSON body is declared. */
  body: { parser: Parser<TSchema>; isObject: boolean; isOptional: boolean } | null;
}

/** What the exchanges of an endpoint share, made from its declaration. */
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
