import { readFileSync } from "node:fs";
import { join } from "node:path";
import { zstdDecompressSync } from "node:zlib";

/** The pages of the guide in Markdown, by their paths below `docs`: `README.md`, `deploy/nginx.md`. */
export type Guide = ReadonlyMap<string, string>;

const DIRECTORY = join(import.meta.dir, "../../../../../docs");

/** Reads the guide from the executable, or from the running sources. */
export async function readGuide(): Promise<Guide> {
  if (!Bun.isStandaloneExecutable) return guideOf(DIRECTORY);
  const { default: path } = await import("platform:guide", { with: { type: "file" } });
  // scripts/build.ts wrote it.
  return new Map(JSON.parse(zstdDecompressSync(readFileSync(path)).toString()) as [string, string][]);
}

export function guideOf(directory: string): Guide {
  const names = [...new Bun.Glob("**/*.md").scanSync({ cwd: directory })].sort();
  return new Map(names.map((name) => [name.replaceAll("\\", "/"), readFileSync(join(directory, name), "utf8")]));
}
