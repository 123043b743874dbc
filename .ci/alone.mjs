// The executable as somebody has it who downloaded it: in an empty directory, without Bun, Node or node_modules in reach,
// with a config that lies elsewhere. node .ci/alone.mjs EXECUTABLE
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";

const START_TIMEOUT_MS = 20_000;
const CONFIG = `import { defineConfig } from "platform";

export default defineConfig({
  databases: {
    shared: {
      tables: {
        notes: {
          schema: { text: { type: "string", required: true } },
          access: { read: true, insert: () => true, update: false, delete: false, upsert: "matching" },
        },
      },
    },
  },
});
`;

const executable = resolve(process.argv[2] ?? "dist/platform");
const elsewhere = mkdtempSync(join(tmpdir(), "platform-config-"));
const empty = mkdtempSync(join(tmpdir(), "platform-empty-"));
const config = join(elsewhere, "platform.config.ts");
writeFileSync(config, CONFIG);

/** Starts it and resolves with its address once it says that it listens. */
async function start() {
  const child = spawn(executable, ["start", "--config", config, "--port", "0"], {
    cwd: empty,
    env: { HOME: empty },
    stdio: ["ignore", "pipe", "inherit"],
  });
  const ended = new Promise((done) => child.once("exit", (code, signal) => done(code ?? signal)));
  const ready = new Promise((listening, reject) => {
    const timer = setTimeout(() => reject(new Error("it does not listen")), START_TIMEOUT_MS);
    let output = "";
    child.stdout.on("data", (chunk) => {
      output += chunk;
      const url = /^platform listening on (http:\/\/\S+)\n/m.exec(output)?.[1];
      if (url === undefined) return;
      clearTimeout(timer);
      listening(url);
    });
    child.once("error", reject);
    void ended.then((code) => reject(new Error(`it ended with ${code}`)));
  });
  try {
    return { url: await ready, child, ended };
  } catch (error) {
    child.kill("SIGKILL");
    throw error;
  }
}

async function withServer(work) {
  const { url, child, ended } = await start();
  try {
    await work(url);
  } catch (error) {
    child.kill("SIGKILL");
    throw error;
  }
  child.kill("SIGTERM");
  // Windows has no such signal: the process is ended at once.
  const expected = process.platform === "win32" ? "SIGTERM" : 0;
  assert.equal(await ended, expected, "SIGTERM must end it with 0");
}

try {
  assert.deepEqual(readdirSync(empty), []);
  let id;
  await withServer(async (url) => {
    const health = await fetch(`${url}/api/health`);
    assert.equal(health.status, 200);
    assert.equal((await health.json()).status, "ok");
    const inserted = await fetch(`${url}/api/db/shared/tables/notes`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ text: "remember the milk" }),
    });
    assert.equal(inserted.status, 201);
    ({ id } = await inserted.json());
  });
  // What was acknowledged is there after a restart, and all that it wrote lies in its data directory.
  await withServer(async (url) => {
    const read = await fetch(`${url}/api/db/shared/tables/notes/${id}`);
    assert.equal(read.status, 200);
    assert.equal((await read.json()).text, "remember the milk");
  });
  assert.deepEqual(readdirSync(empty), ["data"]);
  console.log("the executable serves, stores and stops by itself");
} finally {
  rmSync(elsewhere, { recursive: true, force: true });
  rmSync(empty, { recursive: true, force: true });
}
