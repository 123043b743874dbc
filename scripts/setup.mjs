// Runs before every `npm run`: installs the packages of package-lock.json, and Bun, if they are missing. With `--serving`, only
// those of `dependencies`, which `npm start` needs: compilers, browsers and checkers are installed when tests need them. Plain Node
// without dependencies, since it runs before the installation; under 100 ms when there is nothing to install.
import { spawnSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const NODE_VERSION_MIN = 20;
const root = dirname(dirname(fileURLToPath(import.meta.url)));
const bun = join(root, "node_modules", ".bin", process.platform === "win32" ? "bun.cmd" : "bun");

/** Returns the packages of a lock file by their path; none if the file does not exist. */
function packagesOf(path) {
  try {
    return JSON.parse(readFileSync(join(root, path), "utf8")).packages ?? {};
  } catch (error) {
    if (error.code === "ENOENT") return {};
    throw error;
  }
}

/**
 * Whether the packages are installed, by npm's lock file beside them. Optional packages may be for other systems; packages for
 * development alone are absent for `serving`.
 */
function isInstalled({ serving }) {
  const installed = packagesOf("node_modules/.package-lock.json");
  return Object.entries(packagesOf("package-lock.json")).every(([place, wanted]) => {
    if (place === "" || (serving && wanted.dev === true)) return true;
    const found = installed[place];
    if (found === undefined) return wanted.optional === true || (serving && wanted.devOptional === true);
    // A package's folder may be deleted although its entry remains.
    return found.version === wanted.version && existsSync(join(root, place, "package.json"));
  });
}

/**
 * Runs a command, and returns whether it succeeded. Its output goes to standard error, as standard output belongs to the script
 * that follows.
 */
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
/** Whether packages for development alone are installed: they stay. */
const hasDevelopment = () =>
  Object.values(packagesOf("node_modules/.package-lock.json")).some(({ dev }) => dev === true);

const isServing = process.argv.includes("--serving") && !hasDevelopment();
if (!isInstalled({ serving: isServing })) {
  console.error("setup: installing the libraries of package-lock.json");
  const kind = isServing ? "--omit=dev" : "--include=dev";
  // `npm ci` requires the optional packages of all operating systems, and fails when the registry lacks one of them. `npm install`
  // uses the same versions, and only the packages for this machine. It also extends an installation by `npm start`, which `npm ci`
  // would remove first.
  const isDone =
    (!isInstalled({ serving: true }) && npm("ci", kind, "--no-audit", "--no-fund")) ||
    npm("install", "--no-save", kind, "--no-audit", "--no-fund");
  if (!isDone) {
    console.error("setup: the libraries could not be installed");
    process.exit(1);
  }
}
// With install scripts disabled, Bun's package has no executable: this is the package's own install step.
if (!doesBunAnswer()) run(process.execPath, [join(root, "node_modules", "bun", "install.js")]);
if (!doesBunAnswer()) {
  console.error(`setup: ${bun} does not run on this machine (${process.platform} ${process.arch})`);
  process.exit(1);
}
