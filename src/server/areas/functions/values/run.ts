import { TypeBoxError } from "@sinclair/typebox";
import type { FieldCode } from "../../../../kernel/errors.ts";
import { codeOf } from "../../../../kernel/errors.ts";
import { FAULTS_MAX } from "../limits.ts";
import type { Schema } from "./schema.ts";

/** The result of a visit for a value that its schema refuses. */
export const REFUSED = Symbol("refused");

/** Validates a value against one schema. Returns the value, converted where the schema says so, or `REFUSED`. It never mutates a value. */
export type Visit = (value: unknown, run: Run) => unknown;

export interface Fault {
  /** The path: names and indexes joined by dots, empty for the whole value. */
  field: string;
  code: FieldCode;
  /** The message after the name of the field: "must be a number". */
  message: string;
  /** The schema, whose `error` may replace the message. */
  schema: Schema;
}

/**
 * The form of values. `json`: each has its own type. `text`: all are texts, those of arrays and objects JSON, as in queries,
 * headers, cookies, paths and forms. `plain`: one text, which is a number or boolean where the schema requires one.
 */
export type Form = "json" | "text" | "plain";

/** A file whose content is checked when all else is valid. */
export interface TypedFile {
  field: string;
  file: unknown;
  types: string | string[];
}

/** The validation of one value: the visit's path in it, and the faults so far. */
export class Run {
  form: Form;
  /** Whether texts of lists may have commas between their entries. */
  readonly hasCommas: boolean;
  readonly faults: Fault[] = [];
  readonly files: TypedFile[] = [];
  readonly #path: (string | number)[] = [];
  /** The number of trials of union members in progress; they nest. */
  #trials = 0;

  constructor(form: Form, { hasCommas = false }: { hasCommas?: boolean } = {}) {
    this.form = form;
    this.hasCommas = hasCommas;
  }

  get field(): string {
    return this.#path.join(".");
  }

  /** Whether further faults are irrelevant. */
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

  /** Visits values whose form differs from those around them. */
  as(form: Form, work: () => unknown): unknown {
    const before = this.form;
    this.form = form;
    const visited = work();
    this.form = before;
    return visited;
  }

  /** Visits without reporting faults. */
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

  /** Applies a conversion of the schema's own. Errors: those of the config's code, such as a `Refusal`. */
  decode(schema: Schema, convert: (value: unknown) => unknown, value: unknown): unknown {
    try {
      return convert(value);
    } catch (cause) {
      if (isOfSchema(cause)) return this.refuse(schema, "invalid_value", "is not valid");
      throw cause;
    }
  }
}

/** Whether Elysia or TypeBox refused a value. */
function isOfSchema(cause: unknown): boolean {
  if (cause instanceof TypeBoxError) return true;
  return codeOf(cause) === "VALIDATION";
}
