import { parseExpression } from "@babel/parser";
import type { ArrowFunctionExpression, Expression, FunctionExpression, Node } from "@babel/types";
import { reasonOf } from "../../../../kernel/errors.ts";
import { AUTOMATIC_FIELDS } from "../../../config/shape/names.ts";
import { walk } from "../syntax/literals.ts";
import { membersOf, objectOf } from "../syntax/objects.ts";
import { bareOf, endOf, startOf } from "../syntax/source.ts";
import type { EditOf } from "./edit.ts";
import type { Editing, RuleText, TablePlace } from "./place.ts";

type RuleFunction = ArrowFunctionExpression | FunctionExpression;

/**
 * Returns a rule's own text. Errors: it is neither `true` nor `false` nor one function. Members of `auth` and of the record that do
 * not exist are its problems.
 */
export function givenRule(editing: Editing<EditOf<"setRule">>, place: TablePlace): RuleText {
  const { edit, fault } = editing;
  const { source = "" } = edit;
  const rule = bareOf(parsed(source, fault));
  const isFunction = rule.type === "ArrowFunctionExpression" || rule.type === "FunctionExpression";
  if (!isFunction && rule.type !== "BooleanLiteral") {
    throw fault("source", "invalid_value", "A rule is true, false, or one function");
  }
  // Without what stands around it: a comment behind it would hide the comma that follows.
  const text = source.slice(startOf(rule), endOf(rule));
  return { text, splices: [], problems: isFunction ? unknownMembers(rule, edit.rule, place) : [] };
}

function parsed(source: string, fault: Editing["fault"]): Expression {
  try {
    return parseExpression(source, { plugins: ["typescript"] });
  } catch (cause) {
    throw fault("source", "invalid_value", `The rule has a syntax error: ${reasonOf(cause)}`);
  }
}

/** The members of `auth` in rules of tables. */
const OF_AUTH = new Set(["id", "email", "emailVerified", "phone", "role", "isAnonymous", "custom", "invitation"]);

/** Returns a sentence for each member of `auth` and of the record that the function reads and that does not exist. */
function unknownMembers(rule: RuleFunction, name: string, { object, path }: TablePlace): string[] {
  const schema = objectOf(object, "schema", path);
  const fields = schema === null ? null : new Set([...membersOf(schema, `${path}.schema`).keys(), ...AUTOMATIC_FIELDS]);
  const [auth, record, next] = rule.params;
  const problems = auth === undefined ? [] : unknownIn(rule, auth, { known: OF_AUTH, what: "auth" });
  if (fields === null || path === "auth.users") return problems;
  const records = name === "update" ? [record, next] : [record];
  for (const parameter of records) {
    if (parameter !== undefined) problems.push(...unknownIn(rule, parameter, { known: fields, what: "the record" }));
  }
  return [...new Set(problems)];
}

function unknownIn(
  rule: RuleFunction,
  parameter: Node,
  { known, what }: { known: ReadonlySet<string>; what: string },
): string[] {
  const problems: string[] = [];
  const read = (name: string): void => {
    if (!known.has(name)) problems.push(`reads "${name}", which ${what} does not have`);
  };
  if (parameter.type === "ObjectPattern") {
    for (const property of parameter.properties) {
      if (property.type === "ObjectProperty" && property.key.type === "Identifier" && !property.computed)
        read(property.key.name);
    }
  }
  if (parameter.type !== "Identifier") return problems;
  walk(rule.body, (node) => {
    const isMember = node.type === "MemberExpression" || node.type === "OptionalMemberExpression";
    if (!isMember || node.object.type !== "Identifier" || node.object.name !== parameter.name) return;
    if (node.property.type === "Identifier" && !node.computed) read(node.property.name);
    else if (node.property.type === "StringLiteral") read(node.property.value);
  });
  return problems;
}
