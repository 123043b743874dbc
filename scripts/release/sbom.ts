import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { Enums, Models, Serialize, SPDX, Spec } from "@cyclonedx/cyclonedx-library";
import { VERSION } from "../../src/kernel/version.ts";
import { bundledPackages } from "../notices.ts";

const ROOT = resolve(import.meta.dir, "../..");

interface Manifest {
  version: string;
  integrity?: string;
  license?: string;
}

/**
 * Returns the bill of materials of the executables, as JSON of CycloneDX 1.6: the packages in the bundle with their licences and
 * hashes, the libraries of each system (`libraries`, by package), Bun, and the libraries that Bun names with a version. `at` is
 * its time; equal inputs give equal bytes.
 */
export async function billOfMaterials(libraries: readonly string[], at: Date): Promise<string> {
  const lock = JSON.parse(readFileSync(join(ROOT, "package-lock.json"), "utf8")) as {
    packages: Record<string, Manifest | undefined>;
  };
  const program = new Models.Component(Enums.ComponentType.Application, "platform", {
    version: VERSION,
    bomRef: `platform@${VERSION}`,
    licenses: licencesOf("MIT"),
  });
  const bom = new Models.Bom({ metadata: new Models.Metadata({ timestamp: at, component: program }) });
  const folders = [...(await bundledPackages()), ...libraries.map((name) => `node_modules/${name}`)];
  for (const folder of new Set(folders)) {
    const locked = lock.packages[folder];
    if (locked === undefined) throw new Error(`package-lock.json has no package in ${folder}`);
    const component = packageComponent(nameOf(folder), locked);
    bom.components.add(component);
    program.dependencies.add(component.bomRef);
  }
  const bun = runtimeComponent();
  bom.components.add(bun);
  program.dependencies.add(bun.bomRef);
  const content = serialized(bom);
  // The number of the document follows from what it says.
  bom.serialNumber = `urn:uuid:${uuidOf(content)}`;
  return serialized(bom);
}

const serialized = (bom: Models.Bom): string =>
  new Serialize.JsonSerializer(new Serialize.JSON.Normalize.Factory(Spec.Spec1dot6)).serialize(bom, {
    sortLists: true,
    space: 2,
  });

/** Returns the name of the package in a folder: that of its manifest, since a package may be installed under another name. */
function nameOf(folder: string): string {
  try {
    return (JSON.parse(readFileSync(join(ROOT, folder, "package.json"), "utf8")) as { name: string }).name;
  } catch {
    // A library of another system is not installed.
    return folder.slice(folder.lastIndexOf("node_modules/") + "node_modules/".length);
  }
}

function packageComponent(name: string, { version, integrity, license }: Manifest): Models.Component {
  const [, scope, bare = name] = /^(?:(@[^/]+)\/)?(.+)$/.exec(name) ?? [];
  const hashes = new Models.HashDictionary();
  if (integrity?.startsWith("sha512-") === true)
    hashes.set(
      Enums.HashAlgorithm["SHA-512"],
      Buffer.from(integrity.slice("sha512-".length), "base64").toString("hex"),
    );
  const purl = `pkg:npm/${scope === undefined ? "" : `${encodeURIComponent(scope)}/`}${bare}@${version}`;
  return new Models.Component(Enums.ComponentType.Library, bare, {
    ...(scope === undefined ? {} : { group: scope }),
    version,
    purl,
    bomRef: purl,
    hashes,
    licenses: licencesOf(license),
  });
}

/** Returns Bun with the libraries that it names by version or commit; names of interfaces, such as `napi`, are no libraries. */
function runtimeComponent(): Models.Component {
  const bun = new Models.Component(Enums.ComponentType.Platform, "bun", {
    version: Bun.version,
    purl: `pkg:github/oven-sh/bun@bun-v${Bun.version}`,
    bomRef: `bun@${Bun.version}`,
    licenses: licencesOf("MIT"),
  });
  const interfaces = new Set(["bun", "node", "v8", "napi", "modules", "unicode", "uv", "typescript", "openssl"]);
  for (const [name, version] of Object.entries(process.versions)) {
    if (version === undefined || interfaces.has(name)) continue;
    const bomRef = `bun@${Bun.version}/${name}@${version}`;
    bun.components.add(new Models.Component(Enums.ComponentType.Library, name, { version, bomRef }));
  }
  return bun;
}

function licencesOf(license: string | undefined): Models.LicenseRepository {
  if (license === undefined) return new Models.LicenseRepository();
  const id = SPDX.fixupSpdxId(license);
  return new Models.LicenseRepository([
    id === undefined ? new Models.LicenseExpression(license) : new Models.SpdxLicense(id),
  ]);
}

/** Returns a UUID of version 8 made of the hash of a text. */
function uuidOf(text: string): string {
  const hash = createHash("sha256").update(text).digest("hex");
  return [
    hash.slice(0, 8),
    hash.slice(8, 12),
    `8${hash.slice(13, 16)}`,
    `8${hash.slice(17, 20)}`,
    hash.slice(20, 32),
  ].join("-");
}
