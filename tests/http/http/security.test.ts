import { afterAll, beforeAll, expect, test } from "bun:test";
import { gzipSync } from "node:zlib";
import { type ListAnswer, type SignedIn, signIn, type TestPlatform, testPlatform } from "../../support/index.ts";
import { path, sendRaw, upload } from "../storage/storage-support.ts";

// Attacks below the endpoints: on framing, headers, paths and browsers. docs/security.md names each with its test.

const T = "/api/db/shared/tables/notes";

let platform: TestPlatform;
let ann: SignedIn;
beforeAll(async () => {
  platform = await testPlatform({
    config: `{
      databases: { shared: { tables: { notes: {
        schema: { text: { type: "text" }, slow: { type: "text", pattern: "^(a+)+$" }, square: { type: "text", pattern: "\\\\s+$" } },
        access: { read: true, insert: true } } } } },
      storage: { buckets: { files: { access: { read: true, write: (auth) => auth !== null } } } },
      kv: { cache: {} },
      auth: { redirectUrls: ["https://app.example.com"] },
    }`,
  });
  ann = await signIn(platform);
});
afterAll(() => platform.stop());

test("[HT20] every answer has nosniff, and pages, files and redirects send no referrer", async () => {
  await upload(ann, "files", "a.txt", "hello", { type: "text/plain" });
  const answers = await Promise.all([
    ...[
      "/api/health",
      "/nothing",
      "/swagger",
      "/swagger/json",
      "/swagger/ui.js",
      T,
      `${T}/none`,
      path("files", "a.txt"),
    ].map((url) => platform.fetch(url)),
    platform.fetch(T, { method: "PUT" }),
    platform.fetch(T, {
      method: "OPTIONS",
      headers: { origin: "https://a.example", "access-control-request-method": "GET" },
    }),
    platform.fetch(path("files", "a.txt"), { method: "HEAD" }),
    platform.fetch(path("files", "a.txt"), { headers: { range: "bytes=0-1" } }),
    platform.fetch(path("files", "a.txt"), { headers: { range: "bytes=9-" } }),
    platform.fetch("/api/auth/signin", { method: "POST", body: "{", headers: { "content-type": "application/json" } }),
  ]);
  for (const { url, status, headers } of answers) {
    const isJson = headers.get("content-type") === "application/json" || status === 204;
    const said = [headers.get("x-content-type-options"), isJson || headers.get("referrer-policy")];
    expect([url, status, ...said]).toEqual([url, status, "nosniff", isJson || "no-referrer"]);
    expect(headers.get("strict-transport-security")).toBeNull();
    expect(headers.get("server")).toBeNull();
  }
});

test("[HT20] the page loads nothing from other origins, and runs its own script only", async () => {
  const page = await platform.fetch("/swagger");
  const policy = page.headers.get("content-security-policy") ?? "";
  expect(page.headers.get("x-frame-options")).toBe("DENY");
  expect(policy).toContain("default-src 'none'");
  expect(policy).toContain("frame-ancestors 'none'");
  expect(policy).not.toMatch(/script-src[^;]*'unsafe/);
  const inline = [...(await page.text()).matchAll(/<script>(.*?)<\/script>/gs)].map(([, script = ""]) => script);
  expect(inline.length).toBe(1);
  for (const script of inline) {
    expect(policy).toContain(`'sha256-${new Bun.CryptoHasher("sha256").update(script).digest("base64")}'`);
  }
});

const HEAD = `POST ${T} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n`;
const FRAMES: readonly [what: string, headers: string, body: string][] = [
  ["a length and chunks", "Content-Length: 5\r\nTransfer-Encoding: chunked", "0\r\n\r\n"],
  ["chunks and a length", "Transfer-Encoding: chunked\r\nContent-Length: 5", "0\r\n\r\n"],
  ["two lengths", "Content-Length: 2\r\nContent-Length: 40", "{}"],
  ["a list of lengths", "Content-Length: 2, 2", "{}"],
  ["a length with a sign", "Content-Length: +2", "{}"],
  ["a negative length", "Content-Length: -1", "{}"],
  ["a hexadecimal length", "Content-Length: 0x2", "{}"],
  ["a space before the colon", "Content-Length : 2", "{}"],
  ["an unknown encoding", "Transfer-Encoding: xchunked", "0\r\n\r\n"],
  ["chunks that are not last", "Transfer-Encoding: chunked, identity", "0\r\n\r\n"],
  ["two encodings", "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity", "0\r\n\r\n"],
  ["a folded header", "Transfer-Encoding:\r\n chunked", "2\r\n{}\r\n0\r\n\r\n"],
  ["a chunk's size that is no number", "Transfer-Encoding: chunked", "zz\r\n{}\r\n0\r\n\r\n"],
  ["a chunk's size beyond all bounds", "Transfer-Encoding: chunked", "FFFFFFFFFFFFFFFFF\r\n{}\r\n0\r\n\r\n"],
  ["a NUL in a header", "X-A: a\0b\r\nContent-Length: 2", "{}"],
  ["a carriage return in a header", "X-A: a\rX-B: b\r\nContent-Length: 2", "{}"],
];

for (const [what, headers, body] of FRAMES) {
  test(`[HT21] ${what}: refused, and what is smuggled behind it is not answered`, async () => {
    const smuggled = `POST ${T} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 18\r\n\r\n{"text":"smuggled"}`;
    const received = await sendRaw(platform, `${HEAD}${headers}\r\n\r\n${body}${smuggled}`, 10_000);
    const statuses = [...received.matchAll(/^HTTP\/1\.1 (\d+)/gm)].map(([, status]) => status);
    expect(statuses).toEqual(["400"]);
    expect((await platform.get<ListAnswer>(T)).body.total).toBe(0);
  });
}

test("[HT21] endless headers are 431, another protocol 400 or 505, and the server goes on", async () => {
  const head = "GET /api/health HTTP/1.1\r\nHost: x\r\n";
  const odd: [string, RegExp][] = [
    [`${head}X-A: ${"a".repeat(100_000)}\r\n\r\n`, /^HTTP\/1\.1 431/],
    [`${head}${"X-A: a\r\n".repeat(5_000)}\r\n`, /^HTTP\/1\.1 431/],
    [`GET /api/health?${"a".repeat(100_000)} HTTP/1.1\r\nHost: x\r\n\r\n`, /^HTTP\/1\.1 (?:414|431)/],
    ["GET /api/health HTTP/9.1\r\nHost: x\r\n\r\n", /^HTTP\/1\.1 505/],
    ["\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", /^HTTP\/1\.1 400/],
    [
      "CONNECT elsewhere.example:80 HTTP/1.1\r\nHost: elsewhere.example\r\nConnection: close\r\n\r\n",
      /^HTTP\/1\.1 4\d\d/,
    ],
  ];
  for (const [text, wanted] of odd) expect((await sendRaw(platform, text, 10_000)).slice(0, 40)).toMatch(wanted);
  expect((await platform.get("/api/health")).status).toBe(200);
});

test("[HT22] keys, types, origins and parameters do not become headers", async () => {
  const injected = "x\r\nSet-Cookie: stolen=1\r\n\r\n<html>";
  const encoded = encodeURIComponent(injected);
  const plain = [
    `/api/storage/files/${encoded}`,
    `${T}/${encoded}`,
    `${T}?sort=${encoded}`,
    `/api/auth/oauth/${encoded}?redirect_url=${encoded}`,
    `/api/room/metadata?namespace=${encoded}&id=${encoded}`,
    `/${encoded}`,
  ];
  for (const url of plain) {
    const { status, headers } = await ann.fetch(url);
    expect([url, status >= 400 && status < 500, headers.get("set-cookie")]).toEqual([url, true, null]);
  }
  const created = await ann.fetch("/api/storage/files/multipart/create", {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ key: "b.txt", contentType: injected }),
  });
  expect(created.status).toBe(400);
  // A quote or a percent sign in a key stays inside its header.
  const key = 'q"u%0d%0aote;x=.html';
  expect((await upload(ann, "files", key, "<b>", { type: "text/html" })).status).toBe(201);
  const { headers } = await platform.fetch(path("files", key));
  expect(headers.get("content-disposition")).toMatch(/^attachment; filename\*=UTF-8''[\w.%-]+$/);
});

test("[HT22] one request is one line of the log", async () => {
  const forged = '{"level":"ERROR","message":"forged"}';
  await platform.fetch(`/api/nothing%0A${encodeURIComponent(forged)}`);
  await platform.fetch("/api/auth/signin", {
    method: "POST",
    headers: { "content-type": "application/json", "user-agent": forged },
    body: JSON.stringify({ email: `a\n${forged}@example.com`, password: "x" }),
  });
  for (const line of `${platform.stdout()}\n${platform.stderr()}`.split("\n")) {
    expect(line.startsWith('{"level":"ERROR","message":"forged"')).toBe(false);
  }
});

test("[HT23] a compressed body is not unpacked", async () => {
  const bomb = gzipSync(Buffer.alloc(64 * 1024 * 1024, "a"));
  const headers = { "content-type": "application/json", "content-encoding": "gzip" };
  expect((await platform.fetch(T, { method: "POST", body: bomb, headers })).status).toBe(415);
  const stored = await upload(ann, "files", "bomb.gz", new Uint8Array(bomb), { type: "application/gzip" });
  expect([stored.status, stored.body.size]).toEqual([201, bomb.byteLength]);
});

test("[HT24] cookies, query parameters and forms carry no credentials", async () => {
  const upTo = { method: "POST", body: JSON.stringify({ action: "get", key: "k" }) };
  const json = { "content-type": "application/json" };
  const cookies = `token=${ann.token}; accessToken=${ann.token}; session=${ann.refreshToken}; key=${platform.serviceKey}`;
  for (const url of ["/api/auth/me", `/api/auth/me?token=${ann.token}&access_token=${ann.token}`]) {
    expect((await platform.fetch(url, { headers: { cookie: cookies } })).status).toBe(401);
  }
  for (const url of ["/api/kv/cache", `/api/kv/cache?key=${platform.serviceKey}&serviceKey=${platform.serviceKey}`]) {
    expect((await platform.fetch(url, { ...upTo, headers: { ...json, cookie: cookies } })).status).toBe(401);
  }
  // What a page can send without asking first (a form, text/plain) is no JSON.
  for (const type of ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x"]) {
    const answer = await platform.fetch(T, { method: "POST", headers: { "content-type": type }, body: '{"text":"x"}' });
    expect([type, answer.status]).toEqual([type, 415]);
  }
  const signedIn = await platform.fetch("/api/auth/signin", {
    method: "POST",
    headers: json,
    body: JSON.stringify({ email: ann.email, password: ann.password }),
  });
  expect([signedIn.status, signedIn.headers.get("set-cookie")]).toEqual([200, null]);
});

test("[AU15] nobody can choose the session that another user signs in to", async () => {
  const sessionOf = (token: string): unknown =>
    JSON.parse(Buffer.from(token.split(".")[1] ?? "", "base64url").toString()).sid;
  const chosen = String(sessionOf(ann.token));
  const credentials = { email: ann.email, password: ann.password };
  const headers = { cookie: `sid=${chosen}; session=${chosen}`, "x-session-id": chosen };
  const first = await platform.post<{ accessToken: string }>("/api/auth/signin", credentials, { headers });
  const second = await platform.post<{ accessToken: string }>("/api/auth/signin", credentials, { headers });
  const sessions = [chosen, sessionOf(first.body.accessToken), sessionOf(second.body.accessToken)];
  expect(new Set(sessions).size).toBe(3);
  for (const member of ["sid", "sessionId", "refreshToken", "id"]) {
    const answer = await platform.post("/api/auth/signin", { ...credentials, [member]: chosen });
    expect([member, answer.status]).toEqual([member, 400]);
  }
});

test("[HT25] no spelling of a path leads to the server's files", async () => {
  const up = [
    "..",
    "%2e%2e",
    "..%2f..",
    "%2e%2e%2f%2e%2e",
    "....//",
    "..\\..",
    "%5c..%5c..",
    "..%c0%af..",
    "%252e%252e",
    "..;",
  ];
  const places = ["/", "/swagger/", "/api/storage/files/", "/api/db/shared/tables/", "/api/db/", "/api/storage/"];
  for (const place of places) {
    for (const climb of up) {
      for (const file of ["secrets.json", "etc/passwd", "system.db"]) {
        const climbs = Array(6).fill(climb).join("/");
        const received = await sendRaw(
          platform,
          `GET ${place}${climbs}/${file} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n`,
          10_000,
        );
        expect([place, climb, received.slice(9, 12)]).toEqual([place, climb, expect.stringMatching(/^40[0134]$/)]);
        expect(received).not.toMatch(/root:|jwtSecret|SQLite format/);
      }
    }
  }
});

test("[TB69] a pattern is matched against at most 10,000 characters", async () => {
  const post = (body: Record<string, string>) => platform.post(T, body);
  const answer = await post({ square: `${" ".repeat(10_000)}x` });
  expect(answer).toMatchObject({ status: 400, body: { data: { square: { code: "too_long" } } } });
  // The engine gives a nested repetition up after so many steps, whatever the length.
  expect((await post({ slow: `${"a".repeat(9_999)}!` })).body).toMatchObject({
    data: { slow: { code: "pattern_mismatch" } },
  });
  expect((await post({ square: `x${" ".repeat(100)}` })).status).toBe(201);
});
