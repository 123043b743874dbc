import { afterAll, beforeAll, expect, test } from "bun:test";
import { mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { brotliDecompressSync, gunzipSync, zstdDecompressSync } from "node:zlib";
import { unpackTar } from "modern-tar";
import { compiler, OLDER_TYPESCRIPTS } from "../../../scripts/typescript.ts";
import {
  platformCommand,
  type TestPlatform,
  temporaryDirectory,
  testEnvironment,
  testPlatform,
} from "../../support/index.ts";

// `/client/index.js`, `/client/platform.tgz` and `platform client`.

const ROOT = resolve(import.meta.dir, "../../..");
// From its sources, a server builds what it is asked for.
const BUILD_TIMEOUT_MS = 120_000;

const CONFIG = `import { anyOf, defineConfig, field, not, some } from "platform";
import { t } from "elysia";

export default defineConfig({
  auth: {
    users: {
      in: "shared",
      schema: { plan: { type: "string", enum: ["free", "paid"], required: true, default: "free" } },
      access: { read: (auth, user) => auth !== null && user.plan !== "free" },
    },
  },
  databases: {
    shared: {
      tables: {
        films: {
          schema: { title: { type: "string", required: true }, stars: { type: "integer" }, cut: { type: "json", schema: t.Object({ minutes: t.Integer() }) } },
          access: { read: true, insert: (auth, film) => film.stars === null || film.stars > 0 },
        },
        houses: {
          schema: {
            name: { type: "string", required: true },
            at: { type: "geo" },
            opened: { type: "date" },
            ownerId: { references: "users", onDelete: "setNull" },
            filmIds: { type: "references", references: "films", max: 50 },
            plan: { type: "file", bucket: "plans" },
            photos: { type: "file", bucket: "plans", many: 3 },
          },
          access: {
            read: (auth) => anyOf([["ownerId", "==", auth?.id ?? ""]], [some("films", [["id", "==", field("name")], not([["stars", "<", 3]])])]),
            insert: (auth, house, { sent }) => sent?.includes("name") === true && house.filmIds.length > 0,
          },
        },
      },
      views: {
        best: {
          sql: "SELECT id, title, stars FROM films WHERE stars > 3",
          schema: { title: { type: "string", required: true }, stars: { type: "integer" } },
          access: { read: (auth, film) => auth !== null && film.title.length > 0 && [["stars", ">", 4]] },
          live: ["films"],
        },
      },
    },
  },
  storage: { buckets: { plans: {} } },
  triggers: { opened: { on: { table: "shared.houses", events: ["insert"] }, run: ({ after, app }) => app.db("shared").table("films").get(String(after?.name)) } },
  routes: (api) =>
    api.get("/shout/:text", ({ params }) => ({ text: params.text.toUpperCase() }), {
      access: true,
      params: t.Object({ text: t.String({ maxLength: 20 }) }),
    }),
});
`;

let platform: TestPlatform;
beforeAll(async () => {
  platform = await testPlatform({ config: CONFIG });
  await platform.fetch("/client/platform.tgz");
}, BUILD_TIMEOUT_MS);
afterAll(() => platform.stop());

const get = async (path: string, headers: Record<string, string> = {}) => {
  const answer = await platform.fetch(`/client/${path}`, { headers, decompress: false } as RequestInit);
  return { status: answer.status, headers: answer.headers, bytes: new Uint8Array(await answer.arrayBuffer()) };
};
const textOf = (bytes: Uint8Array): string => new TextDecoder().decode(bytes);
const CHUNK = /chunk-\w+\.js/g;

/** index.js and all chunks that it leads to. */
async function allModules(): Promise<Map<string, string>> {
  const found = new Map<string, string>();
  const names = new Set(["index.js"]);
  for (const name of names) {
    const { status, bytes } = await get(name, { "accept-encoding": "identity" });
    expect(status).toBe(200);
    found.set(name, textOf(bytes));
    for (const [chunk] of textOf(bytes).matchAll(CHUNK)) names.add(chunk);
  }
  return found;
}

test("[CP1] [CP2] the module and its chunks are public; chunks never change", async () => {
  const modules = await allModules();
  expect(modules.size).toBeGreaterThan(1);
  expect(modules.get("index.js")).toContain("createClient");
  for (const name of modules.keys()) {
    const { headers } = await get(name, { origin: "http://elsewhere.example" });
    expect(headers.get("content-type")).toBe("text/javascript; charset=utf-8");
    expect(headers.get("access-control-allow-origin")).toBe("*");
    expect(headers.get("cache-control")).toBe(name === "index.js" ? "no-cache" : "public, max-age=31536000, immutable");
    const etag = headers.get("etag") ?? "";
    expect(await get(name, { "if-none-match": etag })).toMatchObject({ status: 304 });
    expect(await get(name, { "if-none-match": '"another"' })).toMatchObject({ status: 200 });
  }
  const head = await platform.fetch("/client/index.js", { method: "HEAD" });
  expect([head.status, head.headers.get("content-type")]).toEqual([200, "text/javascript; charset=utf-8"]);
});

test("[CP3] modules are sent compressed as the client accepts it", async () => {
  const plain = await get("index.js", { "accept-encoding": "identity" });
  const tags = new Set([plain.headers.get("etag")]);
  const cases = [
    { accepted: "gzip, deflate, br, zstd", chosen: "br", decompress: brotliDecompressSync },
    { accepted: "gzip, zstd;q=0.5, br;q=0", chosen: "zstd", decompress: zstdDecompressSync },
    { accepted: "gzip", chosen: "gzip", decompress: gunzipSync },
  ];
  for (const { accepted, chosen, decompress } of cases) {
    const { headers, bytes } = await get("index.js", { "accept-encoding": accepted });
    expect(headers.get("content-encoding")).toBe(chosen);
    expect(headers.get("vary")).toBe("Accept-Encoding");
    expect(bytes.length).toBeLessThan(plain.bytes.length);
    expect(textOf(decompress(bytes))).toBe(textOf(plain.bytes));
    tags.add(headers.get("etag"));
  }
  expect(tags.size).toBe(4);
  // A part of a module is of no use, and that of a compressed one is none of the module.
  const ranged = await get("index.js", { range: "bytes=0-3", "accept-encoding": "identity" });
  expect([ranged.status, ranged.bytes.length]).toEqual([200, plain.bytes.length]);
});

test("[CP3] answers that vary by origin say both", async () => {
  const other = await testPlatform({ config: `{ cors: { origin: ["http://app.example"] } }` });
  try {
    const answer = await other.fetch("/client/index.js", { headers: { origin: "http://app.example" } });
    expect(answer.headers.get("vary")).toBe("Accept-Encoding, Origin");
    expect(answer.headers.get("access-control-allow-origin")).toBe("http://app.example");
  } finally {
    await other.stop();
  }
});

/** npm without a registry: a package from one address needs none. */
function npm(directory: string, ...args: string[]): { code: number; output: string } {
  const quiet = ["--no-audit", "--no-fund", "--no-update-notifier", "--cache", join(directory, "npm-cache")];
  const env = { ...process.env, npm_config_registry: "http://127.0.0.1:9", npm_config_fetch_retries: "0" };
  const { exitCode, stdout, stderr } = Bun.spawnSync(["npm", ...args, ...quiet], { cwd: directory, env });
  return { code: exitCode, output: `${stdout}${stderr}` };
}

function project(files: Readonly<Record<string, string>>): string {
  const directory = temporaryDirectory();
  for (const [name, text] of Object.entries(files)) {
    mkdirSync(dirname(join(directory, name)), { recursive: true });
    writeFileSync(join(directory, name), text);
  }
  return directory;
}

interface Lockfile {
  packages: Record<string, { version?: string; integrity?: string; dependencies?: object }>;
}

const PROGRAM = `import { anyOf, createClient, field, none, some } from "platform/client";
import type config from "./platform.config.ts";

const client = createClient<typeof config>({ url: process.env.SERVER ?? "" });
const films = client.db("shared").table("films");
await films.insert({ title: "Heat", stars: 5 });
const { items } = await films.where("stars", ">", 4).sort("title").list();
for (const film of items) console.log(film.title.toUpperCase(), film.stars);
const { data } = await client.functions.shout({ text: "quiet" }).get();
console.log(data?.text.toLowerCase());
client.close();

export async function planOf(id: string): Promise<"free" | "paid" | undefined> {
  const user = await client.db("shared").table("users").get(id);
  console.log(user?.displayName?.length);
  return user?.plan;
}

export async function minutes(id: string): Promise<number | undefined> {
  return (await films.get(id))?.cut?.minutes;
}

export async function nearest(at: { lat: number; lng: number }): Promise<(number | undefined)[]> {
  const houses = client.db("shared").table("houses");
  const open = houses.where(anyOf([["opened", "<", "2024-05-06"]], [["filmIds", "hasAny", ["heat"]]])).where("at", "within", { ...at, meters: 500 });
  const shown = open.where(some("films", [["id", "==", field("name")]])).where(none("films", [["title", "==", field("name")], ["stars", ">", 3]]));
  const { items } = await shown.near("at", at).expand("ownerId").expand("filmIds").list({ signFiles: 600 });
  for (const { plan, photos, filmIds, expand } of items) console.log(plan?.url, photos.length, filmIds.join(), expand.ownerId?.displayName, expand.filmIds.map(({ title }) => title));
  await houses.insert({ name: "Rex", filmIds: ["heat"], plan: new File(["a"], "a.txt"), photos: [new File(["b"], "b.txt")] });
  await houses.update("rex", { filmIds: { $op: "add", value: "heat" }, at: null });
  return items.map(({ distance }) => distance);
}

export async function best(): Promise<string[]> {
  const { items } = await client.db("shared").table("best").where("stars", "==", 5).list();
  return items.map(({ title, stars }) => title + String(stars?.toFixed()));
}
`;
/** Each line after a comment is an error. */
const MISTAKES = `import { createClient, field, some } from "platform/client";
import type config from "./platform.config.ts";

const client = createClient<typeof config>({ url: "" });
const films = client.db("shared").table("films");
// @ts-expect-error: a title is a text
void films.insert({ title: 5 });
// @ts-expect-error: minutes are a number
void films.insert({ title: "Heat", cut: { minutes: "170" } });
// @ts-expect-error: stars are a number
void films.where("stars", ">", "four");
// @ts-expect-error: no such field
void films.sort("titel");
// @ts-expect-error: no such table
client.db("shared").table("film");
// @ts-expect-error: the view gives no such field
void client.db("shared").table("best").sort("createdAt");
const houses = client.db("shared").table("houses");
// @ts-expect-error: titles are no places
void films.near("title", { lat: 0, lng: 0 });
// @ts-expect-error: a distance has a middle
void houses.where("at", "within", { meters: 5 });
// @ts-expect-error: several references are compared by ids
void houses.where("filmIds", "==", "heat");
// @ts-expect-error: films have no such field
void houses.where(some("films", [["filmId", "==", field("id")]]));
// @ts-expect-error: a text and a number
void houses.where(some("films", [["stars", "==", field("name")]]));
// @ts-expect-error: plans are files
void houses.insert({ name: "Rex", plan: "a.txt" });
// @ts-expect-error: no such namespace
client.db("shred");
// @ts-expect-error: a record has no such member
void films.get("heat").then((film) => film?.name);
// @ts-expect-error: no such route
void client.functions.whisper;
// @ts-expect-error: the route answers with an object
void client.functions.shout({ text: "" }).get().then(({ data }) => data?.length);
`;
/** `strictly`: the package's own declarations are checked as well. */
const tsconfig = (strictly: boolean): string =>
  JSON.stringify({
    compilerOptions: {
      target: "ESNext",
      module: "Preserve",
      moduleResolution: "bundler",
      lib: ["ESNext", "DOM"],
      types: [],
      noEmit: true,
      allowImportingTsExtensions: true,
      strict: true,
      exactOptionalPropertyTypes: true,
      skipLibCheck: !strictly,
    },
    include: ["*.ts"],
  });
const EMPTY_PROJECT = { "package.json": '{ "name": "front-end", "private": true, "type": "module" }' };

test(
  "[CP4] [CP5] npm installs the package with a fixed integrity, and Node and Bun run it",
  async () => {
    const directory = project({
      ...EMPTY_PROJECT,
      "app.mjs": new Bun.Transpiler({ loader: "ts" }).transformSync(PROGRAM),
    });
    const installed = npm(directory, "install", `${platform.url}/client/platform.tgz`);
    expect(installed).toEqual({ code: 0, output: expect.stringContaining("added 1 package") });
    const { packages }: Lockfile = JSON.parse(readFileSync(join(directory, "package-lock.json"), "utf8"));
    const health = await platform.get<{ version: string }>("/api/health");
    expect(packages["node_modules/platform"]).toMatchObject({
      version: health.body.version,
      integrity: expect.stringMatching(/^sha512-/),
      peerDependencies: { react: expect.any(String) },
      peerDependenciesMeta: { react: { optional: true } },
    });
    expect(packages["node_modules/platform"]?.dependencies).toBeUndefined();
    const folder = join(directory, "node_modules/platform");
    expect(readFileSync(join(folder, "THIRD-PARTY.txt"), "utf8")).toContain("elysia 1.");
    expect(readdirSync(join(directory, "node_modules")).filter((name) => !name.startsWith("."))).toEqual(["platform"]);

    await platform.restart();
    const again = project({ ...EMPTY_PROJECT });
    writeFileSync(
      join(again, "package-lock.json"),
      readFileSync(join(directory, "package-lock.json"), "utf8").replaceAll(/http:\/\/127\.0\.0\.1:\d+/g, platform.url),
    );
    const manifest = readFileSync(join(directory, "package.json"), "utf8");
    writeFileSync(join(again, "package.json"), manifest.replaceAll(/http:\/\/127\.0\.0\.1:\d+/g, platform.url));
    expect(npm(again, "ci")).toEqual({ code: 0, output: expect.stringContaining("added 1 package") });

    for (const runtime of ["node", process.execPath]) {
      const ran = Bun.spawnSync([runtime, "app.mjs"], {
        cwd: directory,
        env: { ...process.env, SERVER: platform.url },
      });
      expect(`${ran.stdout}${ran.stderr}`).toContain("HEAT 5\nquiet");
    }
  },
  BUILD_TIMEOUT_MS,
);

test("[CP5] a config finds its own entry", async () => {
  const directory = await unpacked();
  const source = `import { AppError, defineConfig, Refusal } from "platform";
const config = defineConfig({ kv: { settings: {} } });
console.log(Object.keys(config).join(), new Refusal("no") instanceof AppError);`;
  writeFileSync(join(directory, "entry.mjs"), source);
  const ran = Bun.spawnSync(["node", "entry.mjs"], { cwd: directory });
  expect(`${ran.stdout}${ran.stderr}`).toBe("kv true\n");
});

/** A project with the package, as npm unpacks it. */
async function unpacked(files: Readonly<Record<string, string>> = {}): Promise<string> {
  const { bytes } = await get("platform.tgz");
  const entries = await unpackTar(gunzipSync(bytes));
  const contents = entries.map(({ header, data }) => [
    header.name.replace(/^package\//, "node_modules/platform/"),
    textOf(data ?? new Uint8Array()),
  ]);
  return project({ ...EMPTY_PROJECT, ...Object.fromEntries(contents), ...files });
}

for (const name of ["typescript", ...OLDER_TYPESCRIPTS] as const) {
  test(
    `[CP6] ${name}: a program is typed from its config, with nothing but the package installed`,
    async () => {
      const files = { "tsconfig.json": tsconfig(name === "typescript"), "app.ts": PROGRAM, "mistakes.ts": MISTAKES };
      const directory = await unpacked({ ...files, "platform.config.ts": CONFIG });
      const check = () => Bun.spawnSync([...compiler(name), "-p", directory]).stdout.toString();
      expect(check()).toBe("");
      if (name !== "typescript") return;
      // An installed Elysia is used in place of the copy.
      symlinkSync(join(ROOT, "node_modules/elysia"), join(directory, "node_modules/elysia"));
      const ofProject = check()
        .split("\n")
        .filter((line) => /(?:app|mistakes|platform\.config)\.ts\(/.test(line));
      expect(ofProject).toEqual([]);
    },
    BUILD_TIMEOUT_MS,
  );
}

test(
  "[CP7] two builds give the same bytes",
  async () => {
    const build = join(ROOT, "scripts/client/package.ts");
    const script = `const { buildPackage } = await import(${JSON.stringify(build)});
console.log(new Bun.CryptoHasher("sha256").update(await buildPackage()).digest("hex"));`;
    const cwd = temporaryDirectory();
    const child = Bun.spawn([process.execPath, "-e", script], { cwd, stdout: "pipe", stderr: "inherit" });
    const { bytes } = await get("platform.tgz");
    const served = new Bun.CryptoHasher("sha256").update(bytes).digest("hex");
    expect((await child.stdout.text()).trim()).toBe(served);
  },
  BUILD_TIMEOUT_MS,
);

test(
  "[CP8] platform client writes what the server serves",
  async () => {
    const out = join(temporaryDirectory(), "written");
    const command = [...platformCommand(), "client", "--out", out];
    const ran = Bun.spawnSync(command, { env: testEnvironment() });
    expect([ran.exitCode, ran.stdout.toString()]).toEqual([0, expect.stringContaining("npm install")]);
    const modules = await allModules();
    expect(readdirSync(out).sort()).toEqual([...modules.keys(), "platform.tgz"].sort());
    for (const [name, text] of modules) expect(readFileSync(join(out, name), "utf8")).toBe(text);
    const { bytes } = await get("platform.tgz");
    expect(Buffer.compare(readFileSync(join(out, "platform.tgz")), bytes)).toBe(0);
  },
  BUILD_TIMEOUT_MS,
);

test("[CP9] nothing else is below /client, and a site that has such a directory is warned", async () => {
  for (const path of ["", "index.ts", "chunk-00000000.js", "constructor", "../index.js%00", "react.js"]) {
    expect([path, (await get(path)).status]).toEqual([path, 404]);
  }
  const other = await testPlatform({
    config: `{ site: { directory: "./web" } }`,
    files: { "web/client/index.js": "export const own = true;", "web/index.html": "home" },
  });
  try {
    expect(await (await other.fetch("/client/index.js")).text()).not.toContain("own = true");
    expect(other.stderr()).toContain('has \\"client\\", which is never served: /client is the server\'s own');
  } finally {
    await other.stop();
  }
});
