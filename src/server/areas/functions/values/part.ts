import { OptionalKind } from "@sinclair/typebox";
import { fileType } from "elysia";
import type { MaybePromise } from "../../../../kernel/maybe-promise.ts";
import { compileSchema } from "./compile.ts";
import type { Others } from "./containers.ts";
import { type PartName, refusedFaults, refusedIssues, type StandardIssue } from "./refused.ts";
import { type Form, REFUSED, Run, type Visit } from "./run.ts";
import { kindOf, type Schema } from "./schema.ts";
import { isOfForm, prototypeWithin, refusePrototype } from "./text.ts";

/** A validator of another library, by the Standard Schema interface. */
interface StandardSchema {
  "~standard": {
    validate(
      value: unknown,
    ): MaybePromise<{ value: unknown; issues?: undefined } | { issues: readonly StandardIssue[] }>;
  };
}

/** A config's declaration for a part of a request: a schema, the name of a model, or a validator of another library. */
export type Declared = Schema | string | StandardSchema;

const isStandard = (declared: object): declared is StandardSchema => "~standard" in declared;

const OTHERS: Readonly<Record<PartName, Others>> = {
  body: "refuse",
  query: "refuse",
  params: "keep",
  headers: "drop",
  cookie: "keep",
  message: "refuse",
};

/**
 * The schemas of one part of a request, as a validator that Elysia calls. Elysia's own validation is unbounded: an error costs as
 * much as all faults of the value, and texts are parsed to any depth.
 */
export class Part implements StandardSchema {
  /** The declared schema, for the OpenAPI document. */
  readonly declared: Declared;
  readonly name: PartName;
  readonly #all: readonly Declared[];
  readonly #models: () => Readonly<Record<string, Schema>>;
  #visit: Visit | null = null;
  /** Validators that run after the schemas of TypeBox. */
  #standards: readonly StandardSchema[] = [];
  readonly "~standard" = { version: 1, vendor: "platform", validate: (value: unknown) => this.#validate(value) };

  /** Every schema of `declared` must accept the value. */
  constructor(
    name: PartName,
    declared: readonly [Declared, ...Declared[]],
    models: () => Readonly<Record<string, Schema>>,
  ) {
    this.name = name;
    this.declared = declared[0];
    this.#all = declared;
    this.#models = models;
  }

  /** Returns Elysia's options of a schema for cookies. */
  get config(): unknown {
    const { declared } = this;
    const schema = typeof declared === "string" ? this.#models()[declared] : declared;
    return (schema as { config?: unknown } | undefined)?.config;
  }

  /** Validates a value. Errors: Elysia's `ValidationError` and `InvalidFileType`; what conversions of the config throw. */
  async parse(value: unknown): Promise<unknown> {
    return (await this.#validate(value)).value;
  }

  #validate(value: unknown): MaybePromise<{ value: unknown }> {
    this.#visit ??= this.#compiled();
    const run = new Run(this.#formOf(value), { hasCommas: this.name !== "body" });
    // Parameters from Bun's router have a class of their own.
    const visited = this.#visit(this.name === "params" ? { ...(value as object) } : value, run);
    if (visited === REFUSED) throw refusedFaults(this.name, run.faults);
    if (run.files.length === 0 && this.#standards.length === 0) return { value: visited };
    return this.#later(run, visited);
  }

  async #later({ files }: Run, visited: unknown): Promise<{ value: unknown }> {
    for (const { file, types, field } of files) await fileType(file as File, types, `body.${field}`);
    let value = visited;
    for (const standard of this.#standards) {
      refusePrototype(prototypeWithin(value));
      const result = await standard["~standard"].validate(value);
      if (result.issues !== undefined) throw refusedIssues(this.name, result.issues);
      value = result.value;
    }
    return { value };
  }

  #formOf(value: unknown): Form {
    if (this.name === "message") return "json";
    if (this.name !== "body") return "text";
    if (typeof value === "string") return "plain";
    return isOfForm(value) ? "text" : "json";
  }

  /** Compiles all schemas of TypeBox into one visit. */
  #compiled(): Visit {
    const all = this.#all.map((one) => (typeof one === "string" ? this.#model(one) : one));
    this.#standards = all.filter(isStandard);
    const schemas = all.filter((one): one is Schema => !isStandard(one));
    const [only] = schemas;
    if (only === undefined) return (value) => value;
    const schema = schemas.length === 1 ? only : { allOf: schemas };
    const visit = compileSchema(schema, this.#models, this.#othersOf(schema));
    const isOptional = schemas.every((one) => OptionalKind in one);
    return (value, run) => (isOptional && isEmpty(value) ? value : visit(value, run));
  }

  #model(name: string): Declared & object {
    const found = this.#models()[name];
    if (found === undefined) throw new Error(`a route names the model "${name}", which does not exist`);
    return found;
  }

  #othersOf(schema: Schema): Others {
    const others = OTHERS[this.name];
    return others === "keep" && schema.additionalProperties === false && kindOf(schema) === "Object"
      ? "refuse"
      : others;
  }
}

const isEmpty = (value: unknown): boolean =>
  value === undefined || (typeof value === "object" && value !== null && !(value instanceof Blob) && isBare(value));

function isBare(value: object): boolean {
  if (value instanceof ArrayBuffer || Array.isArray(value)) return false;
  for (const _ in value) return false;
  return true;
}
