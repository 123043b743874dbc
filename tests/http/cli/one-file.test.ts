import { beforeAll, describe, expect, test } from "bun:test";
import { chmodSync, copyFileSync, existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { ownChild } from "../../support/children.ts";
import { temporaryDirectory } from "../../support/index.ts";

const ROOT = resolve(import.meta.dir, "../../..");
const READY = /listening on (http:\/\/\S+)/;
const BUILD_TIMEOUT_MS = 300_000;

let platform: string;

beforeAll(() => {
  const given = process.env["PLATFORM_EXECUTABLE"] ?? "";
  platform = given === "" ? join(temporaryDirectory(), "platform") : resolve(given);
  if (given !== "") return;
  const { exitCode } = Bun.spawnSync([process.execPath, join(ROOT, "scripts/build.ts"), "--outfile", platform]);
  expect(exitCode).toBe(0);
}, BUILD_TIMEOUT_MS);

interface Ended {
  code: number;
  output: string;
}

/** Without any variable of the environment: neither PATH nor HOME. */
function run(command: string[], { cwd = temporaryDirectory(), env = {} as Record<string, string> } = {}): Ended {
  const { exitCode, stdout, stderr } = Bun.spawnSync(command, { cwd, env, stdin: "ignore" });
  return { code: exitCode, output: `${stdout}${stderr}` };
}

/** A directory with these files. */
function project(files: Record<string, string>): string {
  const directory = temporaryDirectory();
  for (const [name, text] of Object.entries(files)) {
    mkdirSync(dirname(join(directory, name)), { recursive: true });
    writeFileSync(join(directory, name), text);
  }
  return directory;
}

const FILMS = `import { defineConfig, Refusal } from "platform";
import { t } from "elysia";
import { shout } from "./lib/shout.ts";
import slug from "slugs";

export default defineConfig({
  databases: { shared: { tables: { films: {
    schema: { title: { type: "string", required: true }, slug: { type: "string" }, loud: { type: "string" } },
    access: { read: true, insert: true },
    hooks: { beforeInsert: (_auth, film) => {
      if (film.title === "") throw new Refusal("A film has a title", { status: 422 });
      return { ...film, slug: slug(film.title), loud: shout(film.title) };
    } },
  } } } },
  vectorize: { plots: { dimensions: 2, metric: "cosine" } },
  site: { directory: "./web", headers: { "X-Frame-Options": "DENY" } },
  routes: (api) => api.get("/shout/:text", ({ params }) => ({ text: shout(params.text) }), {
    access: true,
    params: t.Object({ text: t.String({ maxLength: 20 }) }),
  }),
  serviceKeys: { tool: { key: process.env.TOOL_KEY ?? "a-key-for-the-build-only", scopes: ["vectorize:*:*:*"] } },
});
`;
const FILM_CLUB = {
  "platform.config.ts": FILMS,
  "web/index.html": "<h1>Films</h1>",
  "web/posters/heat.txt": "A poster of Heat",
  "web/.env": "not to be served",
  "lib/shout.ts": "export const shout = (text: string): string => text.toUpperCase();\n",
  "node_modules/slugs/package.json": '{"name":"slugs","version":"1.0.0","main":"index.js"}',
  "node_modules/slugs/index.js": "module.exports = (text) => text.toLowerCase().replaceAll(' ', '-');\n",
  "package.json": '{"name":"@club/films","version":"1.4.2"}',
};

interface Server {
  url: string;
  stop(): Promise<number>;
}

async function start(executable: string, cwd: string, env: Record<string, string> = {}): Promise<Server> {
  const child = Bun.spawn([executable, "start", "--port", "0"], { cwd, env, stdout: "pipe", stderr: "ignore" });
  ownChild(child);
  let output = "";
  for await (const chunk of child.stdout) {
    output += new TextDecoder().decode(chunk);
    if (READY.test(output)) break;
  }
  const url = READY.exec(output)?.[1] ?? "";
  return {
    url,
    stop() {
      child.kill();
      return child.exited;
    },
  };
}

async function ask(
  url: string,
  body?: unknown,
  headers: Record<string, string> = {},
): Promise<{ status: number; body: Record<string, unknown> }> {
  const init = body === undefined ? {} : { method: "POST", body: JSON.stringify(body) };
  const answer = await fetch(url, { ...init, headers: { "content-type": "application/json", ...headers } });
  return { status: answer.status, body: (await answer.json()) as Record<string, unknown> };
}

describe("platform build", () => {
  test("[CL120] [CL121] the executable runs alone: its config, what that imports, and all of the platform are inside", async () => {
    const built = run([platform, "build"], { cwd: project(FILM_CLUB) });
    expect(built).toEqual({ code: 0, output: expect.stringContaining("films: films 1.4.2") });
    const made = built.output.split(": ")[0] ?? "";
    const alone = project({ "platform.config.ts": "throw new Error('not this one')" });
    const films = join(alone, "films");
    copyFileSync(made, films);

    expect(run([films, "--version"]).output).toMatch(/^films 1\.4\.2 \(platform \d+\.\d+\.\d+\)\n$/);
    for (const command of ["init", "dev", "build"]) expect(run([films, command]).code).toBe(2);
    expect(run([films, "start", "--config", "platform.config.ts"]).output).toContain(
      "This executable contains its config",
    );

    const key = "the-key-of-this-machine-only";
    const server = await start(films, alone, { TOOL_KEY: key });
    const inserted = await ask(`${server.url}/api/db/shared/tables/films`, { title: "The Big Sleep" });
    expect(inserted.body).toMatchObject({ slug: "the-big-sleep", loud: "THE BIG SLEEP" });
    const refused = await ask(`${server.url}/api/db/shared/tables/films`, { title: "" });
    expect(refused).toMatchObject({ status: 422, body: { message: "A film has a title" } });
    const credentials = { "x-platform-service-key": key };
    const plots = (request: object) => ask(`${server.url}/api/vectorize/plots`, request, credentials);
    expect((await plots({ action: "upsert", vectors: [{ id: "a", values: [1, 0] }] })).status).toBe(200);
    const found = await plots({ action: "search", vector: [1, 0.1] });
    expect(found).toMatchObject({ status: 200, body: { matches: [{ id: "a" }] } });
    expect(await ask(`${server.url}/api/functions/shout/heat`)).toMatchObject({ status: 200, body: { text: "HEAT" } });
    expect((await ask(`${server.url}/api/functions/shout/${"a".repeat(21)}`)).status).toBe(400);

    const page = await fetch(server.url);
    expect([page.status, await page.text(), page.headers.get("x-frame-options")]).toEqual([
      200,
      "<h1>Films</h1>",
      "DENY",
    ]);
    const part = await fetch(`${server.url}/posters/heat.txt`, { headers: { range: "bytes=2-7" } });
    expect([part.status, await part.text()]).toEqual([206, "poster"]);
    const etag = (await fetch(`${server.url}/posters/heat.txt`)).headers.get("etag") ?? "";
    const again = await fetch(`${server.url}/posters/heat.txt`, { headers: { "if-none-match": etag } });
    expect(again.status).toBe(304);
    expect([(await fetch(`${server.url}/.env`)).status, (await fetch(`${server.url}/posters`)).status]).toEqual([
      404, 404,
    ]);
    expect((await fetch(`${server.url}/swagger`)).status).toBe(200);
    expect((await fetch(`${server.url}/swagger/ui.css`)).status).toBe(200);
    expect(await (await fetch(`${server.url}/client/index.js`)).text()).toContain("createClient");
    expect((await fetch(`${server.url}/client/platform.tgz`)).headers.get("content-type")).toBe("application/gzip");

    const backup = join(alone, "backup.tar");
    expect(run([films, "backup", backup], { cwd: alone }).code).toBe(0);
    expect(await server.stop()).toBe(0);
    expect(run([films, "restore", backup, "--data", "restored"], { cwd: alone }).code).toBe(0);
    const exported = run([films, "export", "shared/films", "--data", "restored"], { cwd: alone });
    expect(exported).toEqual({ code: 0, output: expect.stringContaining("the-big-sleep") });
    expect(run([films, "check"]).output).toContain("The config is fine");
  });

  test("[CL420] [CL421] the executable reads the .env beside it, contains none, and names what is not set", () => {
    const config = `export default { databases: { shared: { tables: { [process.env.TABLE ?? "for_development"]: {} } } } };`;
    const directory = project({ "platform.config.ts": config, ".env": "TABLE=of_the_developer" });
    const built = run([platform, "build", "--out", "club"], { cwd: directory });
    expect(built).toEqual({ code: 0, output: expect.stringContaining("it reads the variables TABLE") });
    const elsewhere = project({ ".env": "TABLE=of_the_working_directory" });
    const installed = temporaryDirectory();
    const club = join(installed, "club");
    copyFileSync(join(directory, "club"), club);
    const bare = run([club, "check"], { cwd: elsewhere }).output;
    expect(bare).toContain("table for_development: ");
    expect(bare).toContain("process.env: not set, and read: TABLE");
    writeFileSync(join(installed, ".env"), "TABLE=of_the_installation");
    const configured = run([club, "check"], { cwd: elsewhere }).output;
    expect(configured).toContain("table of_the_installation: ");
    expect(configured).not.toContain("not set");
    const env = { TABLE: "of_the_service" };
    expect(run([club, "check"], { cwd: elsewhere, env }).output).toContain("table of_the_service: ");
  });

  test("[CL122] a new build replaces the file of a running server, which goes on", async () => {
    const directory = project(FILM_CLUB);
    const out = join(directory, "club");
    expect(run([platform, "build", "--out", "club"], { cwd: directory }).code).toBe(0);
    const server = await start(out, directory);
    writeFileSync(join(directory, "package.json"), '{"name":"films","version":"2.0.0"}');
    expect(run([platform, "build", "--out", "club"], { cwd: directory }).code).toBe(0);
    expect((await fetch(`${server.url}/api/health`)).status).toBe(200);
    expect(await server.stop()).toBe(0);
    expect(run([out, "--version"]).output).toStartWith("films 2.0.0");
    expect(readdirSync(directory).filter((name) => name.startsWith("."))).toEqual([]);
  });

  test("[CL123] a config that does not load, pass the checks or bundle is not built, and the file of before stays", () => {
    const cases: [reason: string, files: Record<string, string>, message: string][] = [
      ["a problem", { "platform.config.ts": "export default { api: { docs: 1 } }" }, "api.docs"],
      ["no config", {}, "There is no config file"],
      [
        "routes that cannot be made",
        { "platform.config.ts": 'export default { routes: () => { throw new Error("no routes today"); } };' },
        "no routes today",
      ],
      ["a missing module", { "platform.config.ts": 'import "./missing.ts"; export default {};' }, "missing.ts"],
    ];
    for (const [reason, files, message] of cases) {
      const directory = project({ ...files, app: "the file of before" });
      const { code, output } = run([platform, "build"], { cwd: directory });
      expect([reason, code, output]).toEqual([reason, 1, expect.stringContaining(message)]);
      expect(readFileSync(join(directory, "app"), "utf8")).toBe("the file of before");
    }
  });

  test("[CL124] a package with a native addon is refused by its name", () => {
    const loaders: [reason: string, source: string][] = [
      ["its file", 'module.exports = () => require("./build/fast.node");'],
      ["a loader", 'module.exports = () => require("bindings")("fast");'],
    ];
    for (const [reason, source] of loaders) {
      const directory = project({
        "platform.config.ts":
          'import fast from "fast-hash";\nexport default { api: { docs: typeof fast === "function" } };',
        "node_modules/fast-hash/package.json": '{"name":"fast-hash","version":"1.0.0","main":"index.js"}',
        "node_modules/fast-hash/index.js": source,
        "node_modules/fast-hash/build/fast.node": "",
        "node_modules/bindings/index.js": "module.exports = () => ({});",
      });
      const { code, output } = run([platform, "build"], { cwd: directory });
      expect([reason, code, output]).toEqual([reason, 1, expect.stringContaining("fast-hash is a native addon")]);
      expect(existsSync(join(directory, "app"))).toBe(false);
    }
  });

  test("[CL125] another target takes its runtime and its sqlite-vec from files", () => {
    const directory = project(FILM_CLUB);
    const other = process.arch === "arm64" ? "bun-linux-x64" : "bun-linux-arm64";
    const build = (...options: string[]) => run([platform, "build", ...options], { cwd: directory });
    expect(build("--target", "bun-plan9")).toEqual({ code: 2, output: expect.stringContaining("bun-linux-arm64") });
    expect(build("--target", other)).toEqual({ code: 2, output: expect.stringContaining("needs --runtime FILE") });
    const runtime = process.execPath;
    const library = join(directory, "vec0.so");
    const withRuntime = ["--target", other, "--runtime", runtime];
    expect(build(...withRuntime)).toEqual({ code: 2, output: expect.stringContaining("needs --sqlite-vec FILE") });
    expect(build(...withRuntime, "--sqlite-vec", library)).toEqual({
      code: 1,
      output: expect.stringContaining("no file"),
    });
    writeFileSync(library, "the library of the other system");
    expect(build("--runtime", runtime)).toEqual({ code: 2, output: expect.stringContaining("for another system") });

    expect(build(...withRuntime, "--sqlite-vec", library, "--out", "other").code).toBe(0);
    const made = readFileSync(join(directory, "other"));
    expect(made.includes("the library of the other system")).toBe(true);
    // The given runtime is this machine's, so that what was made of it runs here.
    chmodSync(join(directory, "other"), 0o755);
    expect(run([join(directory, "other"), "--version"]).output).toStartWith("films 1.4.2");
  });

  test("[CL126] the name is that of the package.json beside the config, else app; --out names another file", () => {
    const config = { "platform.config.ts": "export default {};" };
    const unnamed = project(config);
    expect(run([platform, "build"], { cwd: unnamed }).output).toStartWith(join(unnamed, "app: app 0.0.0"));
    const broken = project({ ...config, "package.json": "{" });
    expect(run([platform, "build"], { cwd: broken })).toEqual({
      code: 1,
      output: expect.stringContaining("is not JSON"),
    });
    expect(run([platform, "build", "--out", "missing/app"], { cwd: unnamed }).output).toContain(
      "There is no directory",
    );
    expect(run([platform, "build", "--out", "."], { cwd: unnamed }).output).toContain("is a directory");
  });
});
