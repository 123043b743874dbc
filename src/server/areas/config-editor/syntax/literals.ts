import type { Expression, Node } from "@babel/types";
import type { JsonValue } from "../../../../kernel/json/json.ts";
import { bareOf } from "./source.ts";

/** Returns the value of a literal, with those in lists and objects; undefined where anything in it is computed. */
export function literalOf(node: Expression): JsonValue | undefined {
  const bare = bareOf(node);
  switch (bare.type) {
    case "StringLiteral":
    case "NumericLiteral":
    case "BooleanLiteral":
      return bare.value;
    case "NullLiteral":
      return null;
    case "TemplateLiteral":
      return bare.expressions.length === 0 ? (bare.quasis[0]?.value.cooked ?? undefined) : undefined;
    case "UnaryExpression": {
      const value = bare.operator === "-" ? literalOf(bare.argument) : undefined;
      return typeof value === "number" ? -value : undefined;
    }
    case "ArrayExpression": {
      const entries = bare.elements.map((entry) =>
        entry === null || entry.type === "SpreadElement" ? undefined : literalOf(entry),
      );
      return entries.every((entry) => entry !== undefined) ? entries : undefined;
    }
    case "ObjectExpression":
      return literalObject(bare.properties);
    default:
      return undefined;
  }
}

function literalObject(properties: readonly Node[]): JsonValue | undefined {
  const members: [name: string, value: JsonValue][] = [];
  for (const property of properties) {
    if (property.type !== "ObjectProperty" || property.computed || property.shorthand) return undefined;
    const { key } = property;
    const name = key.type === "Identifier" ? key.name : key.type === "StringLiteral" ? key.value : null;
    // Patterns are values of destructured parameters only.
    const value = literalOf(property.value as Expression);
    if (name === null || value === undefined) return undefined;
    members.push([name, value]);
  }
  return Object.fromEntries(members);
}

/** Calls `visit` with a node and all nodes in it, in the order of the text. */
export function walk(node: Node, visit: (node: Node) => void): void {
  visit(node);
  for (const [name, own] of Object.entries(node)) {
    if (name === "loc" || name.endsWith("omments")) continue;
    for (const child of Array.isArray(own) ? own : [own]) if (isNode(child)) walk(child, visit);
  }
}

const isNode = (value: unknown): value is Node =>
  typeof value === "object" && value !== null && "type" in value && typeof value.type === "string";
