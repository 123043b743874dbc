import type { TSchema } from "typebox";
import { type Authored, plain } from "./authored.ts";
import { createParser, type Parser } from "./parser.ts";

/** Creates a parser of JSON values for a schema that a config's author wrote. `name` is what the whole value is called. */
export function authoredParser(schema: object, { name, member }: { name: string; member: string }): Parser<TSchema> {
  const unexplained = { [name]: { code: "invalid_value", message: `${name} does not match its schema` } } as const;
  return createParser(plain(schema as Authored) as TSchema, { member, unexplained });
}
