import type { ImportDeclaration } from "@babel/types";
import { walk } from "./literals.ts";
import type { Splice } from "./objects.ts";
import { endOf, type Source, startOf } from "./source.ts";

const MODULES = new Set(["platform", "#platform"]);

/** Returns the local names of exports of "platform", with the replacements that import those that are missing. */
export function namesOfPlatform(
  source: Source,
  wanted: readonly string[],
): { local: (name: string) => string; splices: Splice[] } {
  const declaration = source.program.body.find(
    (one): one is ImportDeclaration =>
      one.type === "ImportDeclaration" && one.importKind !== "type" && MODULES.has(one.source.value),
  );
  const locals = importedBy(declaration);
  const used = namesIn(source);
  const added: string[] = [];
  for (const name of wanted) {
    if (locals.has(name)) continue;
    const local = used.has(name) ? freeName(`${name}Of`, used) : name;
    locals.set(name, local);
    added.push(local === name ? name : `${name} as ${local}`);
  }
  return { local: (name) => locals.get(name) ?? name, splices: importing(source, declaration, added) };
}

/** Returns the local name of each export that the statement imports by value. */
function importedBy(declaration: ImportDeclaration | undefined): Map<string, string> {
  const locals = new Map<string, string>();
  for (const specifier of declaration?.specifiers ?? []) {
    if (specifier.type !== "ImportSpecifier" || specifier.importKind === "type") continue;
    const { imported, local } = specifier;
    locals.set(imported.type === "Identifier" ? imported.name : imported.value, local.name);
  }
  return locals;
}

/** Returns all names of variables that occur in the config; those of members are no names of variables. */
function namesIn({ program }: Source): Set<string> {
  const names = new Set<string>();
  walk(program, (node) => {
    if (node.type === "Identifier") names.add(node.name);
  });
  return names;
}

function freeName(wanted: string, used: ReadonlySet<string>): string {
  let name = wanted;
  for (let count = 2; used.has(name); count++) name = `${wanted}${count}`;
  return name;
}

function importing(
  { program, text }: Source,
  declaration: ImportDeclaration | undefined,
  added: readonly string[],
): Splice[] {
  if (added.length === 0) return [];
  const last = declaration?.specifiers.findLast((one) => one.type === "ImportSpecifier");
  if (last !== undefined) return [{ start: endOf(last), end: endOf(last), text: `, ${added.join(", ")}` }];
  const at = program.body[0] === undefined ? text.length : startOf(program.body[0]);
  return [{ start: at, end: at, text: `import { ${added.join(", ")} } from "platform";\n` }];
}
