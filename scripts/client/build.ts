import { existsSync, linkSync, mkdirSync, readdirSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { buildDashboard } from "../dashboard/bundle.ts";
import { ROOT } from "./entries.ts";
import { buildModule } from "./module.ts";
import { buildPackage } from "./package.ts";

// `bun scripts/client/build.ts module` prints the path of the file behind `/client/index.js`, `package` that of the npm package,
// and `dashboard` that of the pages at `/admin`. Each is built if its sources have changed. A server that runs from its sources
// runs this script.

const CACHE = join(ROOT, "node_modules/.cache/platform-client");
const KEPT_MS = 7 * 24 * 60 * 60 * 1000;

export const PARTS = { module: buildModule, package: buildPackage, dashboard: buildDashboard } as const;
type Part = keyof typeof PARTS;

const isPart = (name: string): name is Part => Object.hasOwn(PARTS, name);

/** Hashes everything from which the parts may be built: every source, and the versions of the packages. */
async function sourcesHash(): Promise<string> {
  const hasher = new Bun.CryptoHasher("sha256");
  const patterns = ["src/**/*.{ts,tsx,css,html,json}", "scripts/**/*.ts", "docs/**/*.md", "package-lock.json"];
  const paths = patterns.flatMap((pattern) => [...new Bun.Glob(pattern).scanSync({ cwd: ROOT })]);
  for (const path of paths.sort()) hasher.update(`${path}\n`).update(await Bun.file(join(ROOT, path)).bytes());
  return hasher.update(Bun.version).digest("hex");
}

async function builtPart(part: Part): Promise<string> {
  const path = join(CACHE, `${part}-${await sourcesHash()}`);
  if (await Bun.file(path).exists()) return path;
  const content = await PARTS[part]();
  mkdirSync(CACHE, { recursive: true });
  for (const name of readdirSync(CACHE)) {
    const other = join(CACHE, name);
    const modifiedMs = statSync(other, { throwIfNoEntry: false })?.mtimeMs ?? 0;
    if (Date.now() - modifiedMs > KEPT_MS) rmSync(other, { force: true });
  }
  // Two servers may build concurrently, and two builds differ: the one that is already served, by its offsets, stays.
  const made = `${path}.${process.pid}`;
  writeFileSync(made, content);
  try {
    linkSync(made, path);
  } catch (cause) {
    if (!existsSync(path)) throw cause;
  } finally {
    rmSync(made);
  }
  return path;
}

if (import.meta.main) {
  const [part = ""] = process.argv.slice(2);
  if (!isPart(part)) throw new Error(`There is no part "${part}": ${Object.keys(PARTS).join(", ")}`);
  console.log(await builtPart(part));
}
