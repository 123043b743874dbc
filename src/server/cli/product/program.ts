import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { zstdDecompressSync } from "node:zlib";
import { pathOfPages } from "../../areas/admin/pages.ts";
import { embeddedLibrary } from "../../areas/auth/means/argon2.ts";
import { pathOfPart } from "../../areas/client-files/index.ts";
import { embeddedExtension } from "../../db/vectors/extension.ts";
import { pathOfUi } from "../../http/openapi/ui-files.ts";
import { CommandError } from "../errors.ts";
import { ownTarget, TARGETS, type Target } from "./targets.ts";

/** The platform's own program: its chunks, and the files that it embeds, by import name. */
export interface Program {
  /** The directory of the chunks. */
  directory: string;
  /** The path of the entry chunk. */
  path: string;
  assets: ReadonlyMap<string, string>;
}

/**
 * Writes the program that this executable contains into `directory`. `library` is sqlite-vec's for the target, where that is not
 * this machine. Errors: this is no executable.
 */
export async function writeProgram(directory: string, target: Target, library: string | null): Promise<Program> {
  const packed = await packedProgram();
  if (packed === null) throw new CommandError('Only the executable can build one: run "npm run build" first');
  const chunks = join(directory, "program");
  mkdirSync(chunks);
  // scripts/build.ts wrote it.
  const texts = JSON.parse(zstdDecompressSync(readFileSync(packed)).toString()) as Record<string, string>;
  for (const [name, text] of Object.entries(texts)) writeFileSync(join(chunks, name), text);
  const files: [name: string, file: string | null][] = [
    [TARGETS[target].sqliteVec, library ?? (await embeddedExtension())],
    ["platform:client-module", await pathOfPart("module")],
    ["platform:client-package", await pathOfPart("package")],
    ["platform:dashboard", await pathOfPages()],
    ["platform:swagger-ui", await pathOfUi()],
    // On another system, Bun hashes passwords itself.
    ["platform:argon2", target === ownTarget() ? await embeddedLibrary() : null],
  ];
  // The program has no command that shows the guide.
  const noGuide = join(directory, "platform-guide");
  writeFileSync(noGuide, "");
  files.push(["platform:guide", noGuide]);
  const assets = new Map<string, string>();
  for (const [name, file] of files) {
    if (file === null && name !== "platform:argon2") continue;
    // The bundler cannot read files embedded in this executable.
    const copy = join(directory, name.replaceAll(/[/:]/g, "-"));
    if (copy !== file) writeFileSync(copy, file === null ? "" : readFileSync(file));
    assets.set(name, copy);
  }
  return { directory: chunks, path: join(chunks, "main.js"), assets };
}

/** Returns the path of the packed program; null when the program runs from its sources. */
async function packedProgram(): Promise<string | null> {
  if (!Bun.isStandaloneExecutable) return null;
  return (await import("platform:program", { with: { type: "file" } })).default;
}
