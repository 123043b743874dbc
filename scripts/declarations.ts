/**
 * Writes the declarations that `platform init` lays beside a config: everything that a config imports from "platform", in
 * one file that needs no other. `bun scripts/declarations.ts` after a change of those types; a test says when it is due.
 */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { compiler } from "./typescript.ts";

const ROOT = resolve(import.meta.dir, "..");
const SOURCES = [
  "kernel/json",
  "kernel/maybe-promise",
  "kernel/errors",
  "config/app-access",
  "config/types",
  "config/room-types",
  "config/define",
];
/** Whose exports a config may import; of the others only what these need. */
const PUBLIC_SOURCES = ["config/app-access", "config/types", "config/room-types", "config/define"];
const PUBLIC_NAMES = ["AppError", "Refusal", "JsonObject", "JsonValue"];
export const DECLARATIONS_FILE = join(ROOT, "src/cli/starter/platform-declarations.txt");

/** In the words of the types of Node and Bun, so that both may be there. */
const ENVIRONMENT = `
// Where a config reads its secrets from; the types of Node or Bun, where there are some, say the same.
declare namespace NodeJS {
  interface ProcessEnv {
    [name: string]: string | undefined;
  }
  interface Process {
    env: ProcessEnv;
  }
}
declare var process: NodeJS.Process;
`;

interface Declaration {
  name: string;
  text: string;
  isPublic: boolean;
}

export function generateDeclarations(): string {
  const directory = mkdtempSync(join(tmpdir(), "platform-declarations-"));
  try {
    emit(directory);
    const all = SOURCES.flatMap((source) => {
      const text = readFileSync(join(directory, `${source}.d.ts`), "utf8");
      return split(text, PUBLIC_SOURCES.includes(source));
    });
    return assemble(all);
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
}

function emit(directory: string): void {
  const options = {
    extends: join(ROOT, "tsconfig.json"),
    compilerOptions: {
      noEmit: false,
      declaration: true,
      emitDeclarationOnly: true,
      rewriteRelativeImportExtensions: true,
      rootDir: join(ROOT, "src"),
      outDir: directory,
      paths: {},
      typeRoots: [join(ROOT, "node_modules/@types"), join(ROOT, "node_modules")],
    },
    include: [],
    files: SOURCES.map((source) => join(ROOT, `src/${source}.ts`)),
  };
  const project = join(directory, "tsconfig.json");
  writeFileSync(project, JSON.stringify(options));
  const { exitCode, stdout } = Bun.spawnSync([...compiler(), "-p", project]);
  if (exitCode !== 0) throw new Error(`tsc cannot emit the declarations:\n${stdout}`);
}

/** The statements at the top level of a declaration file, each with the comment above it. */
function split(text: string, isPublicSource: boolean): Declaration[] {
  const declarations: Declaration[] = [];
  let lines: string[] = [];
  let depth = 0;
  for (const line of text.split("\n")) {
    if (lines.length === 0 && (line === "" || /^(import|export \{)/.test(line))) continue;
    lines.push(line);
    if (/^\s*(\/\*\*|\*)/.test(line)) continue;
    depth += line.split("{").length - line.split("}").length;
    if (depth > 0) continue;
    const statement = lines.join("\n");
    lines = [];
    const head = /^(export )?(?:declare )?(?:interface|type|class|function|const) (\w+)/m.exec(statement);
    if (head?.[2] === undefined) continue;
    const isExported = head[1] !== undefined;
    const isPublic = (isExported && isPublicSource) || PUBLIC_NAMES.includes(head[2]);
    declarations.push({ name: head[2], text: statement.replace(/^export |^declare |^export declare /m, ""), isPublic });
  }
  return declarations;
}

function assemble(all: readonly Declaration[]): string {
  const byName = new Map(all.map((declaration) => [declaration.name, declaration]));
  const needed = new Set(all.filter((declaration) => declaration.isPublic));
  for (const declaration of needed) {
    for (const [word] of declaration.text.matchAll(/\b[A-Z]\w+\b/g)) {
      const other = byName.get(word);
      if (other !== undefined) needed.add(other);
    }
  }
  // The paragraphs of the specification are for those who work on the platform itself.
  const body = all
    .filter((declaration) => needed.has(declaration))
    .map(({ text }) => text.replace(/^declare /m, "").replace(/(?<=\.)\s+(\* )?(Decisions|Spec:) [^.*]*\./g, ""));
  const names = all.filter((declaration) => declaration.isPublic).map(({ name }) => name);
  const lines = [...body, `export { ${names.sort().join(", ")} };`].join("\n\n").split("\n");
  const indented = lines.map((line) => (line === "" ? "" : `  ${line}`)).join("\n");
  return `// Written by "platform init": what a config imports from "platform".\n\ndeclare module "platform" {\n${indented}\n}\n${ENVIRONMENT}`;
}

if (import.meta.main) writeFileSync(DECLARATIONS_FILE, generateDeclarations());
