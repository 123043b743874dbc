import { afterAll, beforeAll, expect, test } from "bun:test";
import { mkdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { gunzipSync } from "node:zlib";
import { unpackTar } from "modern-tar";
import { compiler, OLDER_TYPESCRIPTS } from "../../scripts/typescript.ts";
import { type TestPlatform, temporaryDirectory } from "../support/platform.ts";
import { type TestProxy, testProxy } from "./proxy.ts";
import { clubPlatform } from "./support.ts";

// The client as its users have it: the npm package, in the runtimes and compilers that it is for.

// From its sources, a server builds the package when it is asked for it.
const BUILD_TIMEOUT_MS = 120_000;

let platform: TestPlatform;
let proxy: TestProxy;
let directory: string;
beforeAll(async () => {
  platform = await clubPlatform();
  proxy = await testProxy(platform.url);
  directory = temporaryDirectory();
  const answer = await platform.fetch("/client/platform.tgz");
  for (const { header, data } of await unpackTar(gunzipSync(await answer.bytes()))) {
    write(header.name.replace(/^package\//, "node_modules/platform/"), new TextDecoder().decode(data));
  }
  for (const name of ["club-config.ts", "types.ts", "feature-types.ts", "far-config.ts", "far-types.ts"]) {
    const text = await Bun.file(new URL(name, import.meta.url)).text();
    const asInstalled = text
      .replace("../../src/kernel/json/json.ts", "platform")
      .replace("../../src/client/admin/index.ts", "platform/admin")
      .replace("../../src/client/index.ts", "platform/client");
    write(name, asInstalled);
  }
  write("package.json", '{ "type": "module" }');
}, BUILD_TIMEOUT_MS);
afterAll(async () => {
  await proxy.stop();
  await platform.stop();
});

function write(path: string, text: string): void {
  const file = join(directory, path);
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, text);
}

const OPTIONS = {
  target: "ESNext",
  module: "Preserve",
  moduleResolution: "bundler",
  lib: ["ESNext", "DOM"],
  types: [],
  noEmit: true,
  allowImportingTsExtensions: true,
  strict: true,
  exactOptionalPropertyTypes: true,
  skipLibCheck: true,
};

for (const name of ["typescript", ...OLDER_TYPESCRIPTS] as const) {
  test(
    `[TC2] [TC92] [TC100] [TC364] ${name}: what is declared compiles, and nothing else does`,
    () => {
      write(
        "tsconfig.json",
        JSON.stringify({
          compilerOptions: OPTIONS,
          files: ["types.ts", "feature-types.ts", "far-config.ts", "far-types.ts"],
        }),
      );
      expect(Bun.spawnSync([...compiler(name), "-p", directory]).stdout.toString()).toBe("");
    },
    BUILD_TIMEOUT_MS,
  );
}

test("[TC114] frameworks with server components are told that the hooks are for browsers", async () => {
  const hooks = await Bun.file(join(directory, "node_modules/platform/dist/client/react/index.js")).text();
  expect(hooks).toStartWith('"use client";\n');
  expect(hooks).toContain("useSyncExternalStore");
});

const textOf = (stream: ReadableStream<Uint8Array<ArrayBuffer>>) => new Response(stream).text();

const PROGRAM = `
import { createClient, increment, PlatformError } from "platform/client";
const client = createClient({ url: process.env.SERVER });
const { user } = await client.auth.signInAnonymously();
const films = client.db("shared").table("films");
const film = await films.insert({ title: "Heat of " + process.env.NAME, year: 1994, extra: { city: "Ærø" } });
const changed = await films.update(film.id, { year: increment() });
const found = await films.where("extra.city", "==", "Ærø").where("id", "==", film.id).fields("title").list();
const error = await films.insert({ title: "x".repeat(300) }).catch((error) => error);
const late = await films.list({ signal: AbortSignal.abort("left") }).catch((reason) => reason);
await client.auth.signOut();
client.close();
console.log(JSON.stringify([
  user.isAnonymous, changed.year, found.items.length, found.total,
  error instanceof PlatformError, error.code, Object.keys(error.fields), late, client.auth.user,
]));
`;

for (const runtime of ["node", process.execPath]) {
  const name = runtime === "node" ? "Node" : "Bun";
  test(`[TC1] [TC5] ${name} runs the same program, over connections that are lost, and ends by itself`, async () => {
    write("program.mjs", PROGRAM);
    const writes = new Map<string, number>();
    // Each write is answered when it comes for the third time.
    proxy.rule = ({ method, path }) => {
      if (!path.includes("/films") || method === "GET") return "pass";
      const count = (writes.get(method) ?? 0) + 1;
      writes.set(method, count);
      return count === 1 ? "cut before" : count === 2 ? "cut after" : "pass";
    };
    const child = Bun.spawn([runtime, "program.mjs"], {
      cwd: directory,
      env: { ...process.env, SERVER: proxy.url, NAME: name },
      stdout: "pipe",
      stderr: "pipe",
    });
    const [output, errors] = await Promise.all([textOf(child.stdout), textOf(child.stderr), child.exited]);
    expect(`${errors}${output}`.trim()).toBe(
      JSON.stringify([true, 1995, 1, 1, true, "invalid", ["title"], "left", null]),
    );
    const stored = await platform.get<{ total: number }>(
      `/api/db/shared/tables/films/count?filter=${encodeURIComponent(JSON.stringify([["title", "==", `Heat of ${name}`]]))}`,
    );
    expect(stored.body.total).toBe(1);
  });
}
