// What every `npm run` asks first: that the libraries of package-lock.json are there and that Bun answers.
// Plain Node without dependencies, since it runs before anything is installed; under 100 ms when all is there.
import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const NODE_VERSION_MIN = 20;
const root = dirname(dirname(fileURLToPath(import.meta.url)));
const bun = join(root, "node_modules", ".bin", process.platform === "win32" ? "bun.cmd" : "bun");

/** The packages of a lock file by their place; none where there is no such file. */
function packagesOf(path) {
  try {
    return JSON.parse(readFileSync(join(root, path), "utf8")).packages ?? {};
  } catch (error) {
    if (error.code === "ENOENT") return {};
    throw error;
  }
}

/** npm keeps beside the packages a lock file of what it has installed. Optional ones may be for other machines. */
function isInstalled() {
  const installed = packagesOf("node_modules/.package-lock.json");
  return Object.entries(packagesOf("package-lock.json")).every(
    ([place, wanted]) =>
      place === "" || (installed[place]?.version ?? (wanted.optional && wanted.version)) === wanted.version,
  );
}

function run(command, args) {
  const isShell = process.platform === "win32";
  const { status, error } = spawnSync(command, args, {
    cwd: root,
    stdio: ["ignore", "inherit", "inherit"],
    shell: isShell,
  });
  if (status === 0) return;
  console.error(`setup: ${[command, ...args].join(" ")} failed${error ? `: ${error.message}` : ""}`);
  process.exit(1);
}

const doesBunAnswer = () =>
  spawnSync(bun, ["--version"], { stdio: "ignore", shell: process.platform === "win32" }).status === 0;

if (Number(process.versions.node.split(".")[0]) < NODE_VERSION_MIN) {
  console.error(`setup: Node ${NODE_VERSION_MIN} or later is needed, this is ${process.version}`);
  process.exit(1);
}
if (!isInstalled()) {
  console.error("setup: installing the libraries of package-lock.json");
  const npm = process.env.npm_execpath;
  const args = ["ci", "--no-audit", "--no-fund"];
  if (npm?.endsWith("npm-cli.js")) run(process.execPath, [npm, ...args]);
  else run("npm", args);
}
// Where install scripts are switched off, Bun's package is there without its executable: this is its own install step.
if (!doesBunAnswer()) run(process.execPath, [join(root, "node_modules", "bun", "install.js")]);
if (!doesBunAnswer()) {
  console.error(`setup: ${bun} does not run on this machine (${process.platform} ${process.arch})`);
  process.exit(1);
}
