import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

// Which functions a start and the first requests run. `bun build` places their bytecode together, so that a start reads less of
// the executable, and holds less of it in memory.

const START_TIMEOUT_MS = 60_000;
const SERVICE_KEY = "start-profile-0123456789abcdefghijklmnopqrstuv";

const FILTER = encodeURIComponent(JSON.stringify([["title", "==", "A first note"]]));

const CONFIG = `import { defineConfig } from "platform";

const notes = {
  schema: { title: { type: "string", required: true, max: 200 }, done: { type: "boolean" }, ownerId: { type: "string" } },
  fts: ["title"],
  indexes: [{ fields: ["title"] }],
  access: { read: true, insert: (auth) => auth !== null, update: (auth) => ({ ownerId: auth?.id ?? "" }), upsert: "matching" },
};
export default defineConfig({
  databases: {
    shared: { tables: { notes } },
    teams: { instance: true, access: { create: true, open: true }, tables: { notes } },
  },
  storage: { buckets: { files: { access: { read: true } } } },
  kv: { cache: {} },
});
`;

/** Records a run of an executable built with bytecode. Gives the content of the profile. Errors: it does not start, or a request fails. */
export async function recordStartProfile(executable: string): Promise<string> {
  const directory = mkdtempSync(join(tmpdir(), "platform-profile-"));
  try {
    const profile = join(directory, "profile");
    const config = join(directory, "platform.config.ts");
    writeFileSync(config, CONFIG);
    const command = [executable, "start", "--config", config, "--data", join(directory, "data"), "--port", "0"];
    const env = { ...process.env, PLATFORM_SERVICE_KEY: SERVICE_KEY, BUN_BYTECODE_ORDER_OUT: profile };
    const server = Bun.spawn(command, { cwd: directory, env, stdin: "ignore", stdout: "pipe", stderr: "inherit" });
    const timer = setTimeout(() => server.kill("SIGKILL"), START_TIMEOUT_MS);
    try {
      await request(await addressOf(server.stdout));
      server.kill("SIGTERM");
      if ((await server.exited) !== 0) throw new Error("the executable whose start is recorded did not stop");
    } finally {
      clearTimeout(timer);
      server.kill("SIGKILL");
    }
    return readFileSync(profile, "utf8");
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
}

async function addressOf(output: ReadableStream<Uint8Array>): Promise<string> {
  let text = "";
  const decoder = new TextDecoder();
  for await (const part of output) {
    text += decoder.decode(part, { stream: true });
    const url = /listening on (http:\/\/[^\s/]+)/.exec(text)?.[1];
    if (url !== undefined) return url;
  }
  throw new Error(`the executable whose start is recorded did not start: ${text}`);
}

/** What most applications ask for first. */
async function request(url: string): Promise<void> {
  const service = { "x-platform-service-key": SERVICE_KEY };
  const send = async (method: string, path: string, body?: unknown, headers: Record<string, string> = {}) => {
    const content = body === undefined ? {} : { body: JSON.stringify(body) };
    const all = { "content-type": "application/json", ...headers };
    const response = await fetch(`${url}${path}`, { method, headers: all, ...content });
    const text = await response.text();
    if (!response.ok) throw new Error(`${method} ${path} was answered ${response.status} ${text}`);
    return text;
  };
  const notes = "/api/db/shared/tables/notes";
  await send("GET", notes);
  await send("GET", "/api/health");
  const account = { email: "somebody@example.com", password: "long enough for this" };
  // Its answer is of this server's own making.
  const { accessToken } = JSON.parse(await send("POST", "/api/auth/signup", account)) as { accessToken: string };
  const user = { authorization: `Bearer ${accessToken}` };
  await send("GET", "/api/auth/me", undefined, user);
  for (const path of [notes, "/api/db/teams/first/tables/notes"]) {
    await send("POST", path, { id: "first", title: "A first note" }, user);
    await send("GET", `${path}/first`, undefined, user);
    await send("GET", `${path}?sort=title:asc&limit=10&filter=${FILTER}`, undefined, user);
    await send("PATCH", `${path}/first`, { done: true }, service);
  }
  await send("POST", "/api/kv/cache", { action: "set", key: "a", value: 1 }, service);
  await send("GET", "/admin");
}
