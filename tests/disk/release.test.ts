import { expect, test } from "bun:test";
import { spawnSync } from "node:child_process";
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import Ajv from "ajv";
import { VERSION } from "../../src/kernel/version.ts";

// `npm run release`: what is published of a version.

/** It compresses 130 MB, and bundles what is listed. */
const RELEASE_TIMEOUT_MS = 300_000;
/** The executable that is packed: it is not built here. */
const executable = process.env["PLATFORM_EXECUTABLE"] ?? "";
const root = resolve(import.meta.dir, "../..");
const SCHEMAS = "node_modules/@cyclonedx/cyclonedx-library/res/schema";
const target = `bun-${process.platform}-${process.arch}`;
const archive = `platform-${VERSION}-${process.platform}-${process.arch}.tar.gz`;

function run(command: string, args: readonly string[], cwd: string): string {
  const { status, stdout, stderr } = spawnSync(command, args, { cwd, encoding: "utf8" });
  if (status !== 0) throw new Error(`${command} ended with ${status}: ${stderr}`);
  return stdout;
}

/** Returns a validator of bills of materials, by the published schemas. */
function billValidator(): (bill: unknown) => string {
  const schema = (name: string): object => JSON.parse(readFileSync(join(root, SCHEMAS, name), "utf8")) as object;
  const ajv = new Ajv({ strict: false, validateFormats: false });
  for (const name of ["spdx.SNAPSHOT.schema.json", "jsf-0.82.SNAPSHOT.schema.json"])
    ajv.addSchema({ ...schema(name), $id: `http://cyclonedx.org/schema/${name}` });
  const validate = ajv.compile(schema("bom-1.6.SNAPSHOT.schema.json"));
  return (bill) => (validate(bill) ? "" : ajv.errorsText(validate.errors));
}

interface Component {
  name: string;
  version: string;
  components?: Component[];
}

test.skipIf(executable === "")(
  "a release has an archive that starts, a bill of materials that holds, and hashes of all",
  () => {
    const out = mkdtempSync(join(tmpdir(), "platform-release-test-"));
    try {
      run(
        process.execPath,
        ["scripts/release.ts", "--target", target, "--executable", resolve(executable), "--out", out],
        root,
      );
      const files = ["Containerfile", "SHA256SUMS", `platform-${VERSION}.cdx.json`, `platform-${VERSION}.tgz`, archive];
      expect(readdirSync(out).toSorted()).toEqual(files.toSorted());
      expect(run("sha256sum", ["--check", "SHA256SUMS"], out).match(/: OK\n/g)).toHaveLength(files.length - 1);

      run("tar", ["-xzf", archive], out);
      const unpacked = join(out, `platform-${VERSION}`);
      expect(readdirSync(unpacked).toSorted()).toEqual(["CHANGELOG.md", "LICENSE", "platform"]);
      expect(statSync(join(unpacked, "platform")).mode & 0o777).toBe(0o755);
      expect(run(join(unpacked, "platform"), ["--version"], out)).toContain(VERSION);

      const bill = JSON.parse(readFileSync(join(out, `platform-${VERSION}.cdx.json`), "utf8")) as {
        components: Component[];
      };
      expect(billValidator()(bill)).toBe("");
      const names = bill.components.map(({ name }) => name);
      for (const name of ["elysia", "react", `sqlite-vec-${process.platform}-${process.arch}`, "bun"])
        expect(names).toContain(name);
      const bun = bill.components.find(({ name }) => name === "bun");
      expect(bun?.components?.find(({ name }) => name === "sqlite")?.version).toBe(process.versions["sqlite"] ?? "");

      // The image unpacks archives by the names that they have.
      const added = [...readFileSync(join(out, "Containerfile"), "utf8").matchAll(/^ADD (\S+)/gm)].map(
        ([, name]) => name,
      );
      expect(added).toEqual([`platform-${VERSION}-linux-x64.tar.gz`, `platform-${VERSION}-linux-arm64.tar.gz`]);
    } finally {
      rmSync(out, { recursive: true, force: true });
    }
  },
  RELEASE_TIMEOUT_MS,
);

test("an unknown target is refused, and nothing is written", () => {
  const out = join(tmpdir(), `platform-release-none-${process.pid}`);
  const { status, stderr } = spawnSync(
    process.execPath,
    ["scripts/release.ts", "--target", "bun-amiga", "--out", out],
    { cwd: root, encoding: "utf8" },
  );
  expect([status, stderr.includes('no target "bun-amiga"'), existsSync(out)]).toEqual([2, true, false]);
});
