import { badRequest, unreachable } from "../../../../kernel/errors.ts";
import { spliced } from "../syntax/objects.ts";
import { lineOf, NotEditable, parseSource } from "../syntax/source.ts";
import { addBucket, addNamespace, addTable } from "./declarations.ts";
import type { Edit, Problem } from "./edit.ts";
import { addField, addIndex, removeField, setField, setFts } from "./fields.ts";
import { type Edited, type Editing, faultOf } from "./place.ts";
import { setRule } from "./rules.ts";

/** The outcome of all edits. */
export interface Applied {
  source: string;
  /** The statements of the migrations that were written; null for none. */
  migration: string | null;
  warnings: string[];
  problems: Problem[];
}

/**
 * Applies edits to a config's text, in order. Each is parsed in a turn of the event loop of its own. Errors: 400 for an edit that is
 * wrong by name or form, and for what cannot be edited in place, with its line.
 */
export async function applyEdits(text: string, edits: readonly Edit[]): Promise<Applied> {
  const applied: Applied = { source: text, migration: null, warnings: [], problems: [] };
  const migrations: string[] = [];
  for (const [index, edit] of edits.entries()) {
    await Bun.sleep(0);
    try {
      const source = parseSource(applied.source);
      const edited = await applyOne({ source, edit, fault: faultOf(index) });
      applied.source = edited.text ?? spliced(applied.source, edited.splices);
      if (edited.migration !== undefined) migrations.push(edited.migration);
      applied.warnings.push(...(edited.warnings ?? []));
      applied.problems.push(...(edited.problems ?? []));
    } catch (cause) {
      throw cause instanceof NotEditable ? refusal(cause, applied.source, index) : cause;
    }
  }
  if (migrations.length > 0) applied.migration = migrations.join(";\n");
  return applied;
}

function refusal({ message, at }: NotEditable, text: string, index: number) {
  const place = at === null ? "" : `, in line ${lineOf(text, at)}`;
  const sentence = `${message}${place}: edit the file`;
  return badRequest(sentence, { [`edits.${index}`]: { code: "invalid_value", message: sentence } });
}

function applyOne(editing: Editing): Edited | Promise<Edited> {
  const { edit } = editing;
  switch (edit.do) {
    case "addNamespace":
      return addNamespace({ ...editing, edit });
    case "addTable":
      return addTable({ ...editing, edit });
    case "addField":
      return addField({ ...editing, edit });
    case "setField":
      return setField({ ...editing, edit });
    case "removeField":
      return removeField({ ...editing, edit });
    case "addIndex":
      return addIndex({ ...editing, edit });
    case "setFts":
      return setFts({ ...editing, edit });
    case "addBucket":
      return addBucket({ ...editing, edit });
    case "setRule":
      return setRule({ ...editing, edit });
    default:
      return unreachable(edit);
  }
}
