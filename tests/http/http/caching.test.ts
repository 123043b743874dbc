import { afterAll, beforeAll, expect, test } from "bun:test";
import { mkdirSync, mkdtempSync, utimesSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type SignedIn, signIn, type TestPlatform, testPlatform } from "../../support/index.ts";
import { png } from "../storage/pictures.ts";
import { path, sendRaw, upload } from "../storage/storage-support.ts";

const site = mkdtempSync(join(tmpdir(), "platform-site-"));
mkdirSync(join(site, "assets"));
writeFileSync(join(site, "index.html"), "<h1>A page</h1>");
writeFileSync(join(site, "404.html"), "<h1>There is nothing here, and this page says so</h1>");
writeFileSync(join(site, "assets/app-3f2b9c1a.js"), "export {};");
// Older than any request, to the second.
utimesSync(join(site, "index.html"), 1_760_000_000, 1_760_000_000);

const CONFIG = `{
  site: { directory: ${JSON.stringify(site)} },
  databases: { shared: { tables: {
    notes: { schema: { title: { type: "string" } }, access: { read: true, insert: true, update: true, delete: true } },
  } } },
  storage: { buckets: {
    public: { thumbs: ["40x40"], access: { read: true, write: true } },
    private: { thumbs: ["40x40"], access: { read: (auth) => auth !== null, write: true } },
  } },
  kv: { cache: {} },
  routes: (api) => api
    .get("/plain", () => ({ ok: true }))
    .get("/text", () => "ok")
    .get("/own", ({ set }) => { set.headers["cache-control"] = "public, max-age=60"; return { ok: true }; })
    .get("/response", () => new Response("ok"))
    .get("/failing", () => { throw new Error("it fails"); }),
}`;

let platform: TestPlatform;
let user: SignedIn;
beforeAll(async () => {
  platform = await testPlatform({ config: CONFIG });
  user = await signIn(platform);
  await upload(user, "public", "a.txt", "0123456789", { type: "text/plain" });
  await upload(user, "public", "a.png", png(50, 50), { type: "image/png" });
  await upload(user, "private", "a.txt", "0123456789", { type: "text/plain" });
});
afterAll(() => platform.stop());

test("[HT142] what depends on a caller is stored by no cache, errors included; files and pages are looked at again", async () => {
  const made = await user.post<{ id: string }>("/api/db/shared/tables/notes", { title: "one" });
  const [signed] = [await user.post<{ url: string }>("/api/storage/private/signed-url", { key: "a.txt" })];
  const note = `/api/db/shared/tables/notes/${made.body.id}`;
  const wanted: Record<string, string> = {
    [note]: "no-store",
    "/api/db/shared/tables/notes": "no-store",
    "/api/db/shared/tables/notes/nothing": "no-store",
    "/api/auth/me": "no-store",
    "/api/auth/sessions": "no-store",
    "/api/auth/admin/users": "no-store",
    "/api/health": "no-store",
    "/api/nothing": "no-store",
    "/api/functions/plain": "no-store",
    "/api/functions/text": "no-store",
    "/api/functions/response": "no-store",
    "/api/functions/failing": "no-store",
    "/api/functions/own": "public, max-age=60",
    "/api/storage/private": "no-store",
    "/api/storage/private/a.txt/metadata": "no-store",
    "/api/storage/private/nothing": "no-store",
    [path("public", "a.txt")]: "public, no-cache",
    [`${path("public", "a.png")}?thumb=40x40`]: "public, no-cache",
    [path("private", "a.txt")]: "private, no-cache",
    [new URL(signed.body.url).pathname + new URL(signed.body.url).search]: "private, no-cache",
    "/swagger": "no-cache",
    "/swagger/ui.js": "no-cache",
    "/swagger/json": "no-store",
    "/": "no-cache",
    "/assets/app-3f2b9c1a.js": "public, max-age=31536000, immutable",
  };
  const found: Record<string, string | null> = {};
  for (const at of Object.keys(wanted)) {
    const answer = await user.fetch(at);
    await answer.bytes();
    found[at] = answer.headers.get("cache-control");
  }
  expect(found).toEqual(wanted);
});

/** The Content-Length of an answer, which `fetch` leaves out of some. */
async function lengthOf(
  method: string,
  at: string,
  headers: readonly string[],
): Promise<[status: string, length: string]> {
  const lines = [`${method} ${at} HTTP/1.1`, "Host: localhost", "Connection: close", ...headers, "", ""];
  const answer = await sendRaw(platform, lines.join("\r\n"), 5_000);
  const [head = ""] = answer.split("\r\n\r\n");
  return [head.slice(9, 12), /^content-length: (\d+)$/im.exec(head)?.[1] ?? "none"];
}

const HTML = "Accept: text/html";
const LENGTHS = [
  ["/", HTML],
  ["/nothing", HTML],
  ["/assets/app-3f2b9c1a.js", ""],
  ["/api/health", ""],
  ["/api/nothing", ""],
  ["/swagger", ""],
  [path("public", "a.txt"), ""],
  [`${path("public", "a.png")}?thumb=40x40`, ""],
] as const;

for (const [at, header] of LENGTHS) {
  test(`[HT6] HEAD of ${at} (${header}) has the Content-Length of GET, and so where it is 304`, async () => {
    const headers = header === "" ? [] : [header];
    const got = await platform.fetch(at, {
      headers: {
        "accept-encoding": "identity",
        ...(header === "" ? {} : { [header.split(": ")[0] ?? ""]: header.split(": ")[1] ?? "" }),
      },
    });
    await got.bytes();
    const [status, length] = await lengthOf("GET", at, headers);
    expect(Number(length)).toBeGreaterThan(0);
    expect(await lengthOf("HEAD", at, headers)).toEqual([status, length]);
    const etag = got.headers.get("etag");
    if (etag === null) return;
    const known = [...headers, `If-None-Match: ${etag}`];
    expect(await lengthOf("HEAD", at, known)).toEqual(["304", length]);
    expect((await lengthOf("GET", at, known))[0]).toBe("304");
  });
}

for (const at of ["/", path("public", "a.txt"), `${path("public", "a.png")}?thumb=40x40`]) {
  test(`[HT143] If-Modified-Since decides about ${at} where there is no If-None-Match`, async () => {
    const plain = await platform.fetch(at);
    await plain.bytes();
    const modified = plain.headers.get("last-modified") ?? "";
    const since = (ms: number) => new Date(Date.parse(modified) + ms).toUTCString();
    const status = async (headers: Record<string, string>, method = "GET") =>
      (await platform.fetch(at, { method, headers })).status;
    for (const method of ["GET", "HEAD"]) {
      expect(await status({ "if-modified-since": modified }, method)).toBe(304);
      expect(await status({ "if-modified-since": since(60_000) }, method)).toBe(304);
      expect(await status({ "if-modified-since": since(-1_000) }, method)).toBe(200);
      expect(await status({ "if-modified-since": "yesterday" }, method)).toBe(200);
      expect(await status({ "if-modified-since": modified, "if-none-match": '"another"' }, method)).toBe(200);
    }
  });
}

test("[HT144] two Host headers are 400, equal ones too", async () => {
  for (const [path, second] of [
    ["/api/health", "localhost"],
    ["/api/functions/plain", "other.example"],
    ["/", "other.example"],
  ]) {
    const lines = [`GET ${path} HTTP/1.1`, "Host: localhost", `Host: ${second}`, "Connection: close", "", ""];
    expect(await sendRaw(platform, lines.join("\r\n"), 5_000)).toStartWith("HTTP/1.1 400 ");
  }
});
