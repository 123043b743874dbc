/** The type of JSON fields whose values are `T`: `json<T>()`. */
export type JsonOf<T> = "json" & { readonly "~json": T };

/**
 * Returns the type of a field with JSON of a type of its own: `type: json<Address>()`. It is known to types only, of rules, hooks, server
 * code and the client: a request may send any JSON. [TB690]
 */
export function json<T>(): JsonOf<T> {
  // The member that tells T apart exists in types only.
  return "json" as JsonOf<T>;
}
