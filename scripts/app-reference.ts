/**
 * Writes the reference of `app` in the guide (docs/app.md, below its mark) from the declarations that editors get, which a test
 * compares with the sources. Run `bun scripts/app-reference.ts` after a change; a test fails until then.
 */
import { readFileSync, writeFileSync } from "node:fs";
import { resolve } from "node:path";
import ts from "typescript-5.9";
import { DECLARATIONS_FILE } from "./declarations.ts";

export const APP_PAGE = resolve(import.meta.dir, "../docs/app.md");
/** The line of the page after which this script writes. */
const MARK = "<!-- Below: written by scripts/app-reference.ts -->";

/** The interface of `app`, from which all others are reachable, and those of hooks and rules. */
const ROOTS = ["AppAccess", "HookContext", "RuleContext"];
/** Types that the page omits, because its text describes the values of records, filters and queries. */
const PARTS = new Set([
  ...["FieldOf", "OperatorOf", "FilterOperator", "ValueAt", "OperandOf", "SelectionOf", "GroupingOf", "AggregatedOf"],
  ...["CheckedPath", "WithRelated", "ItemOf", "AnyTables", "Field"],
  ...["JsonValue", "JsonObject", "FieldOperator", "FilterOf", "ConditionOf", "JsonCondition", "ColumnCondition"],
  ...["Equality", "Ordering", "Membership", "TextSearch", "AnyField"],
]);

type Section = ts.InterfaceDeclaration | ts.TypeAliasDeclaration;

/** Returns the page with the current reference. */
export function generateAppPage(): string {
  const page = readFileSync(APP_PAGE, "utf8");
  const end = page.indexOf(MARK);
  if (end === -1) throw new Error(`${APP_PAGE} has no line ${MARK}`);
  return `${page.slice(0, end)}${MARK}\n\n${reference()}`;
}

function reference(): string {
  const file = ts.createSourceFile(
    "platform.d.ts",
    readFileSync(DECLARATIONS_FILE, "utf8"),
    ts.ScriptTarget.ESNext,
    true,
  );
  const sections = new Map<string, Section>();
  const collect = (node: ts.Node): void => {
    if (ts.isInterfaceDeclaration(node) || ts.isTypeAliasDeclaration(node)) sections.set(node.name.text, node);
    else ts.forEachChild(node, collect);
  };
  collect(file);
  const order: string[] = [];
  const visit = (name: string): void => {
    const section = sections.get(name);
    if (section === undefined || order.includes(name) || PARTS.has(name)) return;
    order.push(name);
    for (const mentioned of mentionedIn(section)) visit(mentioned);
  };
  for (const root of ROOTS) visit(root);
  return `${order.map((name) => sectionText(name, sections.get(name), file)).join("\n\n")}\n`;
}

/** Returns the names of types in a declaration, in order of occurrence. */
function mentionedIn(section: Section): string[] {
  const names: string[] = [];
  const look = (node: ts.Node): void => {
    if (ts.isTypeReferenceNode(node) && ts.isIdentifier(node.typeName)) names.push(node.typeName.text);
    if (ts.isExpressionWithTypeArguments(node) && ts.isIdentifier(node.expression)) names.push(node.expression.text);
    ts.forEachChild(node, look);
  };
  ts.forEachChild(section, look);
  return names;
}

function sectionText(name: string, section: Section | undefined, file: ts.SourceFile): string {
  if (section === undefined) throw new Error(`There is no type ${name}`);
  const about = docOf(section);
  const code = ["```ts", withoutIndent(section.getText(file)), "```"];
  return [`## ${name}`, "", ...(about === "" ? [] : [about, ""]), ...code].join("\n");
}

/** Removes the indentation of the module that contains the declaration. */
function withoutIndent(code: string): string {
  const lines = code.replace(/;$/, "").split("\n");
  const indents = lines.slice(1).flatMap((line) => (line.trim() === "" ? [] : [/^ */.exec(line)?.[0].length ?? 0]));
  const least = Math.min(...indents, Number.POSITIVE_INFINITY);
  return lines
    .map((line, at) => (at === 0 ? line : line.slice(least === Number.POSITIVE_INFINITY ? 0 : least)))
    .join("\n");
}

/** Returns the docstring of a node as one paragraph. */
function docOf(node: ts.Node): string {
  const comments = ts.getJSDocCommentsAndTags(node).filter(ts.isJSDoc);
  const text = ts.getTextOfJSDocComment(comments.at(-1)?.comment) ?? "";
  return text.replaceAll(/\s*\n\s*/g, " ").trim();
}

if (import.meta.main) writeFileSync(APP_PAGE, generateAppPage());
