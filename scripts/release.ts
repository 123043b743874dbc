import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { parseArgs } from "node:util";
import { VERSION } from "../src/kernel/version.ts";
import { isTarget, ownTarget, runtimeFile, TARGETS, type Target } from "../src/server/cli/product/targets.ts";
import { buildPackage } from "./client/package.ts";
import { type ArchivedFile, tarOf, zipOf } from "./release/archives.ts";
import { placeFiles } from "./release/packages.ts";
import { billOfMaterials } from "./release/sbom.ts";

// `npm run release` writes dist/release: an archive of the executable for each system, the npm package, a bill of materials, a
// Containerfile, and SHA256SUMS of them all. Two runs of one commit write the same bytes. `-- --target bun-linux-arm64` makes the
// archives of some systems, `--out DIR` another folder, `--executable FILE` takes this system's executable as it is built.

const ROOT = resolve(import.meta.dir, "..");

const { values } = parseArgs({
  args: process.argv.slice(2),
  options: {
    target: { type: "string", multiple: true, default: Object.keys(TARGETS) },
    out: { type: "string", default: join(ROOT, "dist/release") },
    executable: { type: "string" },
  },
});

const targets = values.target.filter(isTarget);
const unknown = values.target.find((name) => !isTarget(name));
if (unknown !== undefined) {
  console.error(`There is no target "${unknown}": ${Object.keys(TARGETS).join(", ")}`);
  process.exit(2);
}

/** The time of all files: that of the commit, or SOURCE_DATE_EPOCH in seconds. */
const at = new Date(1000 * Number(process.env["SOURCE_DATE_EPOCH"] ?? output("git", "log", "-1", "--format=%ct")));

/** The libraries of a system that the executable embeds, as files of npm packages. */
function librariesOf(target: Target): string[] {
  const { platform, arch, sqliteVec } = TARGETS[target];
  const system = `${platform}-${arch}-gnu`;
  return [sqliteVec, ...(platform === "linux" ? [`@node-rs/argon2-${system}/argon2.${system}.node`] : [])];
}

/** Builds the executable for a system, from the packages of that system alone, and returns its content. */
async function executableFor(target: Target, directory: string): Promise<Uint8Array> {
  const { platform, runtime } = TARGETS[target];
  const isOwn = target === ownTarget();
  if (isOwn && values.executable !== undefined) return readFileSync(values.executable);
  const packages = isOwn ? join(ROOT, "node_modules") : join(directory, "packages", target);
  if (!isOwn) await placeFiles([`${runtime}/${runtimeFile(platform)}`, ...librariesOf(target)], packages);
  const outfile = join(directory, platform === "win32" ? `${target}.exe` : target);
  output(process.execPath, "scripts/build.ts", "--target", target, "--packages", packages, "--outfile", outfile);
  return readFileSync(outfile);
}

/** Returns the name and the content of a system's archive. */
async function archiveOf(target: Target, executable: Uint8Array): Promise<[name: string, content: Uint8Array]> {
  const { platform, arch } = TARGETS[target];
  const folder = `platform-${VERSION}`;
  const isWindows = platform === "win32";
  const plain = (name: string): ArchivedFile => ({
    path: `${folder}/${name}`,
    content: readFileSync(join(ROOT, name)),
    isExecutable: false,
  });
  const program = {
    path: `${folder}/${isWindows ? "platform.exe" : "platform"}`,
    content: executable,
    isExecutable: true,
  };
  const files = [program, plain("LICENSE"), plain("CHANGELOG.md")];
  const name = `${folder}-${isWindows ? "windows" : platform}-${arch}`;
  return isWindows ? [`${name}.zip`, await zipOf(files, at)] : [`${name}.tar.gz`, await tarOf(files, at)];
}

function output(command: string, ...args: string[]): string {
  // The bundler takes the variable for its own, before any option.
  const env = { ...process.env, NODE_ENV: "production" };
  const { status, stdout, stderr } = spawnSync(command, args, { cwd: ROOT, encoding: "utf8", env });
  if (status !== 0) throw new Error(`${command} ${args.join(" ")} ended with ${status}: ${stderr}`);
  return stdout.trim();
}

const out = resolve(values.out);
rmSync(out, { recursive: true, force: true });
mkdirSync(out, { recursive: true });
const write = (name: string, content: string | Uint8Array): void => {
  writeFileSync(join(out, name), content);
  console.log(`${name}: ${Buffer.byteLength(content).toLocaleString("en")} bytes`);
};

const directory = mkdtempSync(join(tmpdir(), "platform-release-"));
try {
  for (const target of targets) write(...(await archiveOf(target, await executableFor(target, directory))));
} finally {
  rmSync(directory, { recursive: true, force: true });
}
write(`platform-${VERSION}.tgz`, await buildPackage());
const libraries = targets.flatMap(librariesOf).map((file) => /^(?:@[^/]+\/)?[^/]+/.exec(file)?.[0] ?? "");
write(`platform-${VERSION}.cdx.json`, await billOfMaterials(libraries, at));
write(
  "Containerfile",
  readFileSync(join(ROOT, "scripts/release/Containerfile"), "utf8").replaceAll("VERSION", VERSION),
);
const sums = readdirSync(out)
  .sort()
  .map(
    (name) =>
      `${createHash("sha256")
        .update(readFileSync(join(out, name)))
        .digest("hex")}  ${name}\n`,
  );
write("SHA256SUMS", sums.join(""));
