import { dirname, join, relative, resolve } from "node:path";
import ts from "typescript-5.9";
import { ENVIRONMENT, flatDeclarations } from "../declarations.ts";
import { CLIENT, PACKAGE_ENTRIES, SOURCES } from "./entries.ts";
import { relativeSpecifier, SPECIFIER, VendoredTypes } from "./vendored.ts";

// The declarations of the npm package: the client's file by file, and the server types that they and configs need in one file,
// `types/config.d.ts`, where types derived from a schema are written out.

const CONFIG = "types/config.d.ts";

export interface PackageTypes {
  /** The texts by their paths in the npm package. */
  files: ReadonlyMap<string, string>;
  /** The packages whose declarations are copied. */
  packages: ReadonlySet<string>;
}

export function packageTypes(): PackageTypes {
  const vendored = new VendoredTypes();
  const files = new Map<string, string>();
  const fromServer = new Map<string, Set<string>>();
  for (const [source, text] of emittedClient()) {
    const path = `types/${declarationsOf(relative(SOURCES, source))}`;
    files.set(path, rewritten(source, text, { path, vendored, fromServer }));
  }
  const flat = flatDeclarations(fromServer);
  const imports = flat.imports.replace(SPECIFIER, (_, before: string, quote: string, specifier: string) => {
    return `${before}${quote}${vendored.specifierFor(specifier, CONFIG)}${quote}`;
  });
  const declared = flat.declarations.map((text) => text.replace(/^((?:\/\*[\s\S]*?\*\/\s*)?)(\w+)/, declaredAs));
  files.set(CONFIG, `${[imports, ...declared].join("\n\n")}\n`);

  const fallback = '/// <reference path="./fallback.d.ts" />\n';
  files.set("index.d.ts", `${fallback}export { ${flat.exported.join(", ")} } from "./types/config.js";\n`);
  for (const [name, source] of Object.entries(PACKAGE_ENTRIES)) {
    const target = `types/${declarationsOf(relative(SOURCES, source))}`;
    if (files.has(target)) {
      files.set(`${name}.d.ts`, `${fallback}export * from "${relativeSpecifier(`${name}.d.ts`, target)}";\n`);
    }
  }
  files.set("elysia.d.ts", `export * from "${relativeSpecifier("elysia.d.ts", vendored.addElysia())}";\n`);
  files.set("fallback.d.ts", FALLBACK);
  for (const [path, text] of vendored.files) files.set(path, text);
  return { files, packages: vendored.packages };
}

/** Declares a pattern, which applies only if no package of the name is installed. */
const FALLBACK = `${ENVIRONMENT.trimStart()}
declare module "elysia*" {
  export * from "platform/elysia";
}
`;

const declaredAs = (_: string, comment: string, keyword: string): string =>
  `${comment}export ${keyword === "class" || keyword === "function" || keyword === "abstract" ? "declare " : ""}${keyword}`;

const declarationsOf = (path: string): string => path.replace(/\.tsx?$/, ".d.ts");

/** Emits the declarations of the client's files, by their sources. */
function emittedClient(): Map<string, string> {
  const file = join(CLIENT, "tsconfig.json");
  const { config, error } = ts.readConfigFile(file, ts.sys.readFile);
  if (error !== undefined) throw new Error(ts.flattenDiagnosticMessageText(error.messageText, "\n"));
  const { options } = ts.parseJsonConfigFileContent(config, ts.sys, CLIENT);
  const entries = Object.values(PACKAGE_ENTRIES).filter((path) => path.startsWith(CLIENT));
  const program = ts.createProgram(entries, {
    ...options,
    noEmit: false,
    declaration: true,
    emitDeclarationOnly: true,
  });
  const emitted = new Map<string, string>();
  for (const source of program.getSourceFiles()) {
    if (!source.fileName.startsWith(CLIENT) || source.isDeclarationFile) continue;
    program.emit(source, (_path, text) => emitted.set(source.fileName, text), undefined, true);
  }
  return emitted;
}

interface Target {
  /** The path in the npm package. */
  path: string;
  vendored: VendoredTypes;
  /** Collects the types that the client takes from files of the server. */
  fromServer: Map<string, Set<string>>;
}

function rewritten(source: string, text: string, { path, vendored, fromServer }: Target): string {
  for (const { file, names } of importsFromServer(source, text)) {
    const known = fromServer.get(file) ?? new Set();
    for (const name of names) known.add(name);
    fromServer.set(file, known);
  }
  return text.replace(SPECIFIER, (_, before: string, quote: string, specifier: string) => {
    const target = specifier.startsWith(".")
      ? relativeSpecifier(path, packagePathOf(resolve(dirname(source), specifier)))
      : vendored.specifierFor(specifier, path);
    return `${before}${quote}${target}${quote}`;
  });
}

const packagePathOf = (source: string): string =>
  source.startsWith(CLIENT) ? `types/${declarationsOf(relative(SOURCES, source))}` : CONFIG;

/** Returns the imports of a client's file from the server. Errors: it imports or exports everything of such a file. */
function importsFromServer(source: string, text: string): { file: string; names: string[] }[] {
  const parsed = ts.createSourceFile(source, text, ts.ScriptTarget.ESNext, true);
  const found: { file: string; names: string[] }[] = [];
  const add = (specifier: string, names: string[] | null): void => {
    const file = resolve(dirname(source), specifier);
    if (!specifier.startsWith(".") || file.startsWith(CLIENT)) return;
    if (names === null) throw new Error(`${source} must name what it takes from ${specifier}`);
    found.push({ file, names });
  };
  const visit = (node: ts.Node): void => {
    if (ts.isImportDeclaration(node) && ts.isStringLiteral(node.moduleSpecifier)) {
      const bindings = node.importClause?.namedBindings;
      const names = bindings !== undefined && ts.isNamedImports(bindings) ? bindings.elements.map(importedName) : null;
      add(node.moduleSpecifier.text, names);
    }
    if (
      ts.isExportDeclaration(node) &&
      node.moduleSpecifier !== undefined &&
      ts.isStringLiteral(node.moduleSpecifier)
    ) {
      const { exportClause } = node;
      const isNamed = exportClause !== undefined && ts.isNamedExports(exportClause);
      add(node.moduleSpecifier.text, isNamed ? exportClause.elements.map(importedName) : null);
    }
    if (ts.isImportTypeNode(node) && ts.isLiteralTypeNode(node.argument) && ts.isStringLiteral(node.argument.literal)) {
      add(node.argument.literal.text, node.qualifier === undefined ? null : [node.qualifier.getText()]);
    }
    ts.forEachChild(node, visit);
  };
  visit(parsed);
  return found;
}

const importedName = ({ propertyName, name }: ts.ImportSpecifier | ts.ExportSpecifier): string =>
  (propertyName ?? name).text;
