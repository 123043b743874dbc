import { afterAll, beforeAll, expect, test } from "bun:test";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import type { JsonObject } from "../../../src/kernel/json/json.ts";
import { signIn, type TestPlatform, testPlatform } from "../../support/index.ts";
import { agent, sendMessage } from "../../support/mcp.ts";

const CONFIG = `{
  mcp: true,
  auth: { signup: true },
  storage: { buckets: { files: { access: { read: true } } } },
  serviceKeys: {
    reader: { key: "reader-key-0123456789abcdef", scopes: ["mcp:*:*:read", "db:shared:notes:read"] },
    writer: { key: "writer-key-0123456789abcdef", scopes: ["mcp:*:*:write", "db:shared:notes:insert"] },
    clerk: { key: "clerk-key-00123456789abcdef", scopes: ["mcp:*:*:read", "auth:admin:*:read", "jobs:*:*:read", "system:*:*:read"] },
    wide: { key: "wide-key-000123456789abcdef", scopes: ["*:*:*:*"] },
    foreign: { key: "foreign-key-0123456789abcde", scopes: ["db:*:*:read"] },
    elsewhere: { key: "elsewhere-key-0123456789abc", ips: ["10.0.0.1"] },
  },
  databases: {
    shared: {
      tables: {
        notes: {
          schema: { ownerId: { type: "string" }, text: { type: "text", required: true, max: 300000 }, stars: { type: "integer" } },
          fts: ["text"],
          access: {
            read: (auth) => auth !== null && [["ownerId", "==", auth.id]],
            insert: (auth, note) => note.ownerId === auth?.id,
            update: (auth, note) => note.ownerId === auth?.id,
            delete: (auth, note) => note.ownerId === auth?.id,
            upsert: "matching",
          },
        },
        hidden: { schema: { text: { type: "string" } }, access: { read: (auth) => auth?.role === "editor" } },
      },
    },
    clubs: { instance: true, access: { create: true, open: true }, tables: { members: { access: { read: true, insert: true } } } },
  },
}`;
const NOTES = { namespace: "shared", table: "notes" };

let platform: TestPlatform;
let ann: { token: string; id: string };
beforeAll(async () => {
  platform = await testPlatform({ config: CONFIG });
  ann = await newUser("ann@example.com");
});
afterAll(() => platform.stop());

async function newUser(email: string): Promise<{ token: string; id: string }> {
  const { body } = await platform.post<{ accessToken: string; user: { id: string } }>("/api/auth/signup", {
    email,
    password: "correct horse battery",
  });
  return { token: body.accessToken, id: body.user.id };
}

const bearer = (token: string) => ({ authorization: `Bearer ${token}` });
const key = (text: string) => ({ "x-platform-service-key": text });
const asAnn = (query = "") => agent(platform.url, bearer(ann.token), query);
const asRoot = (query = "") => agent(platform.url, key(platform.serviceKey), query);
const list = { method: "tools/list" };
const statusOf = async (headers: Record<string, string>, message: JsonObject = list) =>
  (await sendMessage(platform.url, headers, message)).status;
const namesOf = async (one: ReturnType<typeof agent>) => (await one.tools()).map(({ name }) => name).sort();

const READS = ["aggregate_records", "get_record", "list_files", "list_records", "search_records"];
const WRITES = ["delete_record", "insert_record", "transaction", "update_record"];

test("[MC1] an agent of the SDK connects, lists tools and calls one", async () => {
  const client = new Client({ name: "tests", version: "1.2.3" });
  const transport = new StreamableHTTPClientTransport(new URL(`${platform.url}/mcp`), {
    requestInit: { headers: bearer(ann.token) },
  });
  // The SDK's own types differ under exactOptionalPropertyTypes.
  await client.connect(transport as Parameters<typeof client.connect>[0]);
  const { tools } = await client.listTools();
  expect(tools.map(({ name }) => name).sort()).toEqual(READS);
  const result = await client.callTool({ name: "list_records", arguments: NOTES });
  expect(result.isError).toBe(false);
  expect(client.getServerVersion()).toMatchObject({ name: "platform" });
  await client.close();
});

test("[MC1] there is nothing without mcp: true, other methods are 405, and a request is one message", async () => {
  const without = await testPlatform({ config: "{}" });
  expect((await sendMessage(without.url, key(without.serviceKey), list)).status).toBe(404);
  await without.stop();
  const got = await fetch(`${platform.url}/mcp`, { headers: bearer(ann.token) });
  expect([got.status, got.headers.get("allow")]).toEqual([405, "POST, OPTIONS"]);
  const post = (body: string, query = "") =>
    fetch(`${platform.url}/mcp${query}`, {
      method: "POST",
      headers: { ...bearer(ann.token), "content-type": "application/json" },
      body,
    });
  expect((await post(JSON.stringify([{ jsonrpc: "2.0", id: 1, ...list }]))).status).toBe(400);
  expect((await post(JSON.stringify({ jsonrpc: "2.0", id: 1, a: "x".repeat(256 * 1024) }))).status).toBe(413);
  expect((await post(JSON.stringify({ jsonrpc: "2.0", id: 1, ...list }), "?write=true")).status).toBe(400);
});

test("[MC2] nobody and wrong credentials are 401 with a challenge; a cookie is none; a key without a scope of mcp is 403", async () => {
  for (const headers of [
    {},
    bearer("x.y.z"),
    key("wrong-key-0123456789"),
    { "x-platform-admin": "1", cookie: "a=b" },
  ]) {
    const answer = await sendMessage(platform.url, headers, list);
    expect([answer.status, answer.headers.get("www-authenticate")]).toEqual([401, "Bearer"]);
  }
  const session = await platform.post("/api/admin/session", { key: platform.serviceKey });
  const cookie = session.headers.get("set-cookie")?.split(";")[0] ?? "";
  expect(cookie).not.toBe("");
  expect(await statusOf({ "x-platform-admin": "1", cookie })).toBe(401);
  expect(await statusOf(key("foreign-key-0123456789abcde"))).toBe(403);
  expect(await statusOf(key("elsewhere-key-0123456789abc"))).toBe(403);
});

test("[MC3] a page of another site is 403, one of this server is served", async () => {
  for (const origin of ["https://evil.example", "null", "http://localhost:1"]) {
    expect(await statusOf({ ...bearer(ann.token), origin })).toBe(403);
  }
  expect(await statusOf({ ...bearer(ann.token), origin: platform.url })).toBe(200);
});

test("[MC4] tools have schemas and say whether they read; one that is not listed cannot be called", async () => {
  const tools = await asAnn("?write=1").tools();
  expect(tools.map(({ name }) => name).sort()).toEqual([...READS, ...WRITES].sort());
  expect(
    tools
      .filter(({ annotations }) => annotations.readOnlyHint)
      .map(({ name }) => name)
      .sort(),
  ).toEqual(READS);
  expect(tools.find(({ name }) => name === "get_record")).toMatchObject({
    inputSchema: { type: "object", required: ["namespace", "table", "id"], additionalProperties: false },
  });
  const refused = await asAnn().call("insert_record", { ...NOTES, record: { ownerId: ann.id, text: "a" } });
  expect(refused).toMatchObject({ isError: true });
  expect((await asAnn().call("list_records", NOTES)).value["total"]).toBe(0);
  for (const name of ["list_users", "search_logs", "try_rule", "check_config", "nothing"]) {
    expect((await asAnn("?write=1").call(name, {})).isError).toBe(true);
  }
});

test("[MC5] users and keys of every right write at ?write=1 alone", async () => {
  const record = { ownerId: ann.id, text: "mine" };
  const inserted = await asAnn("?write=1").call("insert_record", { ...NOTES, record });
  expect(inserted).toMatchObject({ isError: false, value: { text: "mine" } });
  const id = String(inserted.value["id"]);
  const updated = await asRoot("?write=1").call("update_record", { ...NOTES, id, changes: { stars: 3 } });
  expect(updated.value).toMatchObject({ id, stars: 3 });
  expect(await namesOf(asRoot())).toEqual(
    [...READS, "list_jobs", "list_tables", "list_users", "search_logs", "try_rule"].sort(),
  );
  const transaction = {
    namespace: "shared",
    operations: [
      { table: "notes", action: "delete", id },
      { table: "notes", action: "insert", data: { ownerId: ann.id, text: "second" } },
    ],
  };
  expect((await asRoot().call("transaction", transaction)).isError).toBe(true);
  expect((await asAnn("?write=1").call("transaction", transaction)).value["results"]).toHaveLength(2);
  expect((await asAnn().call("get_record", { ...NOTES, id })).value["code"]).toBe(404);
});

test("[MC5] users see the tables where api.schemaEndpoint shows them", async () => {
  const open = await testPlatform({
    config: CONFIG.replace("mcp: true", 'mcp: true, api: { schemaEndpoint: "authenticated" }'),
  });
  const user = await signIn(open, { email: "a@example.com" });
  expect(await namesOf(agent(open.url, bearer(user.token)))).toContain("list_tables");
  await open.stop();
  expect((await asAnn().call("list_tables")).isError).toBe(true);
});

test("[MC6] keys with scopes have the tools for which mcp and the area both have one", async () => {
  const reader = agent(platform.url, key("reader-key-0123456789abcdef"), "?write=1");
  expect(await namesOf(reader)).toEqual([
    "aggregate_records",
    "get_record",
    "list_records",
    "list_tables",
    "search_records",
  ]);
  expect((await reader.call("list_records", { namespace: "shared", table: "hidden" })).value["code"]).toBe(403);
  const writer = agent(platform.url, key("writer-key-0123456789abcdef"));
  expect(await namesOf(writer)).toEqual(["insert_record", "transaction"]);
  expect((await writer.call("insert_record", { ...NOTES, record: { ownerId: "nobody", text: "a" } })).isError).toBe(
    false,
  );
  const wide = (query = "") => agent(platform.url, key("wide-key-000123456789abcdef"), query);
  expect((await wide().tools()).every(({ annotations }) => annotations.readOnlyHint)).toBe(true);
  expect(await namesOf(wide("?write=1"))).toContain("insert_record");
  const clerk = agent(platform.url, key("clerk-key-00123456789abcdef"));
  expect(await namesOf(clerk)).toEqual(["list_jobs", "list_users", "search_logs"]);
});

test("[MC7] a tool has the caller's rights of now, and names lead nowhere else", async () => {
  const bob = await newUser("bob@example.com");
  const asBob = agent(platform.url, bearer(bob.token), "?write=1");
  const note = (
    await asAnn("?write=1").call("insert_record", { ...NOTES, record: { ownerId: ann.id, text: "private" } })
  ).value;
  const id = String(note["id"]);
  expect((await asBob.call("get_record", { ...NOTES, id })).value["code"]).toBe(404);
  expect((await asBob.call("list_records", NOTES)).value["items"]).toEqual([]);
  expect((await asBob.call("search_records", { ...NOTES, q: "private" })).value["items"]).toEqual([]);
  expect((await asBob.call("update_record", { ...NOTES, id, changes: { text: "his" } })).value["code"]).toBe(404);
  expect((await asBob.call("delete_record", { ...NOTES, id })).value["code"]).toBe(404);
  const hidden = { namespace: "shared", table: "hidden" };
  expect((await asBob.call("list_records", hidden)).value["code"]).toBe(403);
  await platform.service.patch(`/api/auth/admin/users/${bob.id}`, { role: "editor" });
  expect((await asBob.call("list_records", hidden)).isError).toBe(false);
  for (const table of ["..", ".", ""])
    expect((await asRoot().call("list_records", { ...NOTES, table })).value["code"]).toBe(404);
  const elsewhere = await asRoot().call("get_record", { ...NOTES, id: "../../../auth/me" });
  expect(elsewhere.isError).toBe(true);
  await platform.service.post(`/api/auth/admin/users/${bob.id}/revoke`);
  expect(await statusOf(bearer(bob.token))).toBe(401);
});

test("[MC8] each call is in the audit log with the agent's name and no secrets, also one that is refused", async () => {
  const begun = await sendMessage(platform.url, bearer(ann.token), {
    method: "initialize",
    params: { protocolVersion: "2025-06-18", capabilities: {}, clientInfo: { name: "Scribe\u0000", version: "7" } },
  });
  const session = begun.headers.get("mcp-session-id") ?? "";
  const named = agent(platform.url, { ...bearer(ann.token), "mcp-session-id": session }, "?write=1");
  await named.call("insert_record", {
    ...NOTES,
    record: { ownerId: ann.id, text: "audited", password: "secret-canary" },
  });
  await named.call("insert_record", { ...NOTES, record: { ownerId: ann.id, text: "ü".repeat(100_000) } });
  await agent(platform.url, { ...key(platform.serviceKey), "mcp-session-id": "%%%" }).call("list_records", NOTES);
  const { body } = await platform.service.get<{ entries: JsonObject[] }>("/api/admin/audit?action=mcp.call&limit=3");
  const [byRoot, long, short] = body.entries;
  expect(short).toMatchObject({
    target: "mcp/insert_record",
    actor: { kind: "user", name: ann.id },
    after: {
      agent: "Scribe 7",
      arguments: { ...NOTES, record: { text: "audited", password: "[hidden]" } },
      outcome: "refused",
    },
  });
  expect(long).toMatchObject({ after: { agent: "Scribe 7", arguments: { ...NOTES, fields: 2 }, outcome: "done" } });
  expect(byRoot).toMatchObject({
    actor: { kind: "serviceKey", name: "root" },
    target: "mcp/list_records",
    after: { outcome: "done" },
  });
  for (const entry of body.entries) expect(Buffer.byteLength(JSON.stringify(entry))).toBeLessThan(4096);
  expect(JSON.stringify(body.entries)).not.toContain("secret-canary");
});

test("[MC9] answers have at most 256 KiB: pages are shorter, a large record is an error, a write is done", async () => {
  const carl = await newUser("carl@example.com");
  const asCarl = agent(platform.url, bearer(carl.token), "?write=1");
  const inserts = Array.from({ length: 40 }, (_, i) => ({
    id: `c${i + 10}`,
    ownerId: carl.id,
    text: '"'.repeat(9_000),
    stars: i,
  }));
  expect((await platform.service.post("/api/db/shared/tables/notes/batch", { inserts })).status).toBe(200);
  const seen: unknown[] = [];
  let after: string | undefined;
  do {
    const args = { ...NOTES, sort: "stars:asc", limit: 100, ...(after === undefined ? {} : { after }) };
    const answer = await sendMessage(platform.url, bearer(carl.token), {
      method: "tools/call",
      params: { name: "list_records", arguments: args },
    });
    const text = await answer.text();
    expect(text.length).toBeLessThanOrEqual(256 * 1024);
    const { result } = JSON.parse(text) as { result: { content: [{ text: string }] } };
    const page = JSON.parse(result.content[0].text) as { items: JsonObject[]; cursor: string | null };
    expect(page.items.length).toBeLessThan(40);
    seen.push(...page.items.map(({ stars }) => stars));
    after = page.cursor ?? undefined;
  } while (after !== undefined);
  expect(seen).toEqual(inserts.map(({ stars }) => stars));

  const record = { id: "large", ownerId: carl.id, text: '"'.repeat(120_000) };
  expect(await asCarl.call("insert_record", { ...NOTES, record })).toMatchObject({ isError: false, value: {} });
  expect((await asCarl.call("get_record", { ...NOTES, id: "large" })).isError).toBe(true);
  const small = await asCarl.call("get_record", { ...NOTES, id: "large", select: ["stars"] });
  expect(small.value).toEqual({ id: "large", stars: null });
  expect((await asCarl.call("list_records", { ...NOTES, limit: 101 })).value["code"]).toBe(400);
});

test("[MC10] a caller has a limit of messages, whatever its address, keys too", async () => {
  const limited = await testPlatform({
    config: CONFIG.replace("mcp: true", "mcp: true, rateLimits: { mcp: { requests: 3, window: 600 } }"),
  });
  const ask = (text: string) => sendMessage(limited.url, key(text), list);
  for (let count = 0; count < 3; count++) expect((await ask(limited.serviceKey)).status).toBe(200);
  const refused = await ask(limited.serviceKey);
  expect([refused.status, Number(refused.headers.get("retry-after")) > 0]).toEqual([429, true]);
  expect((await ask("reader-key-0123456789abcdef")).status).toBe(200);
  expect((await sendMessage(limited.url, {}, list)).status).toBe(401);
  await limited.stop();
});

test("[MC13] a key lists the tables that its scopes name", async () => {
  const { value } = await agent(platform.url, key("reader-key-0123456789abcdef")).call("list_tables");
  expect(value).toMatchObject({
    namespaces: { shared: { tables: { notes: { fields: { text: { type: "text" } } } } } },
  });
  expect(JSON.stringify(value)).not.toMatch(/hidden|clubs/);
  expect(Object.keys((await asRoot().call("list_tables")).value["namespaces"] ?? {}).sort()).toEqual([
    "clubs",
    "shared",
  ]);
});

test("[MC14] refusals and wrong arguments are results that name the fields", async () => {
  const wrong = await asAnn("?write=1").call("insert_record", { ...NOTES, record: { ownerId: ann.id, stars: "many" } });
  expect(wrong).toMatchObject({
    isError: true,
    value: { code: 400, data: { text: { code: "required" }, stars: { code: "invalid_type" } } },
  });
  expect((await asAnn().call("get_record", NOTES)).value).toMatchObject({
    code: 400,
    data: { id: { code: "required" } },
  });
  expect((await asAnn().call("list_records", { ...NOTES, limt: 1 })).value).toMatchObject({
    data: { limt: { code: "unknown_field" } },
  });
  const filtered = await asAnn().call("list_records", { ...NOTES, filter: [["nothing", "==", 1]] });
  expect(filtered).toMatchObject({ isError: true, value: { code: 400 } });
});

test("[MC15] groups, instances, files, users, jobs, logs and rules", async () => {
  await platform.service.post("/api/db/shared/tables/notes/batch", {
    inserts: [1, 2, 2].map((stars) => ({ ownerId: "dora", text: "grouped", stars })),
  });
  const groups = await asRoot().call("aggregate_records", {
    ...NOTES,
    select: ["count()"],
    groupBy: ["stars"],
    filter: [["ownerId", "==", "dora"]],
  });
  expect(groups.value["groups"]).toEqual([
    { stars: 1, "count()": 1 },
    { stars: 2, "count()": 2 },
  ]);
  const members = { namespace: "clubs", instance: "chess", table: "members" };
  await asAnn("?write=1").call("insert_record", { ...members, record: { name: "Ann" } });
  expect((await asAnn().call("list_records", { ...members, limit: 1 })).value["items"]).toMatchObject([
    { name: "Ann" },
  ]);
  const form = new FormData();
  form.append("key", "a/b.txt");
  form.append("file", new File(["a"], "b.txt"));
  await fetch(`${platform.url}/api/storage/files/upload`, {
    method: "POST",
    headers: key(platform.serviceKey),
    body: form,
  });
  expect((await asAnn().call("list_files", { bucket: "files", prefix: "a/" })).value["objects"]).toMatchObject([
    { key: "a/b.txt" },
  ]);
  expect((await asRoot().call("list_users", { q: "ann@" })).value["users"]).toMatchObject([{ id: ann.id }]);
  expect((await asRoot().call("list_jobs", { status: "failed", limit: 5 })).value["jobs"]).toEqual([]);
  const since = new Date(Date.now() + 60_000).toISOString();
  expect((await asRoot().call("search_logs", { since })).value["lines"]).toEqual([]);
  expect((await asRoot().call("search_logs", { since: "2020-01-01T00:00:00Z" })).isError).toBe(false);
  const [note] = (await asAnn().call("list_records", { ...NOTES, limit: 1 })).value["items"] as JsonObject[];
  const tried = await asRoot().call("try_rule", { ...NOTES, rule: "delete", id: note?.["id"] ?? "", userId: ann.id });
  expect(tried.value).toMatchObject({ results: [{ operation: "delete", allowed: true }] });
  const other = await asRoot().call("try_rule", {
    ...NOTES,
    rule: "delete",
    id: note?.["id"] ?? "",
    userId: "anonymous",
  });
  expect(other.value).toMatchObject({ results: [{ allowed: false }] });
});
