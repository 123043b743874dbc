import type { Expression, Node, ObjectExpression } from "@babel/types";
import { literalOf, walk } from "../syntax/literals.ts";
import { expressionOf, memberOf, membersOf, objectOf } from "../syntax/objects.ts";
import { bareOf, lineOf, startOf } from "../syntax/source.ts";
import type { EditOf } from "./edit.ts";
import { type Editing, namespaceOf, type TablePlace } from "./place.ts";

/** Throws where an index, the search, the title, a view or a reference uses the field that goes. */
export function requireUnused(editing: Editing<EditOf<"removeField">>, place: TablePlace): void {
  const { edit, fault } = editing;
  const used = (by: string): never => {
    throw fault("field", "conflict", `"${edit.field}" cannot be removed: ${by} uses it`);
  };
  for (const member of ["indexes", "fts", "display"] as const) {
    const property = memberOf(place.object, member, place.path);
    if (property === null) continue;
    const path = `${place.path}.${member}`;
    if (names(expressionOf(property, path), edit.field)) used(path);
  }
  const embedding = objectOf(place.object, "embed", place.path);
  const embedded = embedding === null ? null : memberOf(embedding, "fields", `${place.path}.embed`);
  const ofEmbedding = `${place.path}.embed.fields`;
  if (embedded !== null && names(expressionOf(embedded, ofEmbedding), edit.field)) used(ofEmbedding);
  for (const path of usesElsewhere(editing)) used(path);
}

/** Reports whether a list of fields, an index or a name has the field. */
function names(value: Expression, field: string): boolean {
  let isNamed = false;
  walk(value, (node) => {
    if (node.type === "StringLiteral" && node.value === field) isNamed = true;
  });
  return isNamed;
}

/** Yields the paths of views that read the field, and of fields that refer to it. */
function* usesElsewhere(editing: Editing<EditOf<"removeField">>): Iterable<string> {
  const { edit } = editing;
  const path = `databases.${edit.namespace}`;
  const namespace = namespaceOf(editing, edit.namespace);
  const views = objectOf(namespace, "views", path);
  for (const [name, property] of views === null ? [] : membersOf(views, `${path}.views`)) {
    const own = `${path}.views.${name}`;
    const texts = textsIn(expressionOf(property, own));
    if (hasWord(texts, edit.table) && hasWord(texts, edit.field)) yield own;
  }
  const tables = objectOf(namespace, "tables", path);
  for (const [name, property] of tables === null ? [] : membersOf(tables, `${path}.tables`)) {
    const own = `${path}.tables.${name}`;
    const table = expressionOf(property, own);
    if (table.type === "ObjectExpression") yield* references(table, own, edit);
  }
}

/** Yields the paths of a table's fields that refer to the column. */
function* references(table: ObjectExpression, path: string, edit: EditOf<"removeField">): Iterable<string> {
  const property = memberOf(table, "schema", path);
  const schema = property === null ? null : expressionOf(property, `${path}.schema`);
  if (schema?.type !== "ObjectExpression") return;
  for (const [name, field] of membersOf(schema, `${path}.schema`)) {
    if (field.shorthand) continue;
    // Patterns are values of destructured parameters only.
    const value = bareOf(field.value as Expression);
    const declared = value.type === "ObjectExpression" ? literalOf(value) : null;
    const to =
      typeof declared === "object" && declared !== null && "references" in declared ? declared["references"] : null;
    if (typeof to !== "object" || to === null || Array.isArray(to)) continue;
    if (to["table"] === edit.table && to["column"] === edit.field) yield `${path}.schema.${name}`;
  }
}

function textsIn(node: Node): string {
  const texts: string[] = [];
  walk(node, (each) => {
    if (each.type === "StringLiteral") texts.push(each.value);
    if (each.type === "TemplateElement") texts.push(each.value.raw);
  });
  return texts.join(" ");
}

const hasWord = (text: string, word: string): boolean => text.split(/[^\w$]+/).includes(word);

/** Returns a sentence for each rule and hook of the table whose code names the field. */
export function namedInCode({ object, path }: TablePlace, field: string, text: string): string[] {
  const warnings: string[] = [];
  for (const member of ["access", "hooks"] as const) {
    const property = memberOf(object, member, path);
    if (property === null) continue;
    walk(property, (node) => {
      if (!isNamed(node, field)) return;
      warnings.push(`${path}.${member} names "${field}" in line ${lineOf(text, startOf(node))}`);
    });
  }
  return [...new Set(warnings)];
}

function isNamed(node: Node, field: string): boolean {
  if (node.type === "StringLiteral") return node.value === field;
  if (node.type === "MemberExpression" || node.type === "OptionalMemberExpression") {
    return !node.computed && node.property.type === "Identifier" && node.property.name === field;
  }
  return node.type === "ObjectProperty" && node.key.type === "Identifier" && !node.computed && node.key.name === field;
}
