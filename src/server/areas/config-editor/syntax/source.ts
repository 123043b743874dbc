import { parse } from "@babel/parser";
import type { Expression, File, Node, ObjectExpression, Statement } from "@babel/types";
import { reasonOf } from "../../../../kernel/errors.ts";

/** A reason why a config cannot be edited in place; `at` is an offset in its text, null where no place is at fault. */
export class NotEditable extends Error {
  readonly at: number | null;

  constructor(message: string, at: number | null = null) {
    super(message);
    this.name = "NotEditable";
    this.at = at;
  }
}

/** A config's text with its syntax tree, whose nodes say where in the text they are. */
export interface Source {
  readonly text: string;
  readonly program: File["program"];
  /** The object that `defineConfig` gets. */
  readonly root: ObjectExpression;
}

/** Parses a config. Errors: `NotEditable` for a syntax error, and for a default export that is no object in this file. */
export function parseSource(text: string): Source {
  const { program } = parseModule(text);
  return { text, program, root: rootOf(program.body) };
}

function parseModule(text: string): File {
  try {
    return parse(text, { sourceType: "module", plugins: ["typescript"] });
  } catch (cause) {
    const at = cause instanceof Error && "pos" in cause && typeof cause.pos === "number" ? cause.pos : null;
    throw new NotEditable(`The config has a syntax error: ${reasonOf(cause)}`, at);
  }
}

/** Returns the config's object: the default export, or the first argument of the call that is exported. */
function rootOf(body: readonly Statement[]): ObjectExpression {
  for (const statement of body) {
    if (statement.type !== "ExportDefaultDeclaration") continue;
    const { declaration } = statement;
    const exported = isExpression(declaration) ? resolved(declaration, body) : null;
    const config = exported?.type === "CallExpression" ? argumentOf(exported.arguments, body) : exported;
    if (config?.type === "ObjectExpression") return config;
    throw new NotEditable("The default export is not defineConfig with an object of this file", startOf(declaration));
  }
  throw new NotEditable("The config has no default export");
}

function argumentOf(given: readonly Node[], body: readonly Statement[]): Expression | null {
  const [config] = given;
  return given.length === 1 && config !== undefined && isExpression(config) ? resolved(config, body) : null;
}

const NO_EXPRESSIONS = new Set(["FunctionDeclaration", "ClassDeclaration", "TSDeclareFunction", "SpreadElement"]);
const isExpression = (node: Node): node is Expression => !NO_EXPRESSIONS.has(node.type);

/** Returns an expression without type assertions; of a name, the value of its `const` in this file. */
function resolved(node: Expression, body: readonly Statement[]): Expression {
  const bare = bareOf(node);
  if (bare.type !== "Identifier") return bare;
  for (const statement of body) {
    if (statement.type !== "VariableDeclaration" || statement.kind !== "const") continue;
    for (const { id, init } of statement.declarations) {
      if (id.type === "Identifier" && id.name === bare.name && init != null) return bareOf(init);
    }
  }
  return bare;
}

/** Returns an expression without `as`, `satisfies`, `!` and parentheses around it. */
export function bareOf(node: Expression): Expression {
  switch (node.type) {
    case "TSAsExpression":
    case "TSSatisfiesExpression":
    case "TSNonNullExpression":
    case "ParenthesizedExpression":
    case "TSTypeAssertion":
      return bareOf(node.expression);
    default:
      return node;
  }
}

/** Returns the offset at which a node begins. The parser gives each node one; its type leaves it open. */
export const startOf = (node: Node): number => node.start ?? 0;
/** Returns the offset behind a node. */
export const endOf = (node: Node): number => node.end ?? 0;

/** Returns the line of an offset, 1 or more. */
export const lineOf = (text: string, at: number): number => text.slice(0, at).split("\n").length;
