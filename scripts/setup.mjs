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

/** Whether it ended well; what it prints goes to standard error, since standard output belongs to the script that follows. */
function run(command, args) {
  const isShell = process.platform === "win32";
  return spawnSync(command, args, { cwd: root, stdio: ["ignore", 2, 2], shell: isShell }).status === 0;
}

function npm(...args) {
  const cli = process.env.npm_execpath;
  return cli?.endsWith("npm-cli.js") ? run(process.execPath, [cli, ...args]) : run("npm", args);
}

const doesBunAnswer = () =>
  spawnSync(bun, ["--version"], { stdio: "ignore", shell: process.platform === "win32" }).status === 0;

if (Number(process.versions.node.split(".")[0]) < NODE_VERSION_MIN) {
  console.error(`setup: Node ${NODE_VERSION_MIN} or later is needed, this is ${process.version}`);
  process.exit(1);
}
if (!isInstalled()) {
  console.error("setup: installing the libraries of package-lock.json");
  // `npm ci` insists on every optional package of every operating system; a registry that lacks one of them need not
  // keep anyone from working: `npm install` takes the same versions and leaves out what this machine does not use.
  const isDone =
    npm("ci", "--include=dev", "--no-audit", "--no-fund") ||
    npm("install", "--no-save", "--include=dev", "--no-audit", "--no-fund");
  if (!isDone) {
    console.error("setup: the libraries could not be installed");
    process.exit(1);
  }
}
// Where install scripts are switched off, Bun's package is there without its executable: this is its own install step.
if (!doesBunAnswer()) run(process.execPath, [join(root, "node_modules", "bun", "install.js")]);
if (!doesBunAnswer()) {
  console.error(`setup: ${bun} does not run on this machine (${process.platform} ${process.arch})`);
  process.exit(1);
}
