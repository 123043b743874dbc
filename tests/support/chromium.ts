import { existsSync, mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { brotliDecompressSync } from "node:zlib";
import { unpackTar } from "modern-tar";

// The browser of the npm package @sparticuz/chromium, unpacked once per machine. The package's own `executablePath()` writes to a
// fixed path in place, so a concurrent test run would start a half-written file.

const MANIFEST = fileURLToPath(import.meta.resolve("@sparticuz/chromium/package.json"));

/** Reason why this system has no browser; null if it has one. */
export const missingBrowser: string | null =
  process.env["PLATFORM_BROWSER"] === undefined && (process.platform !== "linux" || process.arch !== "x64")
    ? `the npm package @sparticuz/chromium has no browser for ${process.platform} on ${process.arch}; PLATFORM_BROWSER names one`
    : null;

export interface BrowserProgram {
  path: string;
  env: Record<string, string>;
}

/** Returns the browser's program. PLATFORM_BROWSER names another Chromium, for systems that the package does not support. */
export async function browserProgram(): Promise<BrowserProgram> {
  const own = process.env["PLATFORM_BROWSER"];
  if (own !== undefined) return { path: own, env: {} };
  const { version } = JSON.parse(readFileSync(MANIFEST, "utf8")) as { version: string };
  const directory = join(tmpdir(), `platform-tests-chromium-${version}`);
  if (!existsSync(directory)) await unpack(directory);
  const env: Record<string, string> = { LD_LIBRARY_PATH: join(directory, "lib") };
  if (!existsSync("/etc/fonts/fonts.conf")) env["FONTCONFIG_FILE"] = join(directory, "fonts.conf");
  return { path: join(directory, "chromium"), env };
}

async function unpack(directory: string): Promise<void> {
  const packed = join(dirname(MANIFEST), "bin");
  const made = mkdtempSync(`${directory}-`);
  try {
    const decompressed = (name: string) => brotliDecompressSync(readFileSync(join(packed, name)));
    writeFileSync(join(made, "chromium"), decompressed("chromium.br"), { mode: 0o755 });
    // NSS and Expat, which a minimal system lacks, and a font.
    for (const name of ["al2023.tar.br", "fonts.tar.br"]) {
      for (const { header, data } of await unpackTar(decompressed(name))) {
        if (data === undefined || header.type === "directory" || header.name === "fonts.conf") continue;
        const path = join(made, header.name);
        mkdirSync(dirname(path), { recursive: true });
        writeFileSync(path, data);
      }
    }
    const fonts = `<fontconfig><dir>${join(directory, "fonts")}</dir><cachedir>${join(directory, "font-cache")}</cachedir></fontconfig>`;
    writeFileSync(join(made, "fonts.conf"), `<?xml version="1.0"?>\n${fonts}\n`);
    renameSync(made, directory);
  } catch (cause) {
    rmSync(made, { recursive: true, force: true });
    // Another test run was faster.
    if (!existsSync(directory)) throw cause;
  }
}
