import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { unpackTar } from "modern-tar";

const ROOT = resolve(import.meta.dir, "../..");
const CACHE = join(ROOT, "node_modules/.cache/release");

interface LockedPackage {
  version: string;
  integrity: string;
}

/**
 * Puts files of npm packages, which may be for other systems, into `folder`, each at the path that it has in `node_modules`. Files:
 * `PACKAGE/PATH`. A package is the one of package-lock.json, and is compared with its hash there. Errors: a package that is not in
 * the lock, cannot be had or has another hash; a file that it does not contain.
 */
export async function placeFiles(files: readonly string[], folder: string): Promise<void> {
  for (const file of files) {
    const [, name = "", path = ""] = /^((?:@[^/]+\/)?[^/]+)\/(.+)$/.exec(file) ?? [];
    const content = await fileOf(name, path);
    mkdirSync(dirname(join(folder, file)), { recursive: true });
    writeFileSync(join(folder, file), content, { mode: 0o755 });
  }
}

async function fileOf(name: string, path: string): Promise<Uint8Array> {
  const tar = Bun.gunzipSync(new Uint8Array(packed(name)));
  const entries = await unpackTar(tar, { filter: (header) => header.name === `package/${path}` });
  const data = entries[0]?.data;
  if (data === undefined) throw new Error(`the package ${name} has no file ${path}`);
  return data;
}

/** Returns a package as it is published. It is downloaded once. */
function packed(name: string): Buffer {
  const lock = JSON.parse(readFileSync(join(ROOT, "package-lock.json"), "utf8")) as {
    packages: Record<string, LockedPackage | undefined>;
  };
  const locked = lock.packages[`node_modules/${name}`];
  if (locked === undefined) throw new Error(`package-lock.json has no package ${name}`);
  const file = join(CACHE, `${name.replace(/^@/, "").replaceAll("/", "-")}-${locked.version}.tgz`);
  if (!existsSync(file)) {
    mkdirSync(CACHE, { recursive: true });
    const got = spawnSync("npm", ["pack", `${name}@${locked.version}`, "--pack-destination", CACHE], {
      cwd: ROOT,
      encoding: "utf8",
      shell: process.platform === "win32",
    });
    if (got.status !== 0) throw new Error(`npm does not have ${name} ${locked.version}: ${got.stderr}`);
  }
  const content = readFileSync(file);
  const hash = `sha512-${createHash("sha512").update(content).digest("base64")}`;
  if (hash !== locked.integrity) {
    rmSync(file);
    throw new Error(`${name} ${locked.version} is not the package of package-lock.json: it has the hash ${hash}`);
  }
  return content;
}
