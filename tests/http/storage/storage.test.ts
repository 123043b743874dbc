import { afterAll, beforeAll, expect, test } from "bun:test";
import { readdirSync, rmSync, statSync, truncateSync } from "node:fs";
import { join } from "node:path";
import { type SignedIn, signIn, type TestPlatform, testPlatform } from "../../support/index.ts";
import { bytesOnDisk, path, rawForm, type StoredFile, sendRaw, until, upload } from "./storage-support.ts";

let platform: TestPlatform;
let user: SignedIn;
beforeAll(async () => {
  platform = await testPlatform({
    config: `{
      storage: { buckets: {
        files: { access: { read: true, write: (auth) => auth !== null, delete: true } },
        lists: { access: { read: true, write: true } },
        inline: { inline: true, access: { read: true, write: true } },
        trusted: { inline: "sameOrigin", access: { read: true, write: true } },
      } },
    }`,
  });
  user = await signIn(platform);
});
afterAll(() => platform.stop());

const text = async (key: string, init?: RequestInit, bucket = "files") => {
  const answer = await platform.fetch(path(bucket, key), init);
  return { status: answer.status, headers: answer.headers, text: await answer.text() };
};

test("[ST83] a file whose bytes are missing on the disk, or cut short, is 503 and says so", async () => {
  const objects = join(platform.dataDirectory, "storage/objects");
  const paths = () => readdirSync(objects, { recursive: true, encoding: "utf8" });
  for (const key of ["lost", "short"]) {
    const before = new Set(paths());
    await upload(user, "files", key, "0123456789", { type: "text/plain" });
    const [added = ""] = paths().filter((name) => !before.has(name) && statSync(join(objects, name)).isFile());
    if (key === "lost") rmSync(join(objects, added));
    else truncateSync(join(objects, added), 9);
    for (const headers of [{}, { range: "bytes=2-4" }]) {
      const answer = await text(key, { headers });
      expect([key, answer.status, JSON.parse(answer.text).message]).toEqual([
        key,
        503,
        "The bytes of this file are missing on the server",
      ]);
    }
  }
});

test("[ST1] an upload answers the stored file object, with the type that the part declares", async () => {
  const answer = await upload(user, "files", "st1", "hello", { type: "image/png", metadata: '{"a":"b"}' });
  expect(answer.status).toBe(201);
  expect(answer.body).toEqual({
    key: "st1",
    size: 5,
    httpMetadata: { contentType: "image/png" },
    customMetadata: { a: "b" },
    uploaded: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/) as unknown as string,
  });
});

test("[ST1] fields in any order; parameters of the type stay; no type is octet-stream", async () => {
  const part = (type: string, key: string) =>
    `--X\r\nContent-Disposition: form-data; name="file"; filename="a.html"\r\n${type}\r\nbody\r\n--X\r\nContent-Disposition: form-data; name="key"\r\n\r\n${key}\r\n--X--\r\n`;
  const typed = await rawForm(user, "files", part("Content-Type: text/plain; charset=utf-8\r\n", "order"));
  expect(typed.status).toBe(201);
  expect((await typed.json()) as StoredFile).toMatchObject({
    httpMetadata: { contentType: "text/plain; charset=utf-8" },
  });
  const untyped = (await (await rawForm(user, "files", part("", "untyped"))).json()) as StoredFile;
  expect(untyped.httpMetadata.contentType).toBe("application/octet-stream");
  expect((await text("untyped")).text).toBe("body");
});

test("[ST2] incomplete and malformed forms are refused", async () => {
  const field = (name: string, value: string) =>
    `--X\r\nContent-Disposition: form-data; name="${name}"\r\n\r\n${value}\r\n`;
  const file = `--X\r\nContent-Disposition: form-data; name="file"; filename="a"\r\n\r\nbody\r\n`;
  const cases: [string, number][] = [
    [`${field("key", "k")}--X--`, 400],
    [`${file}--X--`, 400],
    [`${field("key", "")}${file}--X--`, 400],
    [`${field("key", "k")}${field("metadata", "{")}${file}--X--`, 400],
    [`${field("key", "k")}${field("metadata", '{"a":1}')}${file}--X--`, 400],
    [`${field("key", "k")}${field("metadata", "[]")}${file}--X--`, 400],
    [`${field("key", "k")}${field("metadata", "null")}${file}--X--`, 400],
    [`${field("key", "k")}${file}`, 400],
    [`${field("key", "k")}--X\r\nContent-Disposition: form-data; name="file"; filename="a"\r\n\r\nhalf`, 400],
    ["no form at all", 400],
    ["", 400],
    [field("x", "y").repeat(40) + file, 400],
    [`${field("key", "k".repeat(70_000))}${file}--X--`, 400],
    [`${field("key", "k")}${field("metadata", `{"a":"${"x".repeat(17_000)}"}`)}${file}--X--`, 413],
    [`${field("key", "k")}${field("metadata", `{"a":"${"x".repeat(70_000)}"}`)}${file}--X--`, 413],
    [`${field("key", "k")}${file}${file}--X--`, 400],
    [`${field("key", "k")}${field("key", "l")}${file}--X--`, 400],
    [`${field("key", "k")}${file}${field("metadata", "{}")}${field("metadata", '{"a":"b"}')}--X--`, 400],
  ];
  for (const [body, status] of cases)
    expect([(await rawForm(user, "files", body)).status, body.slice(0, 80)]).toEqual([status, body.slice(0, 80)]);
  expect((await rawForm(user, "files", file, "multipart/form-data")).status).toBe(400);
  expect((await rawForm(user, "files", "{}", "application/json")).status).toBe(415);
  const bare = await platform.service.fetch("/api/storage/files/upload", { method: "POST" });
  expect(bare.status).toBe(415);
  await until("nothing is left", () => bytesOnDisk(platform, "objects/incoming").length === 0);
});

test("[ST10] keys that are refused, by form, by path and by body", async () => {
  const wrong = [
    "/a",
    "a/",
    "a//b",
    "a/../b",
    "..",
    ".",
    "a/./b",
    "a\\b",
    "a\u0000b",
    "a\nb",
    "\u007f",
    "\u0085",
    "metadata",
    "a/metadata",
    "uploads/1/parts",
    "k".repeat(1025),
    "é".repeat(513),
  ];
  for (const key of wrong) {
    expect([key, (await upload(user, "files", key, "x")).status]).toEqual([key, 400]);
    expect([key, (await user.post("/api/storage/files/signed-upload-url", { key })).status]).toEqual([key, 400]);
    expect([key, (await user.post("/api/storage/files/multipart/create", { key })).status]).toEqual([key, 400]);
  }
  expect((await user.post("/api/storage/files/multipart/create", { key: "\ud800" })).status).toBe(400);
  for (const raw of ["a%00b", "a%5Cb", "%2Fa", "a%2F%2Fb", "a/%zz", "%ff", "a%2F..%2Fb", "%2E%2E%2Fx"]) {
    expect([raw, (await user.fetch(`/api/storage/files/${raw}`)).status]).toEqual([raw, 400]);
  }
  const climbing = await sendRaw(
    platform,
    "GET /api/storage/files/..%2f..%2f..%2fsecrets.json HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n",
    500,
  );
  expect(climbing).toStartWith("HTTP/1.1 400");
});

test("[ST11] odd keys come back under the same key", async () => {
  const keys = [
    "a/b/c.txt",
    "upload",
    "multipart/create",
    "signed-url",
    "uploads/1",
    "metadata/x",
    "a b+c&d=e?f#g%41.txt",
    "%2e%2e/x",
    "..a",
    "a..",
    "\u{1f600}/\u202e.txt",
    "e\u0301",
    "\u00e9",
    "k".repeat(1024),
    "__proto__",
    "'\"<>",
    ":x",
    "*",
  ];
  for (const key of keys) {
    expect([key, (await upload(user, "files", key, `is ${key}`)).status]).toEqual([key, 201]);
    expect([key, await text(key)]).toMatchObject([key, { status: 200, text: `is ${key}` }]);
    const metadata = await user.get<StoredFile>(`${path("files", key)}/metadata`);
    expect(metadata.body.key).toBe(key);
  }
  const encoded = await platform.fetch("/api/storage/files/a%2Fb%2Fc.txt");
  expect(await encoded.text()).toBe("is a/b/c.txt");
});

test("[ST20] the headers of a download and of HEAD", async () => {
  await upload(user, "files", "st20", "0123456789", { type: "image/gif" });
  const got = await text("st20");
  const head = await platform.head(path("files", "st20"));
  for (const { headers, status } of [got, head]) {
    expect(status).toBe(200);
    expect(headers.get("content-type")).toBe("image/gif");
    expect(headers.get("content-length")).toBe("10");
    expect(headers.get("etag")).toMatch(/^"[^"]+"$/);
    expect(headers.get("accept-ranges")).toBe("bytes");
    expect(headers.get("x-content-type-options")).toBe("nosniff");
    expect(Math.abs(Date.parse(headers.get("last-modified") ?? "") - Date.now())).toBeLessThan(60_000);
  }
  expect(head.body).toBeNull();
  expect((await platform.head(path("files", "missing"))).status).toBe(404);
  expect((await text("missing")).status).toBe(404);
  await upload(user, "files", "empty", "");
  expect(await text("empty")).toMatchObject({ status: 200, text: "" });
});

test("[ST21] a range is answered with 206, an impossible one with 416", async () => {
  await upload(user, "files", "st21", "0123456789");
  const range = async (value: string, more: Record<string, string> = {}) => {
    const answer = await text("st21", { headers: { range: value, ...more } });
    return [answer.status, answer.status === 416 ? "" : answer.text, answer.headers.get("content-range")];
  };
  expect(await range("bytes=2-4")).toEqual([206, "234", "bytes 2-4/10"]);
  expect(await range("bytes=7-")).toEqual([206, "789", "bytes 7-9/10"]);
  expect(await range("bytes=-3")).toEqual([206, "789", "bytes 7-9/10"]);
  expect(await range("bytes=-30")).toEqual([206, "0123456789", "bytes 0-9/10"]);
  expect(await range("bytes=8-99")).toEqual([206, "89", "bytes 8-9/10"]);
  expect(await range("bytes=0-0")).toEqual([206, "0", "bytes 0-0/10"]);
  expect(await range("bytes=10-")).toEqual([416, "", "bytes */10"]);
  expect(await range("bytes=-0")).toEqual([416, "", "bytes */10"]);
  const huge = "9".repeat(40);
  expect(await range(`bytes=${huge}-`)).toEqual([416, "", "bytes */10"]);
  expect(await range(`bytes=8-${huge}`)).toEqual([206, "89", "bytes 8-9/10"]);
  expect(await range(`bytes=-${huge}`)).toEqual([206, "0123456789", "bytes 0-9/10"]);
  for (const ignored of ["bytes=4-2", "bytes=0-1,3-4", "lines=0-1", "bytes=", "bytes=-", "bytes=a-b"]) {
    expect([ignored, ...(await range(ignored))]).toEqual([ignored, 200, "0123456789", null]);
  }
  const etag = (await text("st21")).headers.get("etag") ?? "";
  expect(await range("bytes=2-4", { "if-range": etag })).toEqual([206, "234", "bytes 2-4/10"]);
  expect(await range("bytes=2-4", { "if-range": '"other"' })).toEqual([200, "0123456789", null]);
});

test("[ST26] a method that a path does not have is 405 with Allow, before credentials", async () => {
  const [ofKey, ofMetadata, ofParts] = [
    "GET, PUT, DELETE, HEAD, OPTIONS",
    "GET, PATCH, HEAD, OPTIONS",
    "GET, HEAD, OPTIONS",
  ];
  const cases: [string, string, string][] = [
    ["PATCH", "a", ofKey],
    ["POST", "a/b", ofKey],
    ["PUT", "a/metadata", ofMetadata],
    ["DELETE", "a/metadata", ofMetadata],
    ["POST", "a%2Fmetadata", ofMetadata],
    ["PUT", "uploads/1/parts", ofParts],
    ["DELETE", "uploads/1/parts", ofParts],
    ["POST", "uploads/1/parts", ofParts],
    ["PATCH", "uploads/1/parts", ofParts],
    ["POST", "", ofParts],
    ["PUT", "", ofParts],
    ["PATCH", "upload", "GET, POST, PUT, DELETE, HEAD, OPTIONS"],
    ["PATCH", "multipart/create", "GET, POST, PUT, DELETE, HEAD, OPTIONS"],
  ];
  for (const [method, key, allow] of cases) {
    for (const client of [platform, user, platform.as("wrong"), platform.withKey("wrong")]) {
      const answer = await client.fetch(`/api/storage/files/${key}`, { method });
      expect([method, key, answer.status, answer.headers.get("allow")]).toEqual([method, key, 405, allow]);
    }
  }
  expect((await platform.fetch("/api/storage/files/%ff", { method: "POST" })).status).toBe(400);
});

test("[ST22] If-None-Match, until the file is overwritten", async () => {
  await upload(user, "files", "st22", "one");
  const etag = (await text("st22")).headers.get("etag") ?? "";
  for (const value of [etag, `W/${etag}`, `"x", ${etag}`, "*"]) {
    const answer = await text("st22", { headers: { "if-none-match": value } });
    expect([value, answer.status, answer.text]).toEqual([value, 304, ""]);
  }
  await upload(user, "files", "st22", "two");
  expect(await text("st22", { headers: { "if-none-match": etag } })).toMatchObject({ status: 200, text: "two" });
});

test("[ST23] types that a browser could run are not shown inline", async () => {
  for (const type of [
    "text/html",
    "TEXT/HTML; charset=utf-8",
    "image/svg+xml",
    "application/xml",
    "application/atom+xml",
    "text/rdf",
    "text/xsl",
    "application/x-unknown",
    "multipart/x-mixed-replace",
    "text/javascript",
  ]) {
    const form = `--X\r\nContent-Disposition: form-data; name="key"\r\n\r\nd/ü'x.html\r\n--X\r\nContent-Disposition: form-data; name="file"; filename="a"\r\nContent-Type: ${type}\r\n\r\n<script>\r\n--X--`;
    expect((await rawForm(user, "files", form)).status).toBe(201);
    const { headers } = await text("d/ü'x.html");
    expect(headers.get("content-type")).toBe(type);
    expect(headers.get("content-disposition")).toBe("attachment; filename*=UTF-8''%C3%BC%27x.html");
    expect(headers.get("content-security-policy")).toBe("sandbox");
    expect((await rawForm(user, "inline", form)).status).toBe(201);
    const shown = (await text("d/ü'x.html", {}, "inline")).headers;
    expect(shown.get("content-disposition")).toBe("inline");
    expect(shown.get("content-security-policy")).toMatch(/^sandbox /);
    expect(shown.get("content-security-policy")).not.toMatch(/allow-same-origin|escape-sandbox/);
    expect((await rawForm(user, "trusted", form)).status).toBe(201);
    const trusted = (await text("d/ü'x.html", {}, "trusted")).headers;
    expect(trusted.get("content-disposition")).toBe("inline");
    expect(trusted.get("content-security-policy")).toBeNull();
  }
  const smuggled = `--X\r\nContent-Disposition: form-data; name="key"\r\n\r\nk\r\n--X\r\nContent-Disposition: form-data; name="file"; filename="a"\r\nContent-Type: text/plain, text/html\r\n\r\n<script>\r\n--X--`;
  expect((await rawForm(user, "files", smuggled)).status).toBe(400);
});

test("[ST1] a content type of many semicolons and spaces is judged at once", async () => {
  const sign = (contentType: string) =>
    user.post("/api/storage/files/signed-upload-url", { key: "typed", contentType });
  for (const gap of ["; ", " ;", " ; ", ";\t;"]) {
    const many = `a/b${gap.repeat(80)}`;
    expect([gap, (await sign(`${many}"`)).status]).toEqual([gap, 400]);
    expect([gap, (await sign(`${many}x="; ;"`)).status]).toEqual([gap, 200]);
  }
});

test("[ST23] types that a browser never runs are shown inline", async () => {
  for (const type of ["image/png", "IMAGE/JPEG", "text/plain; charset=utf-8", "application/pdf", "video/mp4"]) {
    await upload(user, "files", "shown", "x", { type });
    const { headers } = await text("shown");
    expect([type, headers.get("content-disposition")]).toEqual([type, "inline"]);
    expect(headers.get("content-security-policy")).toBeNull();
  }
});

test("[ST24] lists: order, prefix, limit, cursor", async () => {
  const keys = ["b", "a/1", "a/2", "a", "a0", "\u{1f600}", "\uffee", "B", "a/\u{10ffff}x"];
  await Promise.all(keys.map((key) => upload(user, "lists", key, key)));
  const sorted = keys.toSorted((one, other) => Buffer.compare(Buffer.from(one), Buffer.from(other)));
  type Page = { objects: { key: string; size: number; uploaded: string }[]; truncated: boolean; cursor: string | null };
  const list = (query: Record<string, string | number> = {}) => user.get<Page>("/api/storage/lists", { query });
  const all = await list();
  expect(all.body.objects.map(({ key }) => key)).toEqual(sorted);
  expect(all.body).toMatchObject({ truncated: false, cursor: null });
  expect(Object.keys(all.body.objects[0] ?? {}).sort()).toEqual(["key", "size", "uploaded"]);
  const prefixed = await list({ prefix: "a/" });
  expect(prefixed.body.objects.map(({ key }) => key)).toEqual(["a/1", "a/2", "a/\u{10ffff}x"]);
  expect((await list({ prefix: "zz" })).body).toEqual({ objects: [], truncated: false, cursor: null });

  const seen: string[] = [];
  let cursor: string | null = null;
  do {
    const page: Page = (await list({ limit: 2, ...(cursor === null ? {} : { cursor }) })).body;
    expect(page.truncated).toBe(page.cursor !== null);
    expect(page.objects.length).toBeLessThanOrEqual(2);
    seen.push(...page.objects.map(({ key }) => key));
    cursor = page.cursor;
  } while (cursor !== null && seen.length < 100);
  expect(seen).toEqual(sorted);
  expect((await list({ limit: keys.length })).body.truncated).toBe(false);
  expect((await list({ limit: 5000 })).status).toBe(200);
  for (const query of [{ limit: 0 }, { limit: "x" }, { limit: 1.5 }, { limit: -1 }, { cursor: "!" }, { cursor: "" }]) {
    expect([query, (await list(query)).status]).toEqual([query, 400] as never);
  }
});

test("[ST25] metadata is set, overwritten and removed by name", async () => {
  await upload(user, "files", "st25", "x", { metadata: '{"a":"1","b":"2"}' });
  const url = `${path("files", "st25")}/metadata`;
  const etag = (await text("st25")).headers.get("etag");
  const patched = await user.patch<StoredFile>(url, { b: "3", c: "4", a: null });
  expect(patched).toMatchObject({ status: 200, body: { key: "st25", size: 1, customMetadata: { b: "3", c: "4" } } });
  expect((await user.get<StoredFile>(url)).body).toEqual(patched.body);
  expect((await text("st25")).headers.get("etag")).toBe(etag);
  expect((await user.patch(url, { d: 1 })).status).toBe(400);
  expect((await user.patch(url, [])).status).toBe(400);
  expect((await user.patch(url, { big: "x".repeat(17_000) })).status).toBe(413);
  expect((await user.patch(`${path("files", "none")}/metadata`, {})).status).toBe(404);
  expect((await user.get(`${path("files", "none")}/metadata`)).status).toBe(404);
  expect((await user.patch(path("files", "st25"), { a: "b" })).status).toBe(405);
  expect((await user.get<StoredFile>(url)).body).toEqual(patched.body);
  await Promise.all(Array.from({ length: 20 }, (_, index) => user.patch(url, { [`n${index}`]: "x" })));
  expect(Object.keys((await user.get<StoredFile>(url)).body.customMetadata)).toHaveLength(22);
});

test("[ST31] delete-batch reports each key", async () => {
  for (const key of ["b/1", "b/2"]) await upload(user, "files", key, "x");
  const batch = (keys: unknown) => user.post("/api/storage/files/delete-batch", { keys } as never);
  const answer = await batch(["b/1", "b/none", "../x", "b/2"]);
  expect(answer).toMatchObject({ status: 200, body: { deleted: ["b/1", "b/2"] } });
  expect((answer.body as { failed: { key: string; error: string }[] }).failed.map(({ key }) => key)).toEqual([
    "b/none",
    "../x",
  ]);
  for (const keys of [undefined, "b/1", [1], Array.from({ length: 101 }, (_, index) => `k${index}`)]) {
    expect((await batch(keys)).status).toBe(400);
  }
  expect((await batch(Array.from({ length: 100 }, (_, index) => `k${index}`))).status).toBe(200);
  expect((await user.post("/api/storage/lists/delete-batch", { keys: ["a"] })).body).toMatchObject({
    deleted: [],
    failed: [{ key: "a", error: "Access denied" }],
  });
});

test("[ST54] a Host that is not an address is 400", async () => {
  const body = '{"key":"any"}';
  const head = (host: string): string =>
    `POST /api/storage/files/signed-upload-url HTTP/1.1\r\nHost: ${host}\r\nAuthorization: Bearer ${user.token}\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\nConnection: close\r\n\r\n${body}`;
  expect(await sendRaw(platform, head("files.example:8080"), 2_000)).toContain("://files.example:8080/api/storage/");
  for (const host of ["a b", "[::1", "a:b:c", "a:99999", "%", "a/b", "a@b", "a?b"]) {
    const answer = await sendRaw(platform, head(host), 2_000);
    expect([host, answer.split(" ")[1]]).toEqual([host, "400"]);
  }
});
