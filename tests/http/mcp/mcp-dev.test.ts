import { afterAll, beforeAll, expect, test } from "bun:test";
import { readdirSync } from "node:fs";
import { request as httpRequest } from "node:http";
import { tmpdir } from "node:os";
import { platformCommand, type TestPlatform, testEnvironment, testPlatform } from "../../support/index.ts";
import { agent, MCP_HEADERS, sendMessage } from "../../support/mcp.ts";

const NOTES = `databases: { shared: { tables: { notes: { schema: { text: { type: "string", required: true } }, access: { read: true } } } } }`;
const CONFIG = `{ ${NOTES}, routes: (api) => api.get("/env", () => Object.keys(process.env).filter((name) => name.includes("MCP")), { access: true }) }`;
const list = { method: "tools/list" };

let platform: TestPlatform;
let key: string;
beforeAll(async () => {
  platform = await testPlatform({ command: "dev", config: CONFIG });
  key = keyOf(platform);
});
afterAll(() => platform.stop());

const keyOf = ({ stdout }: TestPlatform): string => /^mcp \S+\/mcp key (mcp_\S+)$/m.exec(stdout())?.[1] ?? "";
const bearer = (text: string) => ({ authorization: `Bearer ${text}` });
const asDev = (query = "") => agent(platform.url, bearer(key), query);

/** Sends a request with any `Host`, which fetch does not allow. */
const statusWith = (headers: Record<string, string>): Promise<number> =>
  new Promise((resolve, reject) => {
    const { port } = new URL(platform.url);
    const body = JSON.stringify({ jsonrpc: "2.0", id: 1, ...list });
    const options = { host: "127.0.0.1", port, path: "/mcp", method: "POST", headers: { ...MCP_HEADERS, ...headers } };
    const sent = httpRequest(options, (answer) => {
      answer.resume();
      resolve(answer.statusCode ?? 0);
    });
    sent.on("error", reject);
    sent.end(body);
  });

test("[MC11, CL456] dev prints address and key, which is good there as a token and as a service key, and nowhere else", async () => {
  expect(platform.stdout()).toContain(`mcp ${platform.url}/mcp key ${key}`);
  expect(key.length).toBeGreaterThan(30);
  for (const headers of [bearer(key), { "x-platform-service-key": key }]) {
    expect((await sendMessage(platform.url, headers, list)).status).toBe(200);
    expect((await platform.fetch("/api/auth/admin/users", { headers })).status).toBe(401);
    expect((await platform.fetch("/api/db/shared/tables/notes", { headers })).status).toBe(401);
  }
  expect((await sendMessage(platform.url, bearer(`${key}x`), list)).status).toBe(401);
  // Undeclared, it is for this key alone.
  expect((await sendMessage(platform.url, { "x-platform-service-key": platform.serviceKey }, list)).status).toBe(401);
  expect((await platform.get<unknown>("/api/functions/env")).body).toEqual([]);
});

test("[MC11] the key is refused when it was forwarded, and from pages and names that lead here", async () => {
  for (const name of ["x-forwarded-for", "forwarded", "x-real-ip", "via"]) {
    expect((await sendMessage(platform.url, { ...bearer(key), [name]: "for=127.0.0.1" }, list)).status).toBe(403);
  }
  for (const origin of ["https://evil.example", "null", "http://localhost.evil.example"]) {
    expect((await sendMessage(platform.url, { ...bearer(key), origin }, list)).status).toBe(403);
  }
  for (const origin of ["http://localhost:3000", "http://127.0.0.1:1", "http://[::1]:2"]) {
    expect((await sendMessage(platform.url, { ...bearer(key), origin }, list)).status).toBe(200);
  }
  expect(await statusWith({ ...bearer(key), host: "evil.example" })).toBe(403);
  expect(await statusWith({ ...bearer(key), host: "localhost" })).toBe(200);
});

test("[MC11] it has every right, writes at ?write=1, and start has no such key", async () => {
  const record = { namespace: "shared", table: "notes", record: { text: "by an agent" } };
  expect((await asDev().call("insert_record", record)).isError).toBe(true);
  expect((await asDev("?write=1").call("insert_record", record)).isError).toBe(false);
  const started = await testPlatform({
    config: CONFIG,
    env: { PLATFORM_DEV_MCP_KEY: "mcp_chosen-by-the-environment" },
  });
  expect(started.stdout()).not.toContain("mcp ");
  expect((await sendMessage(started.url, bearer("mcp_chosen-by-the-environment"), list)).status).toBe(404);
  await started.stop();
});

test("[MC11] mcp: false switches it off in dev too", async () => {
  const off = await testPlatform({ command: "dev", config: `{ mcp: false, ${NOTES} }` });
  expect(keyOf(off)).toBe("");
  expect((await sendMessage(off.url, bearer(key), list)).status).toBe(404);
  await off.stop();
});

const config = (body: string) => `import { defineConfig } from "platform";\nexport default defineConfig(${body});\n`;
const leftFolders = () => readdirSync(tmpdir()).filter((name) => name.startsWith("platform-config-"));

test("[MC12] configs are checked and planned in development, and nothing is changed", async () => {
  const before = leftFolders();
  const fine = await asDev().call("check_config", { source: config(`{ ${NOTES} }`) });
  expect(fine).toMatchObject({ isError: false });
  expect(fine.text).toContain("table notes");
  const wrong = await asDev().call("check_config", { source: config("{ databses: {} }") });
  expect(wrong.isError).toBe(true);
  expect(wrong.text).toContain('did you mean "databases"?');

  await platform.service.post("/api/db/shared/tables/notes", { text: "stored" });
  const renamed = config(`{ ${NOTES.replace("text:", "title:")} }`);
  expect((await asDev().call("check_config", { source: renamed })).isError).toBe(false);
  const plan = await asDev().call("plan_config", { source: renamed });
  expect(plan.isError).toBe(true);
  expect(plan.text).toContain("shared.notes.text: is no longer declared");
  expect((await asDev().call("plan_config", { source: config(`{ ${NOTES} }`) })).text).toContain("It fits");
  expect(leftFolders().filter((name) => !before.includes(name))).toEqual([]);
});

test("[MC12] a config that is tried has no environment, and five seconds", async () => {
  const source = `console.error("ENV " + JSON.stringify(process.env)); export default {};`;
  const { text } = await asDev().call("check_config", { source });
  const environment = JSON.parse(/ENV (.*)/.exec(text)?.[1] ?? "null");
  expect(Object.keys(environment)).not.toContain("PLATFORM_SERVICE_KEY");
  expect(text).not.toContain(platform.serviceKey);
  const endless = await asDev().call("check_config", { source: "for (;;) {}" });
  expect(endless.isError).toBe(true);
  expect(endless.text).toContain("within 5000 ms");
}, 30_000);

test("[MC12] three at once are too many", async () => {
  const source = "await new Promise((resolve) => setTimeout(resolve, 1500)); export default {};";
  const tried = await Promise.all([1, 2, 3].map(() => asDev().call("check_config", { source })));
  expect(tried.filter(({ value }) => value["code"] === 503)).toHaveLength(1);
});

test("[MC12] without dev there are no such tools", async () => {
  const started = await testPlatform({ config: `{ mcp: true, ${NOTES} }` });
  const root = agent(started.url, { "x-platform-service-key": started.serviceKey }, "?write=1");
  expect((await root.tools()).map(({ name }) => name)).not.toContain("check_config");
  expect((await root.call("plan_config", { source: config("{}") })).isError).toBe(true);
  await started.stop();
});

/** Runs `platform mcp` with these lines, and returns the lines of its output. */
async function piped(lines: readonly unknown[], args: readonly string[], key: string): Promise<string[]> {
  const child = Bun.spawn([...platformCommand(), "mcp", ...args], {
    stdin: new Blob([lines.map((line) => `${typeof line === "string" ? line : JSON.stringify(line)}\n`).join("")]),
    stdout: "pipe",
    stderr: "ignore",
    env: testEnvironment({ PLATFORM_SERVICE_KEY: key }),
  });
  return (await child.stdout.text()).trim().split("\n");
}

test("[CL455] platform mcp passes lines on to a server, with the session and the version that it answered", async () => {
  const insert = {
    name: "insert_record",
    arguments: { namespace: "shared", table: "notes", record: { text: "through a pipe" } },
  };
  const params = { protocolVersion: "2025-06-18", capabilities: {}, clientInfo: { name: "Pipe", version: "1" } };
  const lines = [
    { jsonrpc: "2.0", id: 1, method: "initialize", params },
    { jsonrpc: "2.0", method: "notifications/initialized" },
    "no json",
    "",
    { jsonrpc: "2.0", id: 2, method: "tools/call", params: insert },
  ];
  const answers = (await piped(lines, ["--url", platform.url, "--write"], key)).map((line) => JSON.parse(line));
  expect(answers).toMatchObject([
    { id: 1, result: { serverInfo: { name: "platform" } } },
    { id: null, error: { code: -32_700 } },
    { id: 2, result: { isError: false } },
  ]);
  const { body } = await platform.service.get<{ entries: unknown[] }>("/api/admin/audit?action=mcp.call&limit=1");
  expect(body.entries).toMatchObject([{ target: "mcp/insert_record", after: { agent: "Pipe 1" } }]);
  const [reading] = await piped([lines[4]], ["--url", platform.url], key);
  expect(JSON.parse(reading ?? "")).toMatchObject({ id: 2, result: { isError: true } });
});

test("[CL455] a server that refuses or does not answer is the error of each request", async () => {
  const request = { jsonrpc: "2.0", id: "a", ...list };
  const [refused] = await piped([request], ["--url", platform.url], "wrong-key-0123456789abcdef");
  expect(JSON.parse(refused ?? "")).toMatchObject({
    id: "a",
    error: { code: -32_000, message: expect.stringContaining("401") },
  });
  const [missing] = await piped([request], ["--url", "http://127.0.0.1:9"], key);
  expect(JSON.parse(missing ?? "")).toMatchObject({ id: "a", error: { code: -32_000 } });
});
