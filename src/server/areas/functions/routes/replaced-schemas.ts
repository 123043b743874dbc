import { withoutIdleConversions } from "../values/answers.ts";
import { type Declared, Part } from "../values/part.ts";
import type { PartName } from "../values/refused.ts";
import type { Schema } from "../values/schema.ts";

const PARTS = ["body", "query", "params", "headers", "cookie"] as const satisfies readonly PartName[];

/** The schemas that a route, guard or macro declares. */
export type Schemas = { [Name in (typeof PARTS)[number]]?: Declared } & { response?: unknown };

interface Declaring {
  definitions: { type: Readonly<Record<string, Schema>> };
  /** A schema that a guard gives to all routes after it. */
  validator: { getCandidate(): Schemas };
  /** Those of guards that hold beside the route's own. */
  standaloneValidator: Record<string, readonly Schemas[] | null>;
}

/**
 * Puts a `Part` in place of each schema of a route: Elysia calls it, as it calls a validator of another library. Returns what gives the
 * instance its guards' schemas back, once Elysia has added the route.
 */
export function replaceSchemas(
  declaring: Declaring,
  hooks: Schemas & { standaloneValidator?: readonly Schemas[] },
): () => void {
  const ofGuards = declaring.standaloneValidator;
  const candidate = declaring.validator.getCandidate();
  const beside = [...(hooks.standaloneValidator ?? []), ...Object.values(ofGuards).flatMap((all) => all ?? [])];
  const models = () => declaring.definitions.type;
  for (const name of PARTS) {
    const [first, ...others] = [hooks[name] ?? candidate[name], ...beside.map((one) => one[name])].filter(
      (declared) => declared !== undefined,
    );
    if (first !== undefined) hooks[name] = new Part(name, [first, ...others], models);
  }
  const response = hooks.response ?? candidate.response;
  if (response !== undefined) hooks.response = withoutIdleConversions(response);
  if (beside.length === 0) return () => {};
  // What they say about answers is Elysia's.
  const answers = beside.flatMap((one) =>
    one.response === undefined ? [] : [{ response: withoutIdleConversions(one.response) }],
  );
  hooks.standaloneValidator = answers;
  declaring.standaloneValidator = {};
  return () => {
    declaring.standaloneValidator = ofGuards;
  };
}
