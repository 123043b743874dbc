import { parseArgs } from "node:util";
import { compiler } from "./typescript.ts";

// `npm run check`: all automatic checks of the sources, in seconds. All of them run, then the failures are listed. `npm run check
// -- --only types` runs one of them.

const bin = (name: string): string => `node_modules/.bin/${name}`;

/** Checks the types of a project. Files unchanged since the last check are skipped. */
const types = (project: string): string[] => {
  const name = project === "." ? "all" : project.replaceAll("/", "-");
  const buildInfo = `node_modules/.cache/check/${name}.tsbuildinfo`;
  return [...compiler(), "--noEmit", "--incremental", "--tsBuildInfoFile", buildInfo, "-p", project];
};

const CHECKS: Readonly<Record<string, readonly string[]>> = {
  "format and lint": [bin("biome"), "check", "--error-on-warnings", "."],
  types: types("."),
  // The client's sources know browsers and nothing of Bun; its tests know both.
  "types of the client": types("src/client"),
  "types of the client's tests": types("tests/client"),
  "types of the dashboard": types("src/dashboard"),
  "types of the film club's pages": types("example/web"),
  tidy: [process.execPath, "test", "--only-failures", "tests/tidy.test.ts"],
  "unused code": [bin("knip"), "--no-progress"],
  "client size": [process.execPath, "scripts/client/size.ts"],
  dependencies: [process.execPath, "scripts/dependencies.ts"],
};

const { values } = parseArgs({ args: process.argv.slice(2), options: { only: { type: "string" } } });
const wanted = Object.entries(CHECKS).filter(([name]) => values.only === undefined || name.includes(values.only));
if (wanted.length === 0) {
  console.error(`There is no check "${values.only}": ${Object.keys(CHECKS).join(", ")}`);
  process.exit(2);
}

async function run([name, command]: [string, readonly string[]]) {
  const startedAt = performance.now();
  const child = Bun.spawn([...command], { stdin: "ignore", stdout: "pipe", stderr: "pipe" });
  const [output, errors, code] = await Promise.all([child.stdout.text(), child.stderr.text(), child.exited]);
  return { name, output: output + errors, isFine: code === 0, ms: Math.round(performance.now() - startedAt) };
}

const results = await Promise.all(wanted.map(run));
for (const { name, output, isFine } of results) if (!isFine) console.error(`--- ${name}\n${output.trim()}\n`);
for (const { output } of results) for (const [note] of output.matchAll(/^note: .*$/gm)) console.log(note);
for (const { name, isFine, ms } of results) console.log(`${isFine ? "ok    " : "FAILED"} ${name} (${ms} ms)`);
process.exit(results.every(({ isFine }) => isFine) ? 0 : 1);
