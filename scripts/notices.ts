/**
 * Writes the licences of everything that the executable contains: the packages in the bundle, and the runtime.
 * `platform --licenses` prints them. Run `bun scripts/notices.ts` after a change of dependencies; `npm run check` fails until
 * then.
 */
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { bundleClient } from "./client/bundle.ts";
import { PACKAGE_ENTRIES, SOURCES } from "./client/entries.ts";
import { bundleDashboard } from "./dashboard/bundle.ts";
import { queryTexts } from "./query-texts.ts";

const ROOT = resolve(import.meta.dir, "..");
export const NOTICES_FILE = join(ROOT, "src/server/cli/notices/third-party.txt");
const RULE = "=".repeat(80);
const LICENCE_FILE = /^(?:licen[cs]e|notice|copying)/i;
/** Matches libraries that exist once per system; a build includes its own. All have the licence of the package. */
const OF_ONE_SYSTEM = /^sqlite-vec-/;

/** Packages whose files the executable contains outside a bundle. */
const COMPRESSED = ["node_modules/swagger-ui-dist"];

/** Licences of code copied into the sources: a line with name and licence, one with the origin, and the text. */
const COPIED = "src/**/*.licence.txt";

interface Manifest {
  name: string;
  version: string;
  license?: string;
  repository?: string | { url?: string };
}

const HEAD = `Platform contains the following software of others, unchanged. Each part is under its own licence, which stands below it.
The source of a package is published under its name and version in the npm registry, and where its entry says.
`;

/** Returns the folders of the packages in the bundle, by name. */
export async function bundledPackages(): Promise<string[]> {
  const programs = [...new Bun.Glob("src/**/*-job.ts").scanSync({ cwd: ROOT })];
  const client = await bundleClient(Object.values(PACKAGE_ENTRIES), { root: SOURCES, minify: false });
  const dashboard = await bundleDashboard();
  const { metafile } = await Bun.build({
    external: ["platform:*"],
    entrypoints: ["src/main.ts", ...programs].map((path) => join(ROOT, path)),
    root: join(ROOT, "src"),
    target: "bun",
    format: "esm",
    plugins: [queryTexts],
    metafile: true,
  });
  const inputs = [metafile, client.metafile, dashboard.metafile].flatMap((bundle) => {
    if (bundle === undefined) throw new Error("the build does not tell what it takes in");
    return Object.keys(bundle.inputs);
  });
  const folders = inputs.flatMap((path) => {
    const [, folder] = /(node_modules\/.*?)$/.exec(path) ?? [];
    const inner = folder?.lastIndexOf("node_modules/") ?? -1;
    const [name] = /^(?:@[^/]+\/)?[^/]+/.exec(folder?.slice(inner + "node_modules/".length) ?? "") ?? [];
    return folder === undefined || name === undefined || OF_ONE_SYSTEM.test(name)
      ? []
      : [`${folder.slice(0, inner)}node_modules/${name}`];
  });
  return [...new Set([...folders, ...COMPRESSED])].sort();
}

function noticeOf(folder: string): string {
  const path = join(ROOT, folder);
  // Every package has a manifest, which npm has parsed.
  const manifest = JSON.parse(readFileSync(join(path, "package.json"), "utf8")) as Manifest;
  const { name, version, license = "none stated", repository } = manifest;
  const source = typeof repository === "string" ? repository : repository?.url;
  const texts = readdirSync(path)
    .filter((file) => LICENCE_FILE.test(file))
    .sort()
    .map((file) => readFileSync(join(path, file), "utf8").replaceAll("\r\n", "\n").trim());
  const body = texts.length === 0 ? "The package has no file with the text of its licence." : texts.join("\n\n");
  const from = source === undefined ? "" : `\n${source}`;
  return `${RULE}\n${name} ${version}: ${license}${from}\n${RULE}\n\n${body}\n`;
}

function copiedNotices(): string[] {
  const paths = [...new Bun.Glob(COPIED).scanSync({ cwd: ROOT })].sort();
  return paths.map((path) => {
    const [name, source, ...text] = readFileSync(join(ROOT, path), "utf8").split("\n");
    return `${RULE}\n${name}\n${source}\n${RULE}\n\n${text.join("\n").trim()}\n`;
  });
}

/** Returns the notice of the runtime about itself and its libraries. */
function runtimeNotice(): string {
  const text = readFileSync(join(ROOT, "node_modules/bun-types/docs/project/license.mdx"), "utf8");
  const body = text.replace(/^---\n[\s\S]*?\n---\n/, "").trim();
  return `${RULE}\nBun ${Bun.version}, the runtime\nhttps://github.com/oven-sh/bun\n${RULE}\n\n${body}\n`;
}

/** Returns the notices of installed packages, by their names. */
export const noticesOf = (packages: readonly string[]): string =>
  packages.map((name) => noticeOf(`node_modules/${name}`)).join("\n");

export async function generateNotices(): Promise<string> {
  const packages = (await bundledPackages()).map(noticeOf);
  // A package that is installed twice in one version is one entry.
  return [HEAD, runtimeNotice(), ...new Set(packages), ...copiedNotices()].join("\n");
}

if (import.meta.main) writeFileSync(NOTICES_FILE, await generateNotices());
