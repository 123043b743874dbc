import { badField } from "./errors.ts";
import type { JsonObject } from "./json.ts";

/** Errors: 400 `unknown_field` for a member of `body` that is not `known`; `place` goes before its name (`vectors.3.`). */
export function refuseUnknownMembers(body: JsonObject, known: readonly string[], what: string, place = ""): void {
  for (const name of Object.keys(body)) {
    if (known.includes(name)) continue;
    const field = `${place}${name}`;
    throw badField(field, "unknown_field", `"${field}" is not a member of ${what}, which takes ${known.join(", ")}`);
  }
}
