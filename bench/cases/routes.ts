import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { temporaryDirectory, testPlatform } from "../../tests/support/index.ts";
import { compareByTurns, WRK_RESULT } from "./wrk.ts";

const CONNECTIONS = 16;
const FILE_BYTES = 1024 * 1024;

const CONFIG = `
import { defineConfig } from "platform";
import { t } from "elysia";
const Echo = t.Object({ title: t.String(), n: t.Number() });
export default defineConfig({
  storage: { buckets: { files: { access: { read: true } } } },
  site: { directory: "./public" },
  routes: (api) => api
    .post("/echo", ({ body }) => ({ title: body.title, n: body.n + 1 }), { access: true, body: Echo, response: Echo })
    .get("/items/:id", ({ params }) => ({ id: params.id }), { access: true, response: t.Object({ id: t.String() }) }),
});`;

type Figures = Awaited<ReturnType<typeof compareByTurns>>;

/** Compares routes with plain Elysia, and files of the site with downloads from a bucket. */
export async function measureRoutes(): Promise<{ post: Figures; get: Figures; site: Figures }> {
  const directory = temporaryDirectory();
  const script = (name: string, text: string): string => {
    const path = join(directory, name);
    writeFileSync(path, `${text}\n${WRK_RESULT}`);
    return path;
  };
  const get = script("get.lua", "");
  const body = `wrk.method = "POST"\nwrk.body = '{"title":"hello world","n":41}'`;
  const post = script("post.lua", `${body}\nwrk.headers["content-type"] = "application/json"`);
  const files = { "public/file.bin": "x".repeat(FILE_BYTES) };
  const platform = await testPlatform({ config: CONFIG, files });
  const floor = Bun.spawn([process.execPath, join(import.meta.dir, "../routes-floor.ts")], {
    env: { ...process.env, NODE_ENV: "production" },
    stdin: "ignore",
    stdout: "pipe",
    stderr: "inherit",
  });
  try {
    const { value } = await floor.stdout.getReader().read();
    const floorUrl = new TextDecoder().decode(value).trim();
    const form = new FormData();
    form.append("key", "file");
    form.append("file", new Blob(["x".repeat(FILE_BYTES)]));
    await platform.service.fetch("/api/storage/files/upload", { method: "POST", body: form });
    const both = (path: string): [string, string] => [`${platform.url}${path}`, `${floorUrl}${path}`];
    return {
      post: await compareByTurns(both("/api/functions/echo"), { script: post, connections: CONNECTIONS }),
      get: await compareByTurns(both("/api/functions/items/7"), { script: get, connections: CONNECTIONS }),
      site: await compareByTurns([`${platform.url}/file.bin`, `${platform.url}/api/storage/files/file`], {
        script: get,
        connections: CONNECTIONS,
      }),
    };
  } finally {
    floor.kill();
    await platform.stop();
  }
}
