/**
 * Writes the declarations that `platform init` puts beside a config: everything that a config imports from "platform", in one
 * file that needs no other. Run `bun scripts/declarations.ts` after a change of those types; a test fails until then.
 *
 * Declaration bundlers do not fit: they keep `Static<typeof Schema>`, so that the file would need TypeBox, and they load the
 * compiler API from the package `typescript`, whose version 7 does not have it. This uses the emitter of TypeScript 5.9, and its
 * checker for the types that follow from a schema.
 */
import { writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import ts from "typescript-5.9";

const ROOT = resolve(import.meta.dir, "..");
const SOURCES = join(ROOT, "src/");
const ENTRY = join(SOURCES, "server/config/public.ts");
export const DECLARATIONS_FILE = join(SOURCES, "server/cli/starter/platform-declarations.txt");

/** Says the same as the types of Node and Bun, so that these may be installed as well. */
export const ENVIRONMENT = `
// Where a config reads its secrets from. The types of Node and Bun, where they are installed, say the same.
declare namespace NodeJS {
  interface ProcessEnv {
    [name: string]: string | undefined;
  }
  interface Process {
    env: ProcessEnv;
  }
}
declare var process: NodeJS.Process;

// What a config uses of Node is known by name only, until @types/node is installed and named in "types" of tsconfig.json.
declare module "node:*";
interface BufferConstructor {
  from(...values: any[]): any;
  alloc(...values: any[]): any;
  concat(...values: any[]): any;
  byteLength(...values: any[]): number;
}
declare var Buffer: BufferConstructor;
`;

type Declaration =
  | ts.InterfaceDeclaration
  | ts.TypeAliasDeclaration
  | ts.ClassDeclaration
  | (ts.FunctionDeclaration & { readonly name: ts.Identifier });

const isDeclaration = (node: ts.Node): node is Declaration =>
  ts.isInterfaceDeclaration(node) ||
  ts.isTypeAliasDeclaration(node) ||
  (ts.isClassDeclaration(node) && node.name !== undefined) ||
  (ts.isFunctionDeclaration(node) && node.name !== undefined);

const nameOf = (declaration: Declaration): string => declaration.name?.text ?? "";
const printer = ts.createPrinter();
const WHOLE =
  ts.NodeBuilderFlags.NoTruncation | ts.NodeBuilderFlags.InTypeAlias | ts.NodeBuilderFlags.MultilineObjectLiterals;

export function generateDeclarations(): string {
  const { imports, declarations, exported } = flatDeclarations();
  const lines = [imports, ...declarations, `export { ${exported.join(", ")} };`].join("\n\n").split("\n");
  const indented = lines.map((line) => (line === "" ? "" : `  ${line}`)).join("\n");
  return `// Written by "platform init": what a config imports from "platform".\n\ndeclare module "platform" {\n${indented}\n}\n${ENVIRONMENT}`;
}

export interface FlatDeclarations {
  imports: string;
  /** The declarations without `export` and `declare`, in the order of the files. */
  declarations: readonly string[];
  /** The names that a config imports from "platform". */
  exported: readonly string[];
}

/**
 * Returns the declarations that a config imports from "platform", with all that they need, in one scope. `more`: further types, of
 * these files by their paths.
 */
export function flatDeclarations(more: ReadonlyMap<string, ReadonlySet<string>> = new Map()): FlatDeclarations {
  const program = ts.createProgram([ENTRY, ...more.keys()], {
    target: ts.ScriptTarget.ESNext,
    module: ts.ModuleKind.Preserve,
    allowImportingTsExtensions: true,
    strict: true,
    exactOptionalPropertyTypes: true,
    declaration: true,
    emitDeclarationOnly: true,
    skipLibCheck: true,
    types: [],
  });
  const checker = program.getTypeChecker();
  const own = program.getSourceFiles().filter(({ fileName }) => fileName.startsWith(SOURCES));
  const found = own.flatMap((file) => declarationsOf(file, program, checker));
  const exported = exportedNames(program, checker).sort();
  const needed = reachable(found, new Set([...exported, ...[...more.values()].flatMap((names) => [...names])]));
  const declarations = found.filter(({ name }) => needed.has(name)).map(({ text }) => text);
  return { imports: importsOf(own), declarations, exported };
}

/** Packages whose types a config may have installed. Without them, names that their types declare are `any`. */
const PACKAGES = ["elysia"];

/** Writes the imports of these packages' types that the files use. */
function importsOf(own: readonly ts.SourceFile[]): string {
  const names = new Map<string, Set<string>>();
  for (const statement of own.flatMap((file) => file.statements).filter(ts.isImportDeclaration)) {
    const { moduleSpecifier, importClause } = statement;
    const bindings = importClause?.namedBindings;
    if (!ts.isStringLiteral(moduleSpecifier) || !PACKAGES.includes(moduleSpecifier.text)) continue;
    if (bindings === undefined || !ts.isNamedImports(bindings)) continue;
    const known = names.get(moduleSpecifier.text) ?? new Set();
    for (const { name } of bindings.elements) known.add(name.text);
    names.set(moduleSpecifier.text, known);
  }
  return [...names]
    .map(([name, imported]) => `import type { ${[...imported].sort().join(", ")} } from "${name}";`)
    .join("\n");
}

function exportedNames(program: ts.Program, checker: ts.TypeChecker): string[] {
  const entry = program.getSourceFile(ENTRY);
  const symbol = entry === undefined ? undefined : checker.getSymbolAtLocation(entry);
  if (symbol === undefined) throw new Error(`${ENTRY} exports nothing`);
  return checker.getExportsOfModule(symbol).map(({ name }) => name);
}

interface Found {
  name: string;
  text: string;
  /** The names of the types that the declaration mentions. */
  mentions: ReadonlySet<string>;
}

/** Returns the types, classes and functions at the top level of a file. */
function declarationsOf(file: ts.SourceFile, program: ts.Program, checker: ts.TypeChecker): Found[] {
  const declarations = file.statements.filter(isDeclaration);
  const emitted = declarations.some(hasBody) ? emittedTexts(file, program) : new Map<string, string>();
  return declarations.map((declaration) => {
    const name = nameOf(declaration);
    const own = followsFromValue(declaration) ? derivedText(declaration, checker) : declaration.getText();
    const whole = (hasBody(declaration) ? emitted.get(name) : own) ?? "";
    const statement = whole.replace(/^(?:export )?(?:declare )?/, "");
    const text = [commentOf(declaration), statement].filter((part) => part !== undefined).join("\n");
    return { name, text, mentions: mentionsOf(text) };
  });
}

const hasBody = (declaration: Declaration): boolean =>
  ts.isClassDeclaration(declaration) || ts.isFunctionDeclaration(declaration);

/** Emits classes and functions without their bodies, by name. */
function emittedTexts(file: ts.SourceFile, program: ts.Program): Map<string, string> {
  let emitted = "";
  program.emit(file, (_path, text) => (emitted = text), undefined, true);
  const declarations = parsed(emitted).statements.filter(isDeclaration);
  return new Map(
    declarations.map((declaration) => [
      nameOf(declaration),
      declaration.getText().replace(/^( {4})+/gm, (spaces) => " ".repeat(spaces.length / 2)),
    ]),
  );
}

const parsed = (text: string): ts.SourceFile => ts.createSourceFile("emitted.d.ts", text, ts.ScriptTarget.ESNext, true);

/** Whether a declaration contains `typeof`: the value that it names is not declared. */
function followsFromValue(declaration: Declaration): boolean {
  const isQuery = (node: ts.Node): boolean => ts.isTypeQueryNode(node) || ts.forEachChild(node, isQuery) === true;
  return !hasBody(declaration) && isQuery(declaration);
}

/** Writes out a type derived from a schema, with the comments of the schema's members. */
function derivedText(declaration: Declaration, checker: ts.TypeChecker): string {
  const type = checker.getTypeAtLocation(declaration);
  const [base = type] = type.isClassOrInterface() ? checker.getBaseTypes(type) : [];
  const node = checker.typeToTypeNode(base, declaration, WHOLE);
  if (node === undefined) throw new Error(`${nameOf(declaration)} cannot be written out`);
  const name = nameOf(declaration);
  const written = ts.isTypeLiteralNode(node)
    ? ts.factory.createInterfaceDeclaration([], name, [], [], commented(node, base, checker).members)
    : ts.factory.createTypeAliasDeclaration([], name, [], node);
  const text = printer.printNode(ts.EmitHint.Unspecified, withoutImports(written), declaration.getSourceFile());
  return text.replace(/^( {4})+/gm, (spaces) => " ".repeat(spaces.length / 2));
}

/** Replaces `import("…").Name` by `Name`: all names are declared in the one module. */
function withoutImports(node: ts.Node): ts.Node {
  if (ts.isImportTypeNode(node) && node.qualifier !== undefined) {
    return ts.factory.createTypeReferenceNode(node.qualifier, node.typeArguments);
  }
  return ts.visitEachChild(node, withoutImports, undefined);
}

/** Returns the members in the order of the schema, with their comments. */
function commented(node: ts.TypeLiteralNode, type: ts.Type, checker: ts.TypeChecker): ts.TypeLiteralNode {
  const members = node.members.map((member) => {
    const name = member.name !== undefined && ts.isIdentifier(member.name) ? member.name.text : "";
    const property = type.getProperty(name);
    const origin = property?.declarations?.[0];
    if (property === undefined || origin === undefined || !ts.isPropertySignature(member)) return { member, at: 0 };
    const own = checker.getNonNullableType(checker.getTypeOfSymbol(property));
    const isLiteral = member.type !== undefined && ts.isTypeLiteralNode(member.type);
    const written = ts.factory.updatePropertySignature(
      member,
      member.modifiers,
      member.name,
      member.questionToken,
      isLiteral ? commented(member.type, own, checker) : member.type,
    );
    const comment = commentOf(origin)?.slice("/*".length, -"*/".length);
    if (comment === undefined) return { member: written, at: origin.pos };
    const kind = ts.SyntaxKind.MultiLineCommentTrivia;
    return { member: ts.addSyntheticLeadingComment(written, kind, comment, true), at: origin.pos };
  });
  const ordered = members.toSorted((one, other) => one.at - other.at).map(({ member }) => member);
  return ts.setEmitFlags(ts.factory.createTypeLiteralNode(ordered), ts.EmitFlags.None);
}

function commentOf(node: ts.Node): string | undefined {
  const [comment] = ts.getJSDocCommentsAndTags(node);
  return comment?.getText().replace(/\n\s*\*/g, "\n *");
}

function mentionsOf(text: string): Set<string> {
  const names = new Set<string>();
  const visit = (node: ts.Node): void => {
    if (ts.isTypeReferenceNode(node)) names.add(node.typeName.getText());
    if (ts.isExpressionWithTypeArguments(node)) names.add(node.expression.getText());
    ts.forEachChild(node, visit);
  };
  visit(parsed(text));
  return names;
}

/** Returns the names of all declarations reachable from these. */
function reachable(found: readonly Found[], names: ReadonlySet<string>): Set<string> {
  const needed = new Set(names);
  for (const name of needed) {
    const declarations = found.filter((declaration) => declaration.name === name);
    if (declarations.length > 1) throw new Error(`"${name}" is declared in several files`);
    for (const mention of declarations[0]?.mentions ?? []) needed.add(mention);
  }
  return needed;
}

if (import.meta.main) writeFileSync(DECLARATIONS_FILE, generateDeclarations());
