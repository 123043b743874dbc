import type { Field, Resources, TableSchema } from "../../api/resources.ts";
import { MENTIONS_MAX } from "../../limits.ts";

/** A field that may hold the id of a user, and is quick to search. */
export interface Mention {
  namespace: string;
  table: string;
  field: string;
}

const PERSON =
  /(?:^|_)(?:user|owner|author|member|creator|sender|recipient|assignee|(?:created|updated)_?by)(?:_?id)?$/i;

/**
 * The fields of tables without instances that may refer to users: those that begin an index, and those further in an index whose
 * names say so. Other fields are left out: every record would have to be read.
 */
export function mentionsOf(namespaces: Resources["namespaces"]): Mention[] {
  const found: Mention[] = [];
  for (const [namespace, { instance, tables }] of Object.entries(namespaces)) {
    if (instance) continue;
    for (const [table, schema] of Object.entries(tables)) {
      for (const [field, facts] of Object.entries(schema.fields)) {
        if (mayMention(schema, field, facts)) found.push({ namespace, table, field });
      }
    }
  }
  return found.slice(0, MENTIONS_MAX);
}

function mayMention({ indexes }: TableSchema, field: string, { type, unique, references }: Field): boolean {
  if (type !== "string" || field === "id" || references !== undefined) return false;
  if (unique || indexes.some(({ fields }) => fields[0] === field)) return true;
  return PERSON.test(field) && indexes.some(({ fields }) => fields.includes(field));
}
