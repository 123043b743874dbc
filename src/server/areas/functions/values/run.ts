import { TypeBoxError } from "@sinclair/typebox";
import type { FieldCode } from "../../../../kernel/errors.ts";
import { FAULTS_MAX } from "../limits.ts";
import type { Schema } from "./schema.ts";

/** What a visit gives for a value that its schema refuses. */
export const REFUSED = Symbol("refused");

/** Judges a value by one schema. Gives the value, converted where the schema says so, or `REFUSED`. It changes no value in place. */
export type Visit = (value: unknown, run: Run) => unknown;

export interface Fault {
  /** Names and indexes joined by dots, empty for the whole value. */
  field: string;
  code: FieldCode;
  /** Behind the name of the field: "must be a number". */
  message: string;
  /** Whose `error` may say it otherwise. */
  schema: Schema;
}

/**
 * How values come. `json`: each has its own type. `text`: all are texts, those of arrays and objects JSON, as in queries, headers,
 * cookies, paths and forms. `plain`: one text, which is a number or boolean where the schema wants one.
 */
export type Form = "json" | "text" | "plain";

/** A file whose content is looked at when all else is right. */
export interface TypedFile {
  field: string;
  file: unknown;
  types: string | string[];
}

/** One value that is judged: where in it the visit is, and what has been found. */
export class Run {
  form: Form;
  /** Texts of lists may have commas between their entries. */
  readonly hasCommas: boolean;
  readonly faults: Fault[] = [];
  readonly files: TypedFile[] = [];
  readonly #path: (string | number)[] = [];
  /** Members of a union that are tried. */
  #trials = 0;

  constructor(form: Form, { hasCommas = false }: { hasCommas?: boolean } = {}) {
    this.form = form;
    this.hasCommas = hasCommas;
  }

  get field(): string {
    return this.#path.join(".");
  }

  /** Nobody wants to know of further faults. */
  get isSettled(): boolean {
    return this.#trials > 0 || this.faults.length >= FAULTS_MAX;
  }

  refuse(schema: Schema, code: FieldCode, message: string): typeof REFUSED {
    if (!this.isSettled) this.faults.push({ field: this.field, code, message, schema });
    return REFUSED;
  }

  /** Visits a member of the value. */
  within(name: string | number, visit: Visit, value: unknown): unknown {
    this.#path.push(name);
    const visited = visit(value, this);
    this.#path.pop();
    return visited;
  }

  /** Visits values that come otherwise than those around them. */
  as(form: Form, work: () => unknown): unknown {
    const before = this.form;
    this.form = form;
    const visited = work();
    this.form = before;
    return visited;
  }

  /** Visits without naming what is at fault. */
  tries(visit: Visit, value: unknown): unknown {
    const { form } = this;
    const depth = this.#path.length;
    const fileCount = this.files.length;
    this.#trials += 1;
    try {
      const visited = visit(value, this);
      if (visited === REFUSED) this.files.length = fileCount;
      return visited;
    } finally {
      this.#trials -= 1;
      this.form = form;
      this.#path.length = depth;
    }
  }

  /** A conversion of the schema's own. Errors: those of the config's code, such as a `Refusal`. */
  decode(schema: Schema, convert: (value: unknown) => unknown, value: unknown): unknown {
    try {
      return convert(value);
    } catch (cause) {
      if (isOfSchema(cause)) return this.refuse(schema, "invalid_value", "is not valid");
      throw cause;
    }
  }
}

/** Whether Elysia or TypeBox has refused a value. */
function isOfSchema(cause: unknown): boolean {
  if (cause instanceof TypeBoxError) return true;
  return cause instanceof Error && "code" in cause && cause.code === "VALIDATION";
}
