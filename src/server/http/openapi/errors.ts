import { Type } from "typebox";

/** The body of an error, `Error` in the document. [HT1] */
export const ERROR_SCHEMA = Type.Object({
  code: Type.Integer({ description: "The HTTP status" }),
  message: Type.String(),
  data: Type.Optional(
    Type.Record(Type.String(), Type.Object({ code: Type.String(), message: Type.String() }), {
      description: "The fields at fault",
    }),
  ),
});

const ERROR_TEXTS: Readonly<Record<number, string>> = {
  400: "Bad request or validation failure",
  401: "Authentication required",
  403: "Access denied",
  404: "Not found",
  405: "Method not allowed",
  408: "The request took too long",
  409: "Conflict",
  413: "Too large",
  415: "Unsupported media type",
  416: "Range not satisfiable",
  429: "Rate limit exceeded",
  500: "Internal error",
  502: "Bad gateway",
  503: "Unavailable",
  507: "Insufficient storage",
};

export function errorAnswer(status: number): Record<string, unknown> {
  return {
    description: ERROR_TEXTS[status] ?? "Error",
    content: { "application/json": { schema: { $ref: "#/components/schemas/Error" } } },
  };
}
