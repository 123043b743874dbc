import { afterAll, beforeAll, expect, test } from "bun:test";
import { mkdirSync, renameSync, rmSync, statSync, symlinkSync, utimesSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { type TestPlatform, testPlatform, until } from "../../support/index.ts";
import { connectTo } from "../../support/tls/connect.ts";

const HTML = { headers: { accept: "text/html,*/*" } };
const APP = "console.log(1);".repeat(100);

const FILES = {
  "public/index.html": "<h1>home</h1>",
  "public/404.html": "<h1>own 404</h1>",
  "public/app.js": APP,
  "public/app.js.br": "brotli",
  "public/app.js.gz": "gzip",
  "public/assets/index-B2x9kQz1.js": "hashed",
  "public/docs/index.html": "<h1>docs</h1>",
  "public/docs/empty.txt": "",
  "public/with space.txt": "space",
  "public/.env": "SECRET=1",
  "public/.git/config": "secret",
  "public/.well-known/security.txt": "Contact: us",
  "public/api/trap.txt": "never",
  "public/metrics": "never",
  "secret.txt": "outside",
};

const config = (site: string, more = "") => `{ site: ${site}, ${more} api: { docs: true } }`;
const SITE = `{ directory: "./public", headers: { "X-Frame-Options": "DENY", "Referrer-Policy": "origin" } }`;

let platform: TestPlatform;
let directory: string;
beforeAll(async () => {
  platform = await testPlatform({ config: config(SITE), files: FILES });
  directory = join(dirname(platform.configFile), "public");
});
afterAll(() => platform.stop());

const get = async (path: string, headers: Record<string, string> = {}) => {
  const response = await platform.fetch(path, { headers, decompress: false } as RequestInit);
  return { status: response.status, headers: response.headers, text: await response.text() };
};

/** Requests a path as it is, without the corrections that clients make. */
function rawGet(path: string): Promise<string> {
  const { hostname } = new URL(platform.url);
  const { promise, resolve, reject } = Promise.withResolvers<string>();
  let text = "";
  const socket = connectTo(platform.url, () =>
    socket.write(`GET ${path} HTTP/1.1\r\nHost: ${hostname}\r\nConnection: close\r\n\r\n`),
  );
  socket.on("data", (chunk) => (text += chunk.toString()));
  socket.on("close", () => resolve(text));
  socket.on("error", reject);
  return promise;
}

test("[SI1] files are served with the type of their name", async () => {
  const { status, headers, text } = await get("/app.js", { "accept-encoding": "identity" });
  expect([status, headers.get("content-type"), text]).toEqual([200, "text/javascript;charset=utf-8", APP]);
  expect((await get("/with%20space.txt")).text).toBe("space");
  expect((await get("/docs/empty.txt")).status).toBe(200);
  const head = await platform.head("/app.js", { headers: { "accept-encoding": "identity" } });
  expect([head.status, head.headers.get("content-length"), head.body]).toEqual([200, String(APP.length), null]);
});

test("[SI1] new and changed files are served", async () => {
  const file = join(directory, "changing.txt");
  expect((await get("/changing.txt")).status).toBe(404);
  writeFileSync(file, "first");
  await until("the file is there", async () => (await get("/changing.txt")).status === 200);
  const { headers, text } = await get("/changing.txt");
  expect(text).toBe("first");
  writeFileSync(file, "second");
  const second = await get("/changing.txt", { "if-none-match": headers.get("etag") ?? "" });
  expect([second.status, second.text]).toEqual([200, "second"]);
  rmSync(file);
  expect((await get("/changing.txt")).status).toBe(404);
});

test("[SI3] another content of the same size and date has another ETag", async () => {
  const file = join(directory, "built.txt");
  const etags = [];
  for (const text of ["first.", "second"]) {
    writeFileSync(file, text);
    utimesSync(file, 1, 1);
    await until("it is served", async () => (await get("/built.txt")).text === text);
    etags.push((await get("/built.txt")).headers.get("etag"));
    // The times of file systems move in steps of some milliseconds.
    await until("the next change has a later time", () => statSync(file).ctimeMs + 50 < Date.now());
  }
  expect(etags[0]).not.toBe(etags[1] ?? null);
});

test("[SI2] index.html, and the slash at the end", async () => {
  expect((await get("/")).text).toBe("<h1>home</h1>");
  expect((await get("/?a=b")).text).toBe("<h1>home</h1>");
  expect((await get("/docs/")).text).toBe("<h1>docs</h1>");
  const { status, headers } = await get("/docs?a=b");
  expect([status, headers.get("location")]).toEqual([301, "/docs/?a=b"]);
  expect((await get("/app.js/")).status).toBe(404);
  expect((await get("/assets/")).status).toBe(404);
});

test("[SI3] ETag and Range", async () => {
  const { headers } = await get("/docs/index.html");
  const etag = headers.get("etag") ?? "";
  const same = await get("/docs/index.html", { "if-none-match": `W/${etag}` });
  expect([same.status, same.text, same.headers.get("etag")]).toEqual([304, "", etag]);
  const part = await get("/docs/index.html", { range: "bytes=1-2" });
  expect([part.status, part.text, part.headers.get("content-range")]).toEqual([206, "h1", "bytes 1-2/13"]);
  const valid = await get("/docs/index.html", { range: "bytes=1-2", "if-range": etag });
  expect(valid.status).toBe(206);
  const stale = await get("/docs/index.html", { range: "bytes=1-2", "if-range": '"other"' });
  expect([stale.status, stale.text]).toEqual([200, "<h1>docs</h1>"]);
  expect((await get("/docs/index.html", { range: "bytes=99-" })).status).toBe(416);
  expect((await get("/docs/index.html", { range: "bytes=0-1,3-4" })).status).toBe(200);
  for (const range of ["bytes=1-2", "bytes=99-"]) {
    const head = await platform.head("/docs/index.html", { headers: { range } });
    expect([head.status, head.headers.get("content-length")]).toEqual([200, "13"]);
  }
});

test("[SI4] a compressed sibling in its place", async () => {
  const br = await get("/app.js", { "accept-encoding": "gzip, br" });
  expect([br.text, br.headers.get("content-encoding"), br.headers.get("content-type")]).toEqual([
    "brotli",
    "br",
    "text/javascript;charset=utf-8",
  ]);
  const gzip = await get("/app.js", { "accept-encoding": "gzip, br;q=0" });
  expect([gzip.text, gzip.headers.get("content-encoding")]).toEqual(["gzip", "gzip"]);
  const plain = await get("/app.js", { "accept-encoding": "identity" });
  const etags = [br, gzip, plain].map(({ headers }) => headers.get("etag"));
  expect(new Set(etags).size).toBe(3);
  for (const { headers } of [br, gzip, plain]) expect(headers.get("vary")).toContain("Accept-Encoding");
  const part = await get("/app.js", { "accept-encoding": "br", range: "bytes=0-6" });
  expect([part.text, part.headers.get("content-encoding")]).toEqual(["console", null]);
  expect((await get("/docs/", { "accept-encoding": "br" })).headers.get("vary")).toBeNull();
});

test("[SI5] what is not there", async () => {
  const own = await get("/nothing", HTML.headers);
  expect([own.status, own.text, own.headers.get("content-type")]).toEqual([
    404,
    "<h1>own 404</h1>",
    "text/html;charset=utf-8",
  ]);
  const json = await get("/nothing.js");
  expect([json.status, JSON.parse(json.text)]).toEqual([
    404,
    { code: 404, message: "There is nothing at /nothing.js" },
  ]);
  expect((await platform.head("/nothing", HTML)).status).toBe(404);
});

test("[SI6] a single page", async () => {
  const files = { "public/index.html": "<h1>app</h1>" };
  const own = await testPlatform({ config: config(`{ directory: "public", spa: true }`), files });
  const textOf = async (path: string, headers: Record<string, string>) => {
    const response = await own.fetch(path, { headers });
    return [response.status, (await response.text()).includes("<h1>app</h1>")];
  };
  try {
    expect(await textOf("/users/7", { "sec-fetch-mode": "navigate" })).toEqual([200, true]);
    expect(await textOf("/users/7", HTML.headers)).toEqual([200, true]);
    expect(await textOf("/missing.js", { "sec-fetch-mode": "no-cors", accept: "*/*" })).toEqual([404, false]);
    expect(await textOf("/missing.js", { "sec-fetch-mode": "cors", ...HTML.headers })).toEqual([404, false]);
    expect(await textOf("/missing.js", { accept: "*/*" })).toEqual([404, false]);
    expect(await textOf("/api/missing", { "sec-fetch-mode": "navigate", ...HTML.headers })).toEqual([404, false]);
    expect(await textOf("/.env", { "sec-fetch-mode": "navigate" })).toEqual([404, false]);
    const page = await own.fetch("/nothing", { headers: { ...HTML.headers, "sec-fetch-mode": "cors" } });
    expect([page.status, page.headers.get("content-type")]).toEqual([404, "text/html; charset=utf-8"]);
  } finally {
    await own.stop();
  }
});

test("[SI7] caching by name", async () => {
  const cacheControl = async (path: string) => (await get(path)).headers.get("cache-control");
  expect(await cacheControl("/assets/index-B2x9kQz1.js")).toBe("public, max-age=31536000, immutable");
  for (const path of ["/", "/app.js", "/nothing"]) {
    const { headers } = await get(path, HTML.headers);
    expect([path, headers.get("cache-control")]).toEqual([path, "no-cache"]);
  }
});

test("[SI8] headers of the config", async () => {
  for (const path of ["/", "/app.js", "/nothing"]) {
    const { headers } = await get(path, HTML.headers);
    expect([path, headers.get("x-frame-options"), headers.get("referrer-policy")]).toEqual([path, "DENY", "origin"]);
  }
  expect((await platform.get("/api/health")).headers.get("x-frame-options")).toBeNull();
  const start = (headers: string) =>
    testPlatform({ config: config(`{ directory: ".", headers: ${headers} }`), files: FILES });
  await expect(start(`{ "X-A": "a\\r\\nX-B: b" }`)).rejects.toThrow("must be visible ASCII");
  await expect(start(`{ "Content-Length": "1" }`)).rejects.toThrow("is set by the server itself");
  await expect(start(`{ "a b": "1" }`)).rejects.toThrow("is not the name of a header");
});

test("[SI9] [SI10] dotfiles, the server's own paths, and ways out of the directory", async () => {
  expect((await get("/.well-known/security.txt")).text).toBe("Contact: us");
  const paths = [
    "/.env",
    "/.git/config",
    "/%2eenv",
    "/.",
    "/..",
    "/../secret.txt",
    "/%2e%2e/secret.txt",
    "/..%2fsecret.txt",
  ];
  const more = ["/docs/../../secret.txt", "//secret.txt", "/docs//index.html", "/..%5csecret.txt", "/app.js%00.html"];
  const own = [
    "/api/trap.txt",
    "/%61pi/trap.txt",
    "/api%2ftrap.txt",
    "/.well-known/../.env",
    "/.well-known/.env",
    "/%",
  ];
  for (const path of [...paths, ...more, ...own, `${"/..".repeat(20)}/etc/passwd`]) {
    const answer = await rawGet(path);
    expect([path, /^HTTP\/1\.1 (?:400|404) /.test(answer) || answer.includes("<h1>")]).toEqual([path, true]);
    expect([path, /outside|SECRET|secret\b.*config|never|root:/.test(answer)]).toEqual([path, false]);
  }
  expect((await get("/metrics")).text).not.toContain("never");
});

test("[SI10] a symbolic link is followed inside only, and may be set to another place", async () => {
  symlinkSync(join(directory, "..", "secret.txt"), join(directory, "out.txt"));
  symlinkSync("..", join(directory, "up"));
  symlinkSync("/etc", join(directory, "etc"));
  symlinkSync(join(directory, "docs"), join(directory, "current"));
  symlinkSync(join(directory, ".env"), join(directory, "env.txt"));
  expect((await get("/current/")).text).toBe("<h1>docs</h1>");
  for (const path of ["/out.txt", "/up/secret.txt", "/etc/passwd", "/etc/hostname"]) {
    expect([path, (await get(path)).status]).toEqual([path, 404]);
  }
  mkdirSync(join(directory, "docs2"));
  writeFileSync(join(directory, "docs2", "index.html"), "<h1>second</h1>");
  symlinkSync(join(directory, "docs2"), join(directory, "next"));
  renameSync(join(directory, "next"), join(directory, "current"));
  await until("the link leads to the other place", async () => (await get("/current/")).text === "<h1>second</h1>");
});

test("[SI10] a pipe is no file", async () => {
  expect(Bun.spawnSync(["mkfifo", join(directory, "pipe")]).exitCode).toBe(0);
  expect((await get("/pipe")).status).toBe(404);
});

test("[SI11] other methods, and what all answers have", async () => {
  const { status, headers } = await platform.fetch("/app.js", { method: "POST" });
  expect([status, headers.get("allow")]).toEqual([405, "GET, HEAD, OPTIONS"]);
  expect((await platform.fetch("/nothing", { method: "POST" })).status).toBe(404);
  for (const path of ["/", "/nothing"]) {
    const answer = await get(path, {
      ...HTML.headers,
      origin: "https://app.example.com",
      authorization: "Bearer wrong",
    });
    const common = ["x-request-id", "x-content-type-options", "access-control-allow-origin"];
    expect([path, common.filter((name) => answer.headers.get(name) === null)]).toEqual([path, []]);
  }
});

test("[SI11] the rate limit counts files", async () => {
  const limited = `rateLimits: { global: { requests: 2, window: 60 } },`;
  const own = await testPlatform({ config: config(SITE, limited), files: FILES });
  try {
    const statuses = [];
    for (let index = 0; index < 3; index++) statuses.push((await own.get("/docs/")).status);
    expect(statuses).toEqual([200, 200, 429]);
  } finally {
    await own.stop();
  }
});

test("[SI1] a directory that does not exist is a problem of the config", async () => {
  await expect(testPlatform({ config: config(`{ directory: "./dist" }`) })).rejects.toThrow("there is no directory");
});

test("[SI12] without a site / says what runs here", async () => {
  const own = await testPlatform({ config: {} });
  try {
    const { status, headers, body } = await own.get<{ text: string }>("/");
    expect([status, headers.get("content-type")]).toEqual([200, "text/html; charset=utf-8"]);
    expect(body.text).toContain('href="/swagger"');
    expect(body.text).toContain('href="/admin"');
    expect(body.text).toContain(`npm install ${own.url}/client/platform.tgz`);
    expect((await own.get("/index.html")).status).toBe(404);
    await own.restart({ config: { api: { docs: false }, admin: false } });
    const plain = (await own.get<{ text: string }>("/")).body.text;
    expect(plain).not.toContain("swagger");
    expect(plain).not.toContain("/admin");
  } finally {
    await own.stop();
  }
});
