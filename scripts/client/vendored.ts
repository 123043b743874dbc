import { existsSync, readFileSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import { ROOT } from "./entries.ts";

// Declarations of packages that the client's declarations need: of Elysia, whose types a config's routes have, of Eden, and of
// their dependencies. They are copied into the npm package, which has no dependencies.

const MODULES = join(ROOT, "node_modules");

/**
 * Matches packages that are not copied, because the user's project may have them: Elysia beside the config, and React. If Elysia is
 * not installed, `fallback.d.ts` resolves to the copy.
 */
const PROVIDED = /^(?:elysia|react|react-dom)(?:\/|$)/;

/** Declarations of the runtime that these packages use, for projects without its types. */
const RUNTIMES: Readonly<Record<string, string>> = {
  bun: "export declare namespace Serve {\n  type Options<_> = unknown;\n}\nexport type Server<_> = unknown;\n",
  "fs/promises": "export declare const stat: (path: string) => Promise<{ size: number; mtime: Date }>;\n",
};

/** Disables the check of Elysia's declarations, which have errors in a project that also checks libraries. */
const UNCHECKED = `// @ts-${"nocheck"}\n`;

export const SPECIFIER = /(\bfrom\s*|\bimport\(\s*|\bimport\s+|\brequire\(\s*)(["'])([^"'\n]+)\2/g;

export class VendoredTypes {
  /** The texts by their paths in the npm package. */
  readonly files = new Map<string, string>();
  readonly packages = new Set<string>();

  /** Returns the specifier by which a file at `from`, a path in the npm package, imports the module `specifier`. */
  specifierFor(specifier: string, from: string): string {
    if (PROVIDED.test(specifier)) return specifier;
    const target = specifier in RUNTIMES ? this.#runtime(specifier) : this.#add(declarationsOf(specifier));
    return relativeSpecifier(from, target);
  }

  /** Adds the copy of Elysia's declarations, and returns its path. */
  addElysia(): string {
    return this.#add(declarationsOf("elysia"));
  }

  #runtime(name: string): string {
    const path = `vendor/runtime/${name.replace("/", "-")}.d.ts`;
    this.files.set(path, RUNTIMES[name] ?? "");
    return path;
  }

  /** Adds a declaration file with all that it imports, and returns its path in the npm package. */
  #add(file: string): string {
    const inside = relative(MODULES, file);
    const path = `vendor/${inside.replaceAll("node_modules/", "")}`;
    if (this.files.has(path)) return path;
    this.packages.add(packageOf(inside));
    // Set before its imports are added: they may be circular.
    this.files.set(path, "");
    const text = withoutComments(readFileSync(file, "utf8"));
    const rewritten = text.replace(SPECIFIER, (_, before: string, quote: string, specifier: string) => {
      const target = specifier.startsWith(".")
        ? relativeSpecifier(path, this.#add(besideOf(file, specifier)))
        : this.specifierFor(specifier, path);
      return `${before}${quote}${target}${quote}`;
    });
    this.files.set(path, UNCHECKED + rewritten);
    return path;
  }
}

/** Comments name modules in their examples. What a type is for, is in the package's own documentation. */
const withoutComments = (text: string): string => text.replace(/^\s*\/\*\*[\s\S]*?\*\/\n/gm, "");

const packageOf = (path: string): string => /^(?:@[^/]+\/)?[^/]+/.exec(path)?.[0] ?? path;

/** Returns a relative specifier: `./x.js` for the declarations `x.d.ts`. */
export function relativeSpecifier(from: string, to: string): string {
  const path = relative(dirname(from), to).replace(/\.d\.(m?)ts$/, ".$1js");
  return path.startsWith(".") ? path : `./${path}`;
}

function besideOf(file: string, specifier: string): string {
  const base = join(dirname(file), specifier);
  const stem = base.replace(/\.(m?)js$/, "");
  const found = [`${stem}.d.ts`, `${stem}.d.mts`, join(base, "index.d.ts"), join(base, "index.d.mts")].find(existsSync);
  if (found === undefined) throw new Error(`${file} imports ${specifier}, which has no declarations`);
  return found;
}

interface Manifest {
  types?: string;
  exports?: Record<string, unknown>;
}

/** Returns the file with the declarations of a module. Those for `require` serve both, as types have no other form there. */
function declarationsOf(specifier: string): string {
  const name = packageOf(specifier);
  const manifest = JSON.parse(readFileSync(join(MODULES, name, "package.json"), "utf8")) as Manifest;
  const entry = manifest.exports?.[`.${specifier.slice(name.length)}`];
  const path = typesIn(entry) ?? (specifier === name ? manifest.types : undefined);
  if (path === undefined) throw new Error(`There are no declarations of ${specifier}`);
  return join(MODULES, name, path);
}

function typesIn(entry: unknown): string | undefined {
  if (typeof entry !== "object" || entry === null) return undefined;
  // The manifest is JSON.
  const conditions = entry as Record<string, unknown>;
  const { types } = conditions;
  return typeof types === "string" ? types : (typesIn(conditions["require"]) ?? typesIn(conditions["import"]));
}
