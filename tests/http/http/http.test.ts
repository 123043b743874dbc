import { afterAll, beforeAll, expect, test } from "bun:test";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { type ErrorAnswer, type TestPlatform, testPlatform, until } from "../../support/index.ts";

const BODY_MAX_BYTES = 2_000;
const ORIGIN = "https://app.example.com";
const STRANGER = "https://elsewhere.example.org";

let platform: TestPlatform;
/** Behind a proxy, with few requests a minute and two origins. */
let strict: TestPlatform;
beforeAll(async () => {
  [platform, strict] = await Promise.all([
    testPlatform({
      config: {
        server: { maxBodySize: BODY_MAX_BYTES },
        databases: {
          shared: { tables: { open: {} } },
          team: { instance: true, tables: { notes: {} } },
        },
        storage: { buckets: { files: {} } },
        kv: { cache: {} },
      },
    }),
    testPlatform({
      config: {
        server: { trustProxy: true },
        cors: { origin: [ORIGIN, "http://localhost:3000"], credentials: true, maxAge: 60 },
        rateLimits: { global: { requests: 3, window: 2 } },
        kv: { cache: {} },
      },
    }),
  ]);
});
afterAll(() => Promise.all([platform.stop(), strict.stop()]));

const KV = "/api/kv/cache";
const send = (body: RequestInit["body"], headers: Record<string, string> = { "content-type": "application/json" }) =>
  platform.service.fetch(KV, { method: "POST", headers, body: body ?? null });

async function expectError(response: Response, status: number): Promise<ErrorAnswer> {
  expect(response.headers.get("content-type")).toBe("application/json");
  const text = await response.text();
  expect([response.status, text]).toEqual([status, expect.stringMatching(/^\{.*\}$/)]);
  const body: ErrorAnswer = JSON.parse(text);
  expect(body).toMatchObject({ code: status, message: expect.stringMatching(/./) });
  expect(Object.keys(body).filter((name) => !["code", "message", "data"].includes(name))).toEqual([]);
  return body;
}

test("[HT1] [HT2] an unknown path is 404 whatever its method and credentials", async () => {
  for (const path of ["/nowhere", "/api", "/api/", "/nothing", "/api/nothing/at/all", "/api/kv", "/swagger/other"]) {
    for (const method of ["GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"]) {
      for (const client of [platform, platform.withKey("wrong"), platform.as("wrong")]) {
        await expectError(await client.fetch(path, { method }), 404);
      }
    }
    expect((await platform.fetch(path, { method: "HEAD" })).status).toBe(404);
  }
});

test("[HT1] [HT2] a wrong method is 405 with what is allowed, before credentials", async () => {
  const cases: [string, string, string][] = [
    ["DELETE", "/api/health", "GET, HEAD, OPTIONS"],
    ["GET", "/api/auth/signup", "POST, OPTIONS"],
    ["PUT", "/api/auth/me", "GET, PATCH, DELETE, HEAD, OPTIONS"],
    ["PATCH", "/api/auth/signup/", "POST, OPTIONS"],
    ["GET", KV, "POST, OPTIONS"],
    ["PUT", "/api/db/shared/tables/open", "GET, POST, HEAD, OPTIONS"],
    ["POST", "/api/db/shared/tables/open/id", "GET, PATCH, DELETE, HEAD, OPTIONS"],
    ["PATCH", "/swagger", "GET, HEAD, OPTIONS"],
  ];
  for (const [method, path, allow] of cases) {
    for (const client of [platform, platform.withKey("wrong"), platform.as("wrong")]) {
      const response = await client.fetch(path, { method });
      expect([method, path, response.headers.get("allow")]).toEqual([method, path, allow]);
      await expectError(response, 405);
    }
  }
});

test("[HT3] a body that is no JSON, or the wrong kind of it, is 400", async () => {
  for (const body of ["", "{", "undefined", "{'a': 1}", '{"action": "get"', "[]", "null", "1", '"text"']) {
    await expectError(await send(body), 400);
  }
  const deep = (levels: number) => `{"action":"set","key":"deep","value":${"[".repeat(levels)}${"]".repeat(levels)}}`;
  expect((await send(deep(50))).status).toBe(200);
  await expectError(await send(deep(100)), 400);
});

test("[HT3] another content type, or none, is 415", async () => {
  const body = '{"action":"get","key":"a"}';
  for (const type of ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", "json"]) {
    await expectError(await send(body, { "content-type": type }), 415);
  }
  await expectError(await send(new TextEncoder().encode(body), {}), 415);
  for (const type of ["application/json; charset=utf-8", "Application/JSON", "application/merge-patch+json"]) {
    expect([type, (await send(body, { "content-type": type })).status]).toEqual([type, 200]);
  }
});

test("[HT3] a body over its limit is 413, whether or not its length was declared", async () => {
  const bytes = (length: number) => {
    const frame = '{"action":"set","key":"size","value":""}';
    return new TextEncoder().encode(frame.replace('""', `"${"x".repeat(length - frame.length)}"`));
  };
  const inChunks = (whole: Uint8Array) =>
    new ReadableStream({
      start(controller) {
        for (let at = 0; at < whole.length; at += 500) controller.enqueue(whole.slice(at, at + 500));
        controller.close();
      },
    });
  for (const form of [(whole: Uint8Array<ArrayBuffer>) => whole, inChunks]) {
    expect((await send(form(bytes(BODY_MAX_BYTES)))).status).toBe(200);
    await expectError(await send(form(bytes(BODY_MAX_BYTES + 1))), 413);
    await expectError(await send(form(bytes(BODY_MAX_BYTES * 100))), 413);
  }
});

test("[HT3] JSON values that cannot be stored are 400, and named", async () => {
  const set = (value: string) => send(`{"action":"set","key":"odd","value":${value}}`);
  expect((await set('"kept"')).status).toBe(200);
  for (const [value, field] of [
    ["1e400", "value"],
    ['{"deep":[0,-1e999]}', "value.deep.1"],
    ['"\\ud83d"', "value"],
    ['{"\\ude00":1}', "value"],
  ] as const) {
    const { data } = await expectError(await set(value), 400);
    expect([value, data]).toEqual([value, { [field]: expect.objectContaining({ code: "invalid_value" }) }]);
  }
  expect(await (await send('{"action":"get","key":"odd"}')).json()).toEqual({ value: "kept" });
});

test("[HT3] a body that is not UTF-8 is 400, and nothing of it is kept", async () => {
  const body = Buffer.concat([
    Buffer.from('{"action":"set","key":"odd","value":"caf'),
    Buffer.from([0xe9]),
    Buffer.from('"}'),
  ]);
  const whole = await expectError(await send(body), 400);
  const inChunks = await expectError(await send(new Response(body).body), 400);
  const cutOff = Buffer.concat([Buffer.from('{"action":"get","key":"odd"}'), Buffer.from("€").subarray(0, 2)]);
  const unfinished = await expectError(await send(cutOff), 400);
  for (const one of [whole, inChunks, unfinished]) {
    expect(one).toEqual({ code: 400, message: "The body is not valid UTF-8" });
  }
  expect(await (await send('{"action":"get","key":"odd"}')).json()).toEqual({ value: "kept" });
});

test("[HT35] a request's line and headers may take 64 KiB", async () => {
  const ids = Array.from({ length: 1_000 }, () => crypto.randomUUID());
  const filter = encodeURIComponent(JSON.stringify([["id", "in", ids]]));
  const answer = await platform.service.fetch(`/api/db/shared/tables/open?filter=${filter}`);
  expect([answer.status, await answer.json()]).toEqual([200, expect.objectContaining({ items: [], total: 0 })]);
  expect((await platform.fetch(`/api/health?${"x".repeat(70_000)}`)).status).toBe(431);
});

test("[HT4] a broken file is 500 without internals, and the log names the request", async () => {
  const directory = join(platform.dataDirectory, "databases", "team");
  mkdirSync(directory, { recursive: true });
  writeFileSync(join(directory, "broken.db"), "this is no database".repeat(500));
  const response = await platform.service.fetch("/api/db/team/broken/tables/notes");
  const requestId = response.headers.get("x-request-id") ?? "";
  expect(await expectError(response, 500)).toEqual({ code: 500, message: "Internal error" });
  // What the process prints reaches the test a moment later.
  for (let turn = 0; turn < 100 && !platform.stderr().includes(requestId); turn++) await Bun.sleep(20);
  await until("the log says so", () => platform.stderr().includes(requestId));
  expect((await platform.get("/api/health")).status).toBe(200);
});

test("[HT5] every answer has a request id of its own", async () => {
  const requests: [string, string][] = [
    ...["/api/health", "/api/config", "/swagger", "/swagger/json", "/nothing", KV].map((path): [string, string] => [
      "GET",
      path,
    ]),
    ...[["OPTIONS", KV] satisfies [string, string], ["HEAD", "/api/health"] satisfies [string, string]],
    ...[["POST", KV] satisfies [string, string], ["DELETE", "/api/health"] satisfies [string, string]],
  ];
  const ids = await Promise.all(
    Array.from({ length: 10 }, () => requests)
      .flat()
      .map(async ([method, path]) => (await platform.fetch(path, { method })).headers.get("x-request-id")),
  );
  expect(ids.filter((id) => id === null || !/^[\w-]{8,64}$/.test(id))).toEqual([]);
  expect(new Set(ids).size).toBe(ids.length);
});

test("[HT6] HEAD answers as GET does, without a body", async () => {
  for (const path of ["/api/health", "/api/config", "/swagger/json", "/api/db/shared/tables/open", "/nothing"]) {
    const [get, head] = [await platform.fetch(path), await platform.fetch(path, { method: "HEAD" })];
    expect([path, head.status]).toEqual([path, get.status]);
    expect(await head.text()).toBe("");
    expect([path, head.headers.get("content-type")]).toEqual([path, get.headers.get("content-type")]);
  }
});

test("[HT7] path parameters are decoded once, and what cannot be decoded is 400", async () => {
  const insert = await platform.service.post("/api/db/shared/tables/open", { id: "50% of é" });
  expect(insert.status).toBe(201);
  const path = `/api/db/shared/tables/open/${encodeURIComponent("50% of é")}`;
  expect((await platform.service.get(path)).body).toMatchObject({ id: "50% of é" });
  for (const bad of ["%", "%E0%A4%A", "%zz", "%C3%28"]) {
    await expectError(await platform.service.fetch(`/api/db/shared/tables/open/${bad}`), 400);
  }
});

test("[HT7] malformed headers and queries are 400", async () => {
  const wrong: [string, number][] = [];
  const headers: Record<string, string>[] = [
    { authorization: "" },
    { authorization: "Bearer" },
    { authorization: "Bearer ".padEnd(8_000, "x") },
    { authorization: "Basic dXNlcjpwYXNz" },
    { "x-platform-service-key": "é" },
    { "content-type": ";;;" },
    { range: "bytes=9-1,x" },
    { "if-none-match": '"' },
    { origin: "null" },
    { "x-forwarded-for": ",,," },
    { accept: "nothing/at-all" },
  ];
  const queries = [
    "?",
    "?&&&",
    "?filter=%",
    "?filter=%E0%A4%A",
    "?limit=1e9",
    "?=",
    "?sort=",
    "?%00=%00",
    "?cursor=%ff",
  ];
  for (const one of headers) {
    for (const path of ["/api/health", "/api/db/shared/tables/open", "/api/storage/files/a"]) {
      const { status } = await platform.fetch(path, { headers: one });
      if (status >= 500) wrong.push([`${path} ${JSON.stringify(one)}`, status]);
    }
  }
  for (const query of queries) {
    for (const path of ["/api/health", "/api/db/shared/tables/open", "/api/storage/files", "/api/room/metadata"]) {
      const { status } = await platform.service.fetch(path + query);
      if (status >= 500) wrong.push([path + query, status]);
    }
  }
  expect(wrong).toEqual([]);
});

/** Returns the answer to these bytes: the status, and the body once it is whole. */
async function sendBytes(text: string): Promise<{ status: number; body: string }> {
  const { promise, resolve } = Promise.withResolvers<string>();
  let received = "";
  const { hostname, port } = new URL(platform.url);
  const socket = await Bun.connect({
    hostname,
    port: Number(port),
    socket: {
      data(_, chunk) {
        received += chunk.toString();
        if (received.endsWith("}") || received.endsWith("\r\n\r\n")) resolve(received);
      },
      close: () => resolve(received),
    },
  });
  socket.write(text);
  const answer = await promise;
  socket.end();
  return { status: Number(answer.split(" ")[1]), body: answer.slice(answer.indexOf("\r\n\r\n") + 4) };
}

test("[HT7] a request without a valid host is answered by its path", async () => {
  const key = `X-Platform-Service-Key: ${platform.serviceKey}\r\n`;
  for (const [version, host] of [
    ["1.0", ""] as const,
    ["1.1", "Host: \r\n"] as const,
    ["1.1", "Host: a b\r\n"] as const,
    ["1.1", "Host: a:99999\r\n"] as const,
    ["1.1", "Host: [::1\r\n"] as const,
  ]) {
    const ask = (method: string, path: string, more = "", body = "") =>
      sendBytes(`${method} ${path} HTTP/${version}\r\n${host}${more}\r\n${body}`);
    expect((await ask("GET", "/api/health")).status).toBe(200);
    expect((await ask("HEAD", "/api/health")).status).toBe(200);
    expect((await ask("GET", "/nothing")).status).toBe(404);
    expect((await ask("DELETE", "/api/health")).status).toBe(405);
    const body = '{"action":"get","key":"no-such-key"}';
    const headers = `${key}Content-Type: application/json\r\nContent-Length: ${body.length}\r\n`;
    expect(await ask("POST", KV, headers, body)).toEqual({ status: 200, body: '{"value":null}' });
    const sign = '{"key":"none"}';
    const signHeaders = `${key}Content-Type: application/json\r\nContent-Length: ${sign.length}\r\n`;
    const signed = await ask("POST", "/api/storage/files/signed-upload-url", signHeaders, sign);
    // A URL has to begin with some address.
    expect([host, signed.status]).toEqual([host, /^(?:Host: \r\n)?$/.test(host) ? 200 : 400]);
  }
});

test("[HT8] by default any origin may read answers, errors included", async () => {
  for (const path of ["/api/health", "/nothing", KV, "/swagger/json"]) {
    const response = await platform.fetch(path, { headers: { origin: STRANGER } });
    expect([path, response.headers.get("access-control-allow-origin")]).toEqual([path, "*"]);
    expect(response.headers.get("access-control-allow-credentials")).toBeNull();
    expect(response.headers.get("access-control-expose-headers")).toContain("X-Request-Id");
  }
  const without = await platform.fetch("/api/health");
  expect([...without.headers.keys()].filter((name) => name.startsWith("access-control"))).toEqual([]);
});

test("[HT8] with a list only its origins may, by name where credentials are allowed", async () => {
  const address = { "x-forwarded-for": "192.0.2.1" };
  const listed = await strict.service.fetch("/api/config", { headers: { ...address, origin: ORIGIN } });
  expect(listed.headers.get("access-control-allow-origin")).toBe(ORIGIN);
  expect(listed.headers.get("access-control-allow-credentials")).toBe("true");
  expect(listed.headers.get("vary")).toBe("Origin");
  const without = await strict.service.fetch("/api/config", { headers: address });
  expect([without.headers.get("vary"), without.headers.get("access-control-allow-origin")]).toEqual(["Origin", null]);
  for (const origin of [STRANGER, `${ORIGIN}.evil.example`, "null", ORIGIN.toUpperCase()]) {
    const other = await strict.service.fetch("/api/config", { headers: { ...address, origin } });
    expect([origin, other.headers.get("access-control-allow-origin")]).toEqual([origin, null]);
    expect([origin, other.headers.get("access-control-allow-credentials")]).toEqual([origin, null]);
    expect(other.headers.get("vary")).toBe("Origin");
  }
});

test("[HT9] a preflight tells a listed origin what it may send, and no other", async () => {
  const preflight = (path: string, origin: string) =>
    strict.fetch(path, { method: "OPTIONS", headers: { origin, "access-control-request-method": "POST" } });
  const allowed = await preflight(KV, ORIGIN);
  expect([allowed.status, await allowed.text()]).toEqual([204, ""]);
  expect(allowed.headers.get("access-control-allow-origin")).toBe(ORIGIN);
  expect(allowed.headers.get("access-control-allow-methods")).toContain("POST");
  expect(allowed.headers.get("access-control-allow-headers")).toMatch(/Authorization.*X-Platform-Service-Key/);
  // Range alone may join the parts of two files.
  expect(allowed.headers.get("access-control-allow-headers")).toContain("Range, If-Range");
  expect(allowed.headers.get("access-control-max-age")).toBe("60");
  // A path without parameters, with several methods, has the same.
  const me = await preflight("/api/auth/me", ORIGIN);
  expect([me.status, me.headers.get("access-control-allow-methods")]).toEqual([
    204,
    "GET, PATCH, DELETE, HEAD, OPTIONS",
  ]);
  const refused = await preflight(KV, STRANGER);
  expect([refused.status, refused.headers.get("access-control-allow-origin")]).toEqual([204, null]);
  expect(refused.headers.get("access-control-allow-methods")).toBeNull();
  await expectError(await preflight("/nothing", ORIGIN), 404);
});

test("[HT9] [HT122] a preflight of a path that may hold slashes has the methods of its end, and so has a 405", async () => {
  const cases = [
    ["/api/storage/nothing/a/b", "GET, PUT, DELETE, HEAD, OPTIONS"],
    ["/api/storage/nothing/a/b/metadata", "GET, PATCH, HEAD, OPTIONS"],
    ["/api/storage/nothing/upload", "GET, POST, PUT, DELETE, HEAD, OPTIONS"],
    ["/admin/tables", "GET, HEAD, OPTIONS"],
  ] as const;
  for (const [path, methods] of cases) {
    const preflight = await platform.fetch(path, { method: "OPTIONS", headers: { origin: STRANGER } });
    expect([path, preflight.status, preflight.headers.get("access-control-allow-methods")]).toEqual([
      path,
      204,
      methods,
    ]);
    const refused = await platform.fetch(path, { method: "PROPFIND" });
    expect([path, refused.status, refused.headers.get("allow")]).toEqual([path, 405, methods]);
  }
  expect((await platform.fetch("/api/storage/nothing/%zz", { method: "OPTIONS" })).status).toBe(400);
});

test("[HT10] [HT11] each address has its requests; then 429 until the window ends; a service key has no limit", async () => {
  const from = (forwarded: string, client = strict as Pick<TestPlatform, "fetch">) =>
    client.fetch("/api/config", { headers: { "x-forwarded-for": forwarded } });
  // What the client itself wrote comes before what the proxy wrote, and counts for nothing.
  for (let turn = 0; turn < 3; turn++) expect((await from(`198.51.100.${turn}, 203.0.113.7`)).status).toBe(200);
  const refused = await from("203.0.113.7");
  const retryAfterSeconds = Number(refused.headers.get("retry-after"));
  expect(await expectError(refused, 429)).toEqual({ code: 429, message: "Rate limit exceeded" });
  expect([1, 2]).toContain(retryAfterSeconds);
  expect((await from("203.0.113.8")).status).toBe(200);
  for (let turn = 0; turn < 10; turn++) expect((await from("203.0.113.7", strict.service)).status).not.toBe(429);
  await Bun.sleep(retryAfterSeconds * 1_000 + 20);
  expect((await from("203.0.113.7")).status).toBe(200);

  // Some proxies add the port, or write an IPv4 address as an IPv6 one: it stays one client.
  for (const form of ["203.0.113.9:50001", "[::ffff:203.0.113.9]:50002", "::ffff:203.0.113.9"]) {
    expect((await from(form)).status).toBe(200);
  }
  expect((await from("203.0.113.9")).status).toBe(429);

  const guess = () =>
    strict.withKey("wrong").fetch(KV, { method: "POST", headers: { "x-forwarded-for": "203.0.113.66" } });
  const statuses: number[] = [];
  for (let turn = 0; turn < 5; turn++) statuses.push((await guess()).status);
  expect(statuses).toEqual([401, 401, 401, 429, 429]);
});

test("[HT10] a header of administrators or keys without a valid one is no way around the limit", async () => {
  const invented = [{ "x-platform-service-key": "wrong" }, { "x-platform-admin": "1" }, { "x-platform-admin": "x" }];
  // Endpoints that look at no credentials, and those that do.
  const paths = [["/api/config", "/nothing", "/api/health"], ["/api/db/shared/tables/nothing"]];
  const withoutDashboard = await testPlatform({
    config: { admin: false, rateLimits: { global: { requests: 3, window: 60 } }, server: { trustProxy: true } },
  });
  try {
    let client = 70;
    for (const [name, server] of Object.entries({ strict, withoutDashboard })) {
      for (const asked of paths) {
        for (const headers of invented) {
          const from = `203.0.113.${client++}`;
          let last = 0;
          for (let turn = 0; turn < 5; turn++) {
            const path = asked[turn % asked.length] ?? "";
            last = (await server.fetch(path, { headers: { ...headers, "x-forwarded-for": from } })).status;
          }
          expect({ name, asked, headers, last }).toEqual({ name, asked, headers, last: 429 });
        }
      }
    }
  } finally {
    await withoutDashboard.stop();
  }
});

test("[HT10] all addresses of an IPv6 /64 share its requests", async () => {
  const from = (forwarded: string) => strict.fetch("/api/config", { headers: { "x-forwarded-for": forwarded } });
  for (const host of [":1", "2:3:4:5", "ffff:ffff:ffff:ffff"]) {
    expect((await from(`2001:db8:7:8:${host}`)).status).toBe(200);
  }
  expect((await from("2001:db8:7:8:a:b:c:d")).status).toBe(429);
  expect((await from("2001:db8:7:9::1")).status).toBe(200);
});

test("[HT11] without a proxy in front, a forwarded address is the client's own invention", async () => {
  const direct = await testPlatform({ config: { rateLimits: { global: { requests: 3, window: 60 } } } });
  const statuses: number[] = [];
  for (let turn = 0; turn < 5; turn++) {
    const answer = await direct.get("/api/config", { headers: { "x-forwarded-for": `203.0.113.${turn}` } });
    statuses.push(answer.status);
  }
  expect(statuses).toEqual([200, 200, 200, 429, 429]);
  await direct.stop();
});
