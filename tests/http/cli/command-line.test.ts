import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { existsSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import {
  platformCommand,
  type TestPlatform,
  temporaryDirectory,
  testEnvironment,
  testPlatform,
} from "../../support/index.ts";

// Each command is a process of its own, and some tests start several.
setDefaultTimeout(30_000);

interface Ended {
  code: number;
  stdout: string;
  stderr: string;
}

const WITHOUT_SECRETS = { PLATFORM_SERVICE_KEY: undefined, PLATFORM_JWT_SECRET: undefined };

async function run(args: readonly string[], options: { cwd?: string; env?: Record<string, string | undefined> } = {}) {
  const child = Bun.spawn([...platformCommand(), ...args], {
    cwd: options.cwd ?? temporaryDirectory(),
    env: testEnvironment({ ...WITHOUT_SECRETS, ...options.env }),
    stdin: "ignore",
    stdout: "pipe",
    stderr: "pipe",
  });
  const [stdout, stderr, code] = await Promise.all([
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
    child.exited,
  ]);
  return { code, stdout, stderr } satisfies Ended;
}

/** One that nobody listens on at the moment. */
function freePort(): number {
  const probe = Bun.serve({ port: 0, hostname: "127.0.0.1", fetch: () => new Response() });
  const { port = 0 } = probe;
  probe.stop(true);
  return port;
}

/** A directory with these files. */
function directoryWith(files: Record<string, string>): string {
  const directory = temporaryDirectory();
  for (const [path, text] of Object.entries(files)) {
    mkdirSync(dirname(join(directory, path)), { recursive: true });
    writeFileSync(join(directory, path), text);
  }
  return directory;
}

async function until(isSo: () => boolean | Promise<boolean>, what: string, timeoutMs = 20_000): Promise<void> {
  const deadline = Date.now() + timeoutMs;
  while (!(await isSo())) {
    if (Date.now() > deadline) throw new Error(`${what} did not happen within ${timeoutMs} ms`);
    await Bun.sleep(20);
  }
}

const lines = (text: string): string[] => text.trimEnd().split("\n");
const isAlive = (pid: number): boolean => {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
};

const FILMS = `{
  api: { schemaEndpoint: true },
  databases: {
    shared: {
      tables: {
        films: {
          schema: {
            title: { type: "string", required: true, max: 50 },
            year: { type: "integer", min: 1888 },
            isSeen: { type: "boolean", default: false },
            tags: { type: "json" },
            premiere: { type: "datetime" },
          },
          access: { read: true },
          hooks: { beforeInsert: (auth, record) => ({ ...record, title: record.title.trim() }) },
        },
        free: {},
      },
    },
    clubs: { instance: true, tables: { members: { schema: { name: { type: "text" } } }, free: {} } },
  },
}`;
const configOf = (object: string) =>
  `import { defineConfig } from "platform";\nexport default defineConfig(${object});\n`;

describe("usage", () => {
  test("[CL19] --version and --help, also of a command, on standard output", async () => {
    const [version, help, startHelp] = await Promise.all([
      run(["--version"]),
      run(["--help"]),
      run(["start", "--port", "0", "--help"]),
    ]);
    expect(version).toEqual({ code: 0, stdout: expect.stringMatching(/^\d+\.\d+\.\d+\n$/), stderr: "" });
    expect(help.code).toBe(0);
    for (const command of ["start", "dev", "init", "keys", "check", "import", "export", "backup", "restore"])
      expect(help.stdout).toContain(command);
    expect(startHelp.code).toBe(0);
    expect(startHelp.stdout).toContain("--port");
    expect(startHelp.stdout).toContain("8787");
  });

  test("[CL22] --licenses prints the licences of the runtime and of the packages in the executable", async () => {
    const { code, stdout, stderr } = await run(["--licenses"]);
    expect([code, stderr]).toEqual([0, ""]);
    expect(stdout).toMatch(/^Platform contains .*\nBun \d+\.\d+\.\d+, the runtime\n/s);
    for (const name of ["elysia", "jose", "modern-tar", "swagger-ui-dist", "sqlite-vec"]) {
      expect(stdout).toMatch(new RegExp(`\n${name} \\d+\\.\\d+\\.\\d+: (?:MIT|Apache-2\\.0)`));
    }
    expect(stdout).toContain("Permission is hereby granted");
  });

  test("[CL23] a reader that closes the output early is not an error", async () => {
    const piped = ["sh", "-c", '"$@" | head -n 1', "sh", ...platformCommand(), "--licenses"];
    const { stdout, stderr } = Bun.spawnSync(piped, { stderr: "pipe" });
    expect([stdout.toString().split("\n").length, stderr.toString()]).toEqual([2, ""]);
  });

  test("[CL23] a server continues when its output is closed", async () => {
    const port = freePort();
    const cwd = directoryWith({ "platform.config.ts": "export default {};" });
    const child = Bun.spawn([...platformCommand(), "start", "--port", String(port)], {
      ...{ cwd, env: testEnvironment(WITHOUT_SECRETS), stdin: "ignore", stdout: "pipe", stderr: "pipe" },
    });
    await child.stdout.cancel();
    const health = () =>
      fetch(`http://127.0.0.1:${port}/api/health`).then(
        ({ status }) => status,
        () => null,
      );
    await until(async () => (await health()) === 200, "the start");
    // It has tried to print its line by then, and answers all the same.
    for (let count = 0; count < 10; count++) expect(await health()).toBe(200);
    child.kill();
    expect(await child.exited).toBe(0);
  });

  const WRONG: [args: string[], words: string][] = [
    [[], "Usage: platform [options] [command]"],
    [["strat"], "unknown command 'strat'\n(Did you mean start?)"],
    [["constructor"], "unknown command"],
    [["--prot", "1"], "unknown option '--prot'"],
    [["start", "--prot", "1"], `unknown option '--prot'\n(Did you mean --port?)\nTry "platform start --help"`],
    [["start", "--port"], "option '--port <PORT>' argument missing"],
    [["start", "--port", "--drill"], "option '--port <PORT>' argument '--drill' is invalid"],
    [["start", "--data", "--drill"], "It needs a value"],
    [["start", "--drill=yes"], "unknown option '--drill=yes'"],
    [["start", "--port", "70000"], "argument '70000' is invalid. It must be a whole number from 0 to 65535"],
    [["start", "--port", "eighty"], "option '--port <PORT>' argument 'eighty' is invalid"],
    [["start", "--version"], "unknown option '--version'"],
    [["start", "surplus"], "too many arguments for 'start'"],
    [["import", "shared/films"], "missing required argument 'FILE'"],
    [["import", "films", "a.csv"], "must be NAMESPACE/TABLE"],
    [["import", "shared/films", "a.txt"], "must end in"],
    [["export", "shared/films", "a.json"], "must end in .ndjson, .jsonl, .csv"],
    [["backup"], `missing required argument 'FILE'\nTry "platform backup --help"`],
    [["restore", "a", "b"], "too many arguments for 'restore'"],
    [["export", "shared/films", "--url", "http://127.0.0.1:1"], "--url needs --key"],
  ];
  for (const [args, words] of WRONG) {
    test(`[CL1] [CL412] platform ${args.join(" ")} is wrong usage`, async () => {
      const { code, stdout, stderr } = await run(args);
      expect(code).toBe(2);
      expect(stdout).toBe("");
      expect(stderr).toContain(words);
    });
  }
});

describe("configs", () => {
  test("[CL12] check prints what is declared, and warnings on standard error", async () => {
    const backups = 'backups: { schedule: "@daily", keep: 3, to: { folder: "/backups" } },';
    const cwd = directoryWith({ "platform.config.ts": configOf(FILMS.replace("{", `{ ${backups}`)) });
    const { code, stdout, stderr } = await run(["check"], { cwd });
    expect(code).toBe(0);
    expect(stdout).toContain("table films: 5 fields; rules for read");
    expect(stdout).toContain("namespace clubs (one file per instance)");
    expect(stdout).toContain('backups at "@daily" (UTC) into /backups, 3 kept');
    expect(stderr).toContain("warning: databases.shared.tables.free:");
    expect(readdirSync(cwd)).toEqual(["platform.config.ts"]);
  });

  test("[CL12] check names jobs, schedules, triggers, webhooks, routes and the site", async () => {
    const secret = btoa("x".repeat(32));
    const config = `{
      databases: { shared: { tables: { films: {} } } },
      jobs: { charge: { run() {} } },
      cron: { nightly: { schedule: "@daily", run() {} } },
      triggers: { ship: { on: { table: "shared.films" }, run() {} } },
      webhooks: { erp: { url: "https://erp.example.com", secret: "${secret}", on: { table: "shared.films" } } },
      routes: (api) => api.get("/hello", () => "hello"),
      site: { directory: "./public" },
    }`;
    const cwd = directoryWith({ "platform.config.ts": configOf(config), "public/index.html": "<p>" });
    const { stdout } = await run(["check"], { cwd });
    const lines = ["job charge", "schedule nightly", "trigger ship", "webhook erp", "routes", "site"];
    for (const line of lines) expect(stdout).toContain(`\n  ${line}\n`);
  });

  test("[CL12][CL6] check and start report every problem with its path", async () => {
    const broken =
      '{ kv: { "a b": {} }, databases: { shared: { tables: { posts: { schema: { title: { type: "strng" } } } } } } }';
    const cwd = directoryWith({ "platform.config.ts": configOf(broken) });
    for (const { code, stdout, stderr } of await Promise.all([
      run(["check"], { cwd }),
      run(["start", "--port", "0"], { cwd }),
    ])) {
      expect(code).toBe(1);
      expect(stdout).toBe("");
      expect(stderr).toContain("has 2 problems");
      expect(stderr).toContain("kv.a b: must be a name");
      expect(stderr).toContain("databases.shared.tables.posts.schema.title.type: must be one of");
    }
    expect(existsSync(join(cwd, "data"))).toBe(false);
  });

  test.each([
    ["throw", '() => { throw new Error("no routes today") }', "routes: no routes today"],
    ["load a plugin that there is not", '(api) => api.use(import("./missing.ts"))', "missing.ts"],
  ])("[CL12][FN18] check refuses routes that %s", async (_, routes, message) => {
    const cwd = directoryWith({ "platform.config.ts": configOf(`{ routes: ${routes} }`) });
    const { code, stdout, stderr } = await run(["check"], { cwd });
    expect([code, stdout, stderr]).toEqual([1, "", expect.stringContaining(message)]);
  });

  test("[CL12] check makes routes that use app, without a server", async () => {
    const routes = `async (api) => {
      const { app } = api.decorator;
      await app.kv("names").set("started", Date.now());
      for (const one of (await app.db("shared").table("clubs").list()).items) api.get("/" + one.name, () => one);
      setInterval(() => {}, 1000);
      return api.get("/hello", ({ app }) => app.kv("names").get("started"));
    }`;
    const cwd = directoryWith({ "platform.config.ts": configOf(`{ routes: ${routes} }`) });
    const { code, stderr } = await run(["check"], { cwd });
    expect([code, stderr]).toEqual([0, ""]);
  });

  test("[CF20][CF21] a config in any directory imports platform, its own files, and packages beside it", async () => {
    const directory = directoryWith({
      "somewhere else/my.config.ts": `
        import { defineConfig } from "platform";
        import { tables } from "./lib/tables";
        import { name } from "installed";
        import { limit } from "./limit.json";
        export default defineConfig({ databases: { shared: { tables } }, kv: { [name]: {} }, rateLimits: { auth: { requests: limit, window: 60 } } });`,
      "somewhere else/lib/tables.ts": `
        import { AppError, type Rule } from "platform";
        const refuse: Rule = () => { throw new AppError(400, "no"); };
        export const tables = { posts: { access: { read: refuse } } };`,
      "somewhere else/limit.json": '{ "limit": 7 }',
      "somewhere else/node_modules/installed/package.json":
        '{ "name": "installed", "version": "1.0.0", "type": "module", "exports": "./main.js" }',
      "somewhere else/node_modules/installed/main.js": 'export const name = "from_a_package";',
    });
    const { code, stdout, stderr } = await run(["check", "--config", join(directory, "somewhere else/my.config.ts")]);
    expect(stderr).not.toContain("cannot");
    expect(stdout).toContain("key-value namespace from_a_package");
    expect(stdout).toContain("table posts: schemaless; rules for read");
    expect(code).toBe(0);
  });

  const UNLOADABLE: [what: string, files: Record<string, string>, words: string[]][] = [
    ["that is missing", {}, ["There is no config file at", "platform.config.ts"]],
    [
      "with a slip of syntax",
      { "platform.config.ts": "export default {\n  api: {,\n};" },
      ["platform.config.ts:2:9: Expected identifier", "api: {,"],
    ],
    [
      "that imports what is not there",
      { "platform.config.ts": 'import "./nope.ts"; export default {};' },
      ["./nope.ts"],
    ],
    [
      "whose import has a slip",
      { "platform.config.ts": 'import "./a.ts"; export default {};', "a.ts": "const = 1" },
      ["a.ts:1:7"],
    ],
    [
      "that throws",
      { "platform.config.ts": 'throw new TypeError("set API_URL");' },
      ["TypeError: set API_URL", "platform.config.ts:1"],
    ],
    ["that throws no error", { "platform.config.ts": 'throw "set API_URL";' }, ["set API_URL"]],
    ["without a default export", { "platform.config.ts": "export const config = {};" }, ["has no default export"]],
    ["of a promise", { "platform.config.ts": "export default Promise.resolve({});" }, ["exports a promise; await it"]],
    [
      "that imports a package which is not installed",
      {
        "platform.config.ts": 'import { x } from "not-installed-here"; export default { kv: x };',
        "node_modules/another/package.json": "{}",
      },
      ["Cannot find package 'not-installed-here'", "install it beside the config: npm install not-installed-here"],
    ],
    ["of undefined", { "platform.config.ts": "export default undefined;" }, ["must be an object, got undefined"]],
  ];
  for (const [what, files, words] of UNLOADABLE) {
    test(`[CF22] a config ${what}`, async () => {
      const { code, stdout, stderr } = await run(["check"], { cwd: directoryWith(files) });
      expect(code).toBe(1);
      expect(stdout).toBe("");
      for (const word of words) expect(stderr).toContain(word);
      expect(stderr).not.toContain("src/server/config/loading/load.ts");
    });
  }
});

describe("init", () => {
  test("[CL9] writes files that check and start accept, and overwrites nothing", async () => {
    const cwd = temporaryDirectory();
    const first = await run(["init", "app"], { cwd });
    expect(first.code).toBe(0);
    const directory = join(cwd, "app");
    expect(readdirSync(directory).sort()).toEqual([
      ".gitignore",
      "platform.config.ts",
      "platform.d.ts",
      "tsconfig.json",
    ]);
    const ignored = readFileSync(join(directory, ".gitignore"), "utf8").split("\n");
    expect(ignored).toContain("data/");
    expect(ignored).toContain(".env");
    const check = await run(["check"], { cwd: directory });
    expect({ code: check.code, stderr: check.stderr }).toEqual({ code: 0, stderr: "" });

    writeFileSync(join(directory, "platform.config.ts"), "mine");
    const again = await run(["init"], { cwd: directory });
    expect(again.code).toBe(0);
    expect(again.stdout).toContain("kept platform.config.ts");
    expect(readFileSync(join(directory, "platform.config.ts"), "utf8")).toBe("mine");
  });

  test("[CL9] the command that starts what it wrote can be pasted, also with a space in the path", async () => {
    const { stdout } = await run(["init", "my app"], { cwd: temporaryDirectory() });
    expect(stdout).toContain(`--config "${join("my app", "platform.config.ts")}"`);
  });
});

describe("admin-link", () => {
  test.each(["nowhere", "javascript:alert(1)", "https://app.example/?a", "https://app.example/#a"])(
    "[AD15] %s is no address for a link",
    async (url) => {
      const { code, stdout, stderr } = await run(["admin-link", "--url", url, "--data", temporaryDirectory()]);
      expect({ code, stdout }).toEqual({ code: 2, stdout: "" });
      expect(stderr).toContain("--url must be an http or https URL");
    },
  );

  test("[AD15] a link begins with the given address", async () => {
    const { stdout } = await run(["admin-link", "--url", "https://app.example/base/", "--data", temporaryDirectory()]);
    expect(stdout).toMatch(/^https:\/\/app\.example\/base\/admin#code=[\w-]+\n$/);
  });

  test("[AD15] a link to a server that does not run says so", async () => {
    const platform = await testPlatform({ config: "{}" });
    const link = () => run(["admin-link", "--data", platform.dataDirectory]);
    expect((await link()).stderr).toBe("");
    await platform.kill("SIGTERM");
    const { code, stdout, stderr } = await link();
    expect([code, stdout.startsWith(`${platform.url}/admin#code=`)]).toEqual([0, true]);
    expect(stderr).toContain("No server runs on");
    await platform.stop();
  });
});

describe("start", () => {
  test("[CL2][CL3] one line when ready; secrets of the environment are not printed", async () => {
    const platform = await testPlatform({ config: "{}" });
    expect((await platform.get("/api/health")).status).toBe(200);
    expect(lines(platform.stdout())).toEqual([`platform listening on ${platform.url}`]);
    expect(readdirSync(platform.dataDirectory)).not.toContain("secrets.json");
    expect(await platform.stop()).toBe(0);
  });

  test("[CL3][CL11] a generated key is printed once, keys prints it, --rotate replaces it", async () => {
    const platform = await testPlatform({ config: "{ kv: { a: {} } }", env: WITHOUT_SECRETS });
    const list = (key: string) => platform.withKey(key).post("/api/kv/a", { action: "list" });
    await until(() => lines(platform.stdout()).length === 2, "the key");
    const [, key = ""] = /^root service key: (\S+)$/m.exec(platform.stdout()) ?? [];
    expect((await list(key)).status).toBe(200);
    const keys = (...more: string[]) => run(["keys", "--data", platform.dataDirectory, ...more]);
    expect(await keys()).toEqual({ code: 0, stdout: `${key}\n`, stderr: "" });

    const rotated = (await keys("--rotate")).stdout.trim();
    expect(rotated).not.toBe(key);
    expect((await list(key)).status).toBe(200);
    await platform.restart();
    expect(lines(platform.stdout())).toEqual([`platform listening on ${platform.url}`]);
    expect((await list(key)).status).toBe(401);
    expect((await list(rotated)).status).toBe(200);
    await platform.stop();
  });

  test("[CL11] keys of a directory without a key", async () => {
    const cwd = temporaryDirectory();
    const missing = await run(["keys"], { cwd });
    expect({ code: missing.code, stdout: missing.stdout }).toEqual({ code: 1, stdout: "" });
    expect(missing.stderr).toContain("There is no data directory at ./data");
    expect(existsSync(join(cwd, "data"))).toBe(false);
  });

  test("[CL5] a second process on the same data directory is refused, and the first continues", async () => {
    const platform = await testPlatform({ config: "{}" });
    const args = ["start", "--config", platform.configFile, "--data", platform.dataDirectory, "--port", "0"];
    const second = await run(args);
    expect({ code: second.code, stdout: second.stdout }).toEqual({ code: 1, stdout: "" });
    expect(second.stderr).toContain("in use by another process");
    expect((await platform.get("/api/health")).status).toBe(200);
    expect(await platform.kill("SIGKILL")).not.toBe(0);
    await platform.restart();
    expect((await platform.get("/api/health")).status).toBe(200);
    await platform.stop();
  });

  test("[CL3] the key is printed also when the first start fails after it was generated", async () => {
    const cwd = directoryWith({ "platform.config.ts": configOf("{}") });
    const failed = await run(["start", "--host", "8.8.8.8", "--port", "0"], { cwd });
    const broken = await run(["start", "--port", "0", "--data", "other"], {
      cwd: directoryWith({
        "platform.config.ts": configOf('{ push: { fcm: { projectId: "p", serviceAccount: "./none.json" } } }'),
      }),
    });
    expect(failed.stderr).toContain("cannot listen on 8.8.8.8, port 0: it is not an address of this machine");
    expect(broken.stderr).toContain("none.json");
    for (const { code, stdout } of [failed, broken]) {
      expect([code, stdout]).toEqual([1, expect.stringMatching(/^root service key: \S+\n$/)]);
    }
    const again = await run(["start", "--host", "8.8.8.8", "--port", "0"], { cwd });
    expect([again.code, again.stdout]).toEqual([1, ""]);
  });

  test("[CL24] a new data directory is not accessible to other accounts", async () => {
    const platform = await testPlatform({ config: "{}", command: "start" });
    expect(statSync(platform.dataDirectory).mode & 0o777).toBe(0o700);
    await platform.stop();
  });

  test("[CL1] options without a value, and paths of the wrong kind", async () => {
    const cwd = directoryWith({ "platform.config.ts": configOf("{}"), file: "" });
    for (const option of ["host", "data", "config"]) {
      const { code, stderr } = await run(["start", `--${option}`, ""], { cwd });
      expect([code, stderr]).toEqual([2, expect.stringMatching(new RegExp(`--${option} .*must not be empty`))]);
    }
    const data = await run(["start", "--data", "file"], { cwd });
    expect([data.code, data.stderr]).toEqual([
      1,
      expect.stringContaining("cannot be the data directory: it is a file"),
    ]);
    const config = await run(["check", "--config", "."], { cwd });
    expect([config.code, config.stderr]).toEqual([
      1,
      expect.stringContaining("is a directory; the config must be a file"),
    ]);
    const none = await run(["check"], { cwd: temporaryDirectory() });
    expect([none.code, none.stderr]).toEqual([1, expect.stringContaining('"platform init" creates one')]);
  });

  test("[CF33] a token secret that is too short stops the start", async () => {
    const cwd = directoryWith({ "platform.config.ts": configOf("{}") });
    const { code, stderr } = await run(["start", "--port", "0"], { cwd, env: { PLATFORM_JWT_SECRET: "short" } });
    expect(code).toBe(1);
    expect(stderr).toContain("PLATFORM_JWT_SECRET must be at least 32 bytes long, got 5");
  });

  test("[CL1] a port in use: exit code 1 and a message", async () => {
    const platform = await testPlatform({ config: "{}" });
    const cwd = directoryWith({ "platform.config.ts": configOf("{}") });
    const { code, stdout, stderr } = await run(["start", "--port", new URL(platform.url).port], { cwd });
    expect(code).toBe(1);
    expect(stdout).not.toContain("listening");
    const { hostname, port } = new URL(platform.url);
    expect(stderr).toContain(
      `cannot listen on ${hostname}, port ${port}: another process uses it; stop that one, or choose`,
    );
    // Nobody sees the key of this first start otherwise.
    expect(stdout).toContain("root service key: ");
    await platform.stop();
  });

  const SLOW = `{
    databases: { shared: { tables: { slow: { access: {
      read: async (auth) => { await Bun.write("asked", ""); await Bun.sleep(MS); return true; } } } } } },
  }`;
  const isAsked = ({ configFile }: TestPlatform) =>
    until(() => existsSync(join(dirname(configFile), "asked")), "the first call of the rule");

  for (const signal of ["SIGTERM", "SIGINT"] as const) {
    test(`[CL4] ${signal}: requests under way are answered, then exit code 0`, async () => {
      const platform = await testPlatform({ config: SLOW.replace("MS", "400") });
      const answer = platform.get("/api/db/shared/tables/slow");
      await isAsked(platform);
      const ended = platform.kill(signal);
      expect((await answer).status).toBe(200);
      expect(await ended).toBe(0);
      expect(platform.get("/api/health")).rejects.toThrow();
      await platform.stop();
    });
  }

  test("[CL4] a second signal ends it at once, with another code", async () => {
    const platform = await testPlatform({ config: SLOW.replace("MS", "20_000") });
    const answer = platform.get("/api/db/shared/tables/slow").catch(() => null);
    await isAsked(platform);
    platform.process.kill("SIGTERM");
    // It has taken the signal once nobody can connect any more.
    const isRefused = () =>
      platform.get("/api/health").then(
        () => false,
        () => true,
      );
    await until(isRefused, "the refusal of connections");
    expect(platform.process.exitCode).toBeNull();
    expect(await platform.kill("SIGTERM")).toBe(143);
    await answer;
    await platform.stop();
  });

  test("[CL20] logs go to standard error, one JSON object per line", async () => {
    const config =
      "{ databases: { shared: { tables: { a: { access: { read: () => { throw new Error('broken rule'); } } } } } } }";
    const platform = await testPlatform({ config });
    await platform.get("/api/db/shared/tables/a");
    await until(() => platform.stderr().includes("broken rule"), "the log");
    const entry = lines(platform.stderr()).find((line) => line.includes("broken rule")) ?? "";
    expect(JSON.parse(entry)).toMatchObject({ level: "ERROR", logger: "platform" });
    expect(lines(platform.stdout())).toHaveLength(1);
    await platform.stop();
  });
});

test("[CF100] a signal ends a start whose config does not finish loading", async () => {
  for (const config of ["await new Promise(() => {});", "for (;;);"]) {
    const cwd = directoryWith({ "platform.config.ts": `await Bun.write("begun", "");\n${config}\nexport default {};` });
    const child = Bun.spawn([...platformCommand(), "start", "--port", "0"], { cwd, env: testEnvironment() });
    await until(() => existsSync(join(cwd, "begun")), "the config's first line");
    child.kill("SIGTERM");
    await child.exited;
    expect([config, child.signalCode ?? child.exitCode]).toEqual([config, "SIGTERM"]);
  }
});

describe("dev", () => {
  test("[CL7] restarts after a change of an import, reports a broken config, and tries the next change", async () => {
    const platform = await testPlatform({
      command: "dev",
      config:
        'import { defineConfig } from "platform";\nimport { docs } from "./settings.ts";\nexport default defineConfig({ api: { docs } });',
      files: { "settings.ts": "export const docs = true;" },
    });
    const settings = join(dirname(platform.configFile), "settings.ts");
    const urls = () => [...platform.stdout().matchAll(/listening on (\S+)/g)].map((match) => match[1] ?? "");
    const docs = async () => (await fetch(`${urls().at(-1)}/swagger`)).status;
    expect(await docs()).toBe(200);

    writeFileSync(settings, "export const docs = false;");
    await until(() => urls().length === 2, "the restart");
    expect(await docs()).toBe(404);

    writeFileSync(settings, "export const docs = 5;");
    await until(() => platform.stderr().includes("api.docs: must be true or false, got 5"), "the problem");
    writeFileSync(settings, "export const docs = ;");
    await until(() => platform.stderr().includes("settings.ts:1:21"), "the slip");
    writeFileSync(settings, "export const docs = true;");
    await until(() => urls().length === 3, "the second restart");
    expect(await docs()).toBe(200);
    expect(await platform.stop()).toBe(0);
    await expect(docs()).rejects.toThrow();
  });

  test("[CL7] a config that does not finish loading is restarted when it changes", async () => {
    const platform = await testPlatform({ config: "{}", command: "dev" });
    const good = readFileSync(platform.configFile, "utf8");
    writeFileSync(
      platform.configFile,
      'await Bun.write("begun", "");\nawait new Promise(() => {});\nexport default {};',
    );
    await until(() => existsSync(join(dirname(platform.configFile), "begun")), "the config's first line");
    writeFileSync(platform.configFile, good.replace("{}", "{ kv: { a: {} } }"));
    await until(() => (platform.stdout().match(/platform listening/g) ?? []).length === 2, "the second start");
    await platform.stop();
  });

  test("[CL8] a server ends when its dev is killed, and releases its directory", async () => {
    const config = 'console.error("server", process.pid); export default {};';
    const platform = await testPlatform({ command: "dev", config });
    const pid = Number(/^server (\d+)$/m.exec(platform.stderr())?.[1]);
    expect(pid).not.toBe(platform.process.pid);
    expect(isAlive(pid)).toBe(true);
    await platform.kill("SIGKILL");
    await until(() => !isAlive(pid), "the end of the server");
    await platform.stop();
  });
});

describe("import and export", () => {
  let cwd: string;
  beforeAll(() => {
    cwd = directoryWith({ "platform.config.ts": configOf(FILMS) });
  });

  const write = (name: string, text: string) => writeFileSync(join(cwd, name), text);
  const films = async (target = "shared/films") => {
    const { code, stdout, stderr } = await run(["export", target], { cwd });
    expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
    return stdout === "" ? [] : lines(stdout).map((line) => JSON.parse(line) as Record<string, unknown>);
  };

  test("[CL13][CL15] CSV into a stopped server: values of the declared types, hooks and defaults included", async () => {
    write(
      "films.csv",
      'id,title,year,tags,premiere\r\na,"  Alien, ""the"" first ",1979,"[""space""]",1979-05-25T00:00Z\r\nb,Up,,,\r\n,Brazil,1985,"{}",\r\n',
    );
    expect(await run(["import", "shared/films", "films.csv"], { cwd })).toEqual({
      code: 0,
      stdout: "imported 3 records into shared/films\n",
      stderr: "",
    });
    const all = await films();
    expect(all).toHaveLength(3);
    expect(all.find(({ id }) => id === "a")).toMatchObject({
      title: 'Alien, "the" first',
      year: 1979,
      isSeen: false,
      tags: ["space"],
      premiere: "1979-05-25T00:00:00.000Z",
    });
    expect(all.find(({ id }) => id === "b")).toMatchObject({ title: "Up", year: null, tags: null, premiere: null });
  });

  test("[CL17] an exported table gives the same records when it is imported again, as NDJSON and as CSV", async () => {
    const before = await films();
    for (const name of ["all.ndjson", "all.csv"]) {
      const exported = await run(["export", "shared/films", name], { cwd });
      expect(exported).toEqual({ code: 0, stdout: "", stderr: `wrote ${before.length} records to ${name}\n` });
      const other = directoryWith({
        "platform.config.ts": configOf(FILMS),
        [name]: readFileSync(join(cwd, name), "utf8"),
      });
      expect((await run(["import", "shared/films", name], { cwd: other })).code).toBe(0);
      const copy = await run(["export", "shared/films"], { cwd: other });
      expect(lines(copy.stdout).map((line) => JSON.parse(line))).toEqual(before);
    }
  });

  test("[CL14] a bad record stops the import: its line, its field, and the number of records inserted", async () => {
    const records = Array.from({ length: 1100 }, (_, n) => `{"id":"n${n}","title":"Film ${n}"}`);
    records[702] = '{"title":"Too early","year":1700}';
    write("bad.ndjson", records.join("\n"));
    const { code, stdout, stderr } = await run(["import", "shared/films", "bad.ndjson"], { cwd });
    expect({ code, stdout }).toEqual({ code: 1, stdout: "" });
    expect(stderr).toContain("line 703: year must be at least 1888, got 1700");
    expect(stderr).toContain("500 records of the file are in shared/films");
    expect((await films()).filter(({ id }) => String(id).startsWith("n"))).toHaveLength(500);
  });

  test("[CL14] other refusals: a broken element, a wrong cell, a missing table, a missing file", async () => {
    write("broken.json", '[{"title":"A"},{"title":]');
    write("cell.csv", "title,year\nA,many\n");
    write("proto.csv", "title,__proto__\nA,x\n");
    const wrong: [args: string[], words: string][] = [
      [["shared/films", "broken.json"], "element 2: is not valid JSON"],
      [["shared/films", "cell.csv"], "line 2: year must be"],
      [["shared/films", "proto.csv"], "line 2: __proto__ cannot be a field"],
      [["shared/free", "proto.csv"], "line 2: __proto__ cannot be a field"],
      [["shared/nope", "films.csv"], "nope"],
      [["shared/films", "none.csv"], "There is no file none.csv"],
    ];
    const count = (await films()).length;
    for (const [args, words] of wrong) {
      const { code, stderr } = await run(["import", ...args], { cwd });
      expect(stderr).toContain(words);
      expect(code).toBe(1);
    }
    expect(await films()).toHaveLength(count);
  });

  test("[CL16] --upsert updates records whose id exists; without it they are refused", async () => {
    write("up.json", '[{"id":"a","title":"Aliens"},{"id":"z","title":"Zodiac"}]');
    const refused = await run(["import", "shared/films", "up.json"], { cwd });
    expect(refused.code).toBe(1);
    expect(refused.stderr).toContain("element 1: id");
    expect((await run(["import", "--upsert", "shared/films", "up.json"], { cwd })).code).toBe(0);
    const all = await films();
    expect(all.find(({ id }) => id === "a")).toMatchObject({ title: "Aliens", year: 1979 });
    expect(all.find(({ id }) => id === "z")).toMatchObject({ title: "Zodiac" });
  });

  test("[CL13][CL17] instances, and tables without a schema", async () => {
    write("members.ndjson", '{"name":"Ada"}\n{"name":""}\n');
    write("free.json", '[{"a":1,"b":[true]},{"c":"x"}]');
    expect((await run(["import", "clubs/one/members", "members.ndjson"], { cwd })).code).toBe(0);
    expect((await films("clubs/one/members")).map(({ name }) => name).sort()).toEqual(["", "Ada"]);
    expect(await films("clubs/two/members")).toEqual([]);
    expect((await run(["import", "shared/free", "free.json"], { cwd })).code).toBe(0);
    expect((await run(["export", "shared/free", "free.csv"], { cwd })).code).toBe(0);
    const [head = "", ...rows] = lines(readFileSync(join(cwd, "free.csv"), "utf8").replaceAll("\r", ""));
    expect(head.split(",").sort()).toEqual(["a", "b", "c", "createdAt", "id", "updatedAt"]);
    expect(rows).toHaveLength(2);
  });

  test("[CL115] an exported CSV has no formulas, and gives the same records when it is imported again", async () => {
    const names = ['=HYPERLINK("http://evil.example","Ada")', "+1", "-5", "@a", "'=1", "it's", "\t=1"];
    const other = directoryWith({ "platform.config.ts": configOf(FILMS) });
    const texts = (of: readonly Record<string, unknown>[], field: string) => of.map((record) => record[field]).sort();
    for (const [target, field] of [
      ["clubs/formulas/members", "name"],
      // A field of a table without a schema may be called anything.
      ["clubs/formulas/free", "=field"],
    ] as const) {
      write("formulas.ndjson", names.map((name) => `${JSON.stringify({ [field]: name })}\n`).join(""));
      expect((await run(["import", target, "formulas.ndjson"], { cwd })).code).toBe(0);
      expect((await run(["export", target, "formulas.csv"], { cwd })).code).toBe(0);
      const text = readFileSync(join(cwd, "formulas.csv"), "utf8");
      for (const cell of text.split(/[,\r\n]+/)) expect(cell).not.toMatch(/^"?[=+\-@\t]/);
      writeFileSync(join(other, "formulas.csv"), text);
      expect((await run(["import", target, "formulas.csv"], { cwd: other })).code).toBe(0);
      const copy = lines((await run(["export", target], { cwd: other })).stdout).map((line) => JSON.parse(line));
      expect(texts(copy, field)).toEqual(texts(await films(target), field));
      expect(texts(copy, field)).toEqual([...names].sort());
    }
  });

  test("[CL18] a failed export leaves no file of its name", async () => {
    const { code } = await run(["export", "shared/nope", "nope.csv"], { cwd });
    expect(code).toBe(1);
    expect(readdirSync(cwd).filter((name) => name.includes("nope"))).toEqual([]);
    mkdirSync(join(cwd, "folder.csv"));
    Bun.spawnSync(["mkfifo", join(cwd, "pipe.csv")]);
    for (const file of ["folder.csv", "pipe.csv"]) {
      const refused = await run(["export", "shared/films", file], { cwd });
      expect([refused.code, refused.stderr]).toEqual([1, `platform: ${file} is not a file\n`]);
    }
    expect(readdirSync(cwd).filter((name) => name.endsWith(".part"))).toEqual([]);
    expect(statSync(join(cwd, "pipe.csv")).isFIFO()).toBe(true);
    const elsewhere = await run(["export", "shared/films", "no/such/directory.csv"], { cwd });
    expect(elsewhere.code).toBe(1);
    expect(elsewhere.stderr).toContain("no/such/directory.csv cannot be written");
  });

  test("[CL23] an export whose reader closes the output ends without a message", async () => {
    const records = Array.from({ length: 6_000 }, (_, index) => ({
      id: `p${index}`,
      title: "a title of some length, and not much more",
    }));
    write("piped.ndjson", records.map((record) => JSON.stringify(record)).join("\n"));
    expect((await run(["import", "shared/films", "piped.ndjson"], { cwd })).code).toBe(0);
    const piped = ["sh", "-c", '"$@" | head -n 1', "sh", ...platformCommand(), "export", "shared/films"];
    const { stdout, stderr } = Bun.spawnSync(piped, { cwd, env: testEnvironment(WITHOUT_SECRETS), stderr: "pipe" });
    expect([lines(stdout.toString()).length, stderr.toString()]).toEqual([1, ""]);
  });

  test("[CL410] an export of a directory that does not exist is refused, and makes none", async () => {
    const cwd = directoryWith({ "platform.config.ts": configOf(FILMS) });
    const { code, stdout, stderr } = await run(["export", "shared/films", "--data", "mistyped"], { cwd });
    expect([code, stdout, stderr]).toEqual([1, "", "platform: There is no data directory at mistyped\n"]);
    expect(readdirSync(cwd)).toEqual(["platform.config.ts"]);
  });

  test("[CL410] export and audit of a folder that is no data directory are refused, and leave nothing in it", async () => {
    const cwd = directoryWith({ "platform.config.ts": configOf(FILMS) });
    for (const command of [["export", "shared/films"], ["audit"]]) {
      const { code, stdout, stderr } = await run([...command, "--data", "."], { cwd });
      expect([code, stdout]).toEqual([1, ""]);
      expect(stderr).toContain(". is not a data directory: it has no system.db");
      expect(readdirSync(cwd)).toEqual(["platform.config.ts"]);
    }
  });

  test("[CL13][CL17] a running server, by --url and --key", async () => {
    const platform = await testPlatform({ config: FILMS });
    const elsewhere = directoryWith({ "films.csv": "title,year\nAlien,1979\nUp,2009\n" });
    const door = ["--url", platform.url, "--key", platform.serviceKey];
    const args = ["import", "shared/films", "films.csv", "--config", platform.configFile, ...door];
    const imported = await run(args, { cwd: elsewhere });
    expect(imported).toEqual({ code: 0, stdout: "imported 2 records into shared/films\n", stderr: "" });
    expect((await platform.get("/api/db/shared/tables/films/count")).body).toEqual({ total: 2 });
    const exported = await run(["export", "shared/films", "--url", platform.url], {
      cwd: elsewhere,
      env: { PLATFORM_SERVICE_KEY: platform.serviceKey },
    });
    expect(lines(exported.stdout).map((line) => JSON.parse(line).year)).toEqual([1979, 2009]);

    const stranger = await run(["export", "shared/films", "--url", platform.url, "--key", "wrong"], { cwd: elsewhere });
    expect(stranger.code).toBe(1);
    expect(stranger.stderr).toContain("Invalid service key");
    const locked = await run([
      "export",
      "shared/films",
      "--config",
      platform.configFile,
      "--data",
      platform.dataDirectory,
    ]);
    expect(locked.code).toBe(1);
    expect(locked.stderr).toContain("in use by another process");
    await platform.stop();
    const nobody = await run(["export", "shared/films", ...door], { cwd: elsewhere });
    expect(nobody.code).toBe(1);
    expect(nobody.stderr).toContain("does not answer");
  });

  test("[CL414] --url is followed nowhere else: the key goes to that address only", async () => {
    const received: (string | null)[] = [];
    const elsewhere = Bun.serve({
      port: 0,
      hostname: "127.0.0.1",
      fetch(request) {
        received.push(request.headers.get("x-platform-service-key"));
        return Response.json({ items: [], total: 0, hasMore: false, cursor: null });
      },
    });
    const location = `http://127.0.0.1:${elsewhere.port}/sign-in`;
    const redirecting = Bun.serve({ port: 0, hostname: "127.0.0.1", fetch: () => Response.redirect(location, 307) });
    write("one.ndjson", '{"title":"One"}');
    for (const args of [["export", "shared/films"], ["import", "shared/films", "one.ndjson"], ["audit"]]) {
      const url = `http://127.0.0.1:${redirecting.port}`;
      const { code, stderr } = await run([...args, "--url", url, "--key", "a-key-of-more-than-twenty-characters"], {
        cwd,
      });
      expect([code, stderr]).toEqual([1, expect.stringContaining(`${url} sends the request on to ${location}`)]);
    }
    expect(received).toEqual([]);
    await Promise.all([redirecting.stop(true), elsewhere.stop(true)]);
  });

  test("[CL15] the types of a running server's CSV come from its schema endpoint", async () => {
    const asked: unknown[] = [];
    let isSchemaOn = true;
    const fields = { title: { type: "string" }, year: { type: "integer" }, tags: { type: "json" } };
    const schema = { namespaces: { clubs: { instance: true, tables: { films: { fields } } } } };
    const server = Bun.serve({
      hostname: "127.0.0.1",
      port: 0,
      async fetch(request) {
        const { pathname } = new URL(request.url);
        if (pathname === "/api/schema")
          return Response.json(isSchemaOn ? schema : { code: 404 }, { status: isSchemaOn ? 200 : 404 });
        asked.push(pathname, await request.json());
        return Response.json({ inserted: [], updated: [], deleted: [] });
      },
    });
    const elsewhere = directoryWith({ "films.csv": 'title,year,tags,createdAt\n1984,1984,"[1]",\n' });
    const args = ["import", "clubs/one/films", "films.csv", "--url", server.url.href, "--key", "k"];
    expect((await run(args, { cwd: elsewhere })).code).toBe(0);
    expect(asked).toEqual([
      "/api/db/clubs/one/tables/films/batch",
      { inserts: [{ title: "1984", year: 1984, tags: [1] }] },
    ]);
    isSchemaOn = false;
    const blind = await run(args, { cwd: elsewhere });
    expect(blind.code).toBe(1);
    expect(blind.stderr).toContain("CSV needs the declared types");
    await server.stop(true);
  });

  afterAll(async () => {
    // Nothing that was opened in passing may still be held.
    expect((await run(["check"], { cwd })).code).toBe(0);
  });
});
