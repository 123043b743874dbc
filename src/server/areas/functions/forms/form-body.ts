import { badField, badRequest } from "../../../../kernel/errors.ts";
import { JSON_DEPTH_MAX } from "../../../../kernel/limits.ts";
import { FORM_ENTRIES_MAX, FORM_INDEX_MAX, FORM_NAME_MAX_LENGTH } from "../limits.ts";
import { isPlainObject, ofForm } from "../values/text.ts";
import type { ParsedField } from "./read-form.ts";

type Container = Record<string, unknown> | unknown[];

/**
 * Builds a body from a form's fields, in Elysia's format: a repeated name becomes a list, `a.b` a member, `items[7]` an entry.
 * Errors: 400.
 */
export function formBody(fields: readonly ParsedField[]): Record<string, unknown> {
  const grouped = new Map<string, unknown[]>();
  for (const [name, value] of fields) {
    const values = grouped.get(name);
    if (values === undefined) grouped.set(name, [value]);
    else values.push(value);
  }
  const tree = new Tree();
  for (const [name, values] of grouped) tree.place(stepsOf(name), values.length === 1 ? values[0] : values);
  return ofForm(tree.body);
}

function stepsOf(name: string): (string | number)[] {
  if (name.length > FORM_NAME_MAX_LENGTH)
    throw badRequest(`A form's names have at most ${FORM_NAME_MAX_LENGTH} characters`);
  const steps: (string | number)[] = [];
  for (const part of name.split(".")) {
    const [, list, digits] = /^(.+)\[(\d+)\]$/.exec(part) ?? [];
    if (list === undefined || digits === undefined) steps.push(part);
    else if (Number(digits) <= FORM_INDEX_MAX) steps.push(list, Number(digits));
    else throw badRequest(`An index of a form's field is at most ${FORM_INDEX_MAX}`);
  }
  if (steps.length > JSON_DEPTH_MAX) throw badRequest(`The body nests deeper than ${JSON_DEPTH_MAX} levels`);
  if (!steps.includes("__proto__")) return steps;
  throw badField(name, "unknown_field", `${name} is not a member that is known here`);
}

class Tree {
  readonly body: Record<string, unknown> = {};
  /** The entries of lists, including those that no field names. */
  #entryCount = 0;

  place(steps: readonly (string | number)[], value: unknown): void {
    let container: Container = this.body;
    for (const [index, step] of steps.entries()) {
      const next = steps[index + 1];
      if (next === undefined) {
        this.#put(container, step, value);
        return;
      }
      const found: unknown = Object.hasOwn(container, step) ? (container as Record<string, unknown>)[step] : undefined;
      const isFitting = typeof next === "number" ? Array.isArray(found) : isPlainObject(found);
      const inner: Container = isFitting ? (found as Container) : typeof next === "number" ? [] : {};
      if (!isFitting) this.#put(container, step, inner);
      container = inner;
    }
  }

  /** Stores a value. A list receives an index, an object a name: `stepsOf` guarantees it. */
  #put(container: Container, step: string | number, value: unknown): void {
    if (Array.isArray(container) && typeof step === "number") {
      this.#entryCount += Math.max(0, step + 1 - container.length);
      if (this.#entryCount > FORM_ENTRIES_MAX)
        throw badRequest(`The lists of a form have at most ${FORM_ENTRIES_MAX} entries`);
    }
    (container as Record<string | number, unknown>)[step] = value;
  }
}
