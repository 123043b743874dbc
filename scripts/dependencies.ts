import { existsSync, readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { generateNotices, NOTICES_FILE } from "./notices.ts";

// One of the checks of `npm run check`: the licences of the packages in the executable, the notices, and known
// vulnerabilities. tests/tidy.test.ts checks that versions are exact.

const ROOT = resolve(import.meta.dir, "..");
const AUDIT_TIMEOUT_MS = 60_000;

/** MPL-2.0 applies per file: those files are used unchanged, and the notices name their source. */
const ALLOWED = new Set([
  ...["MIT", "MIT-0", "ISC", "0BSD", "BSD-2-Clause", "BSD-3-Clause", "Apache-2.0", "CC0-1.0", "Unlicense"],
  ...["BlueOak-1.0.0", "Zlib", "MPL-2.0"],
]);
/** Licences that packages state otherwise than by an SPDX identifier. */
const STATED: Readonly<Record<string, string>> = { "MIT OR Apache": "MIT OR Apache-2.0" };

interface LockedPackage {
  version?: string;
  license?: string;
  dev?: boolean;
}

interface AuditReport {
  metadata?: { vulnerabilities?: Record<string, number> };
  vulnerabilities?: Record<string, { severity?: string }>;
}

/** Whether a licence is allowed, by SPDX: one of an OR, all of an AND. */
function isAllowed(license: string): boolean {
  const expression = (STATED[license] ?? license).replaceAll(/[()]/g, "");
  return expression.split(" OR ").some((choice) => choice.split(" AND ").every((one) => ALLOWED.has(one)));
}

/** Checks the licences of all packages except those of tests and builds, from the lock file and the installed packages. */
function licenceProblems(): string[] {
  const lock: { packages: Record<string, LockedPackage> } = JSON.parse(
    readFileSync(join(ROOT, "package-lock.json"), "utf8"),
  );
  return Object.entries(lock.packages).flatMap(([folder, { version, license: locked, dev }]) => {
    if (folder === "" || dev === true) return [];
    const manifest = join(ROOT, folder, "package.json");
    // Packages for other systems are not installed: only the lock file states their licence.
    const stated: unknown = existsSync(manifest) ? JSON.parse(readFileSync(manifest, "utf8")).license : locked;
    const license = typeof stated === "string" ? stated : "none stated";
    const name = folder.slice(folder.lastIndexOf("node_modules/") + "node_modules/".length);
    return isAllowed(license) ? [] : [`${name} ${version}: its licence, ${license}, is not among those allowed`];
  });
}

async function noticeProblems(): Promise<string[]> {
  const present = existsSync(NOTICES_FILE) ? readFileSync(NOTICES_FILE, "utf8") : "";
  return present === (await generateNotices()) ? [] : ["the notices are out of date: bun scripts/notices.ts"];
}

/** Lists vulnerabilities of severity high and above; none, with a note, when the registry does not answer. */
async function auditProblems(): Promise<string[]> {
  const npm = process.env["npm_execpath"]?.endsWith("npm-cli.js") ? ["node", process.env["npm_execpath"]] : ["npm"];
  const child = Bun.spawn([...npm, "audit", "--omit=dev", "--json"], {
    cwd: ROOT,
    stdin: "ignore",
    stdout: "pipe",
    stderr: "ignore",
    timeout: AUDIT_TIMEOUT_MS,
  });
  const report = parseReport(await child.stdout.text());
  if (report?.metadata?.vulnerabilities === undefined) {
    console.log("note: no audit, as the registry does not answer");
    return [];
  }
  return Object.entries(report.vulnerabilities ?? {})
    .filter(([, { severity }]) => severity === "high" || severity === "critical")
    .map(([name, { severity }]) => `${name} has a known vulnerability of severity ${severity}: npm audit`);
}

function parseReport(text: string): AuditReport | null {
  try {
    // The output of npm; each member is checked before it is used.
    return JSON.parse(text) as AuditReport | null;
  } catch {
    return null;
  }
}

const problems = [...licenceProblems(), ...(await noticeProblems()), ...(await auditProblems())];
for (const problem of problems) console.error(problem);
process.exit(problems.length === 0 ? 0 : 1);
