import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { type SignedIn, signIn, type TestPlatform, temporaryDirectory, testPlatform } from "../../support/index.ts";
import { png } from "../storage/pictures.ts";

/** A new connection for each request: the system spreads connections over the processes. */
const ALONE = { headers: { connection: "close" } };
const PROCESSES = 3;
const ROUNDS = 200;
const READER = "files-reader-key-0123456789abcdefghijklmnopq";

const site = join(temporaryDirectory(), "site");
mkdirSync(join(site, "guide"), { recursive: true });
writeFileSync(join(site, "index.html"), "<h1>first page</h1>");
writeFileSync(join(site, "guide", "index.html"), "<h1>guide</h1>");
writeFileSync(join(site, "app.css"), "body{color:red}");

const config = (workers: number) => `export default {
  server: { workers: ${workers} },
  site: { directory: ${JSON.stringify(site)} },
  serviceKeys: { reader: { key: "${READER}", scopes: ["storage:bucket:kept:read"] } },
  rateLimits: { auth: { requests: 100_000, window: 60 }, signin: { requests: 100_000, window: 60 } },
  databases: { shared: { tables: {
    members: { schema: { userId: { type: "string" } }, indexes: [{ fields: ["userId"] }], access: { read: true } },
  } } },
  storage: { buckets: {
    open: { access: { read: true, write: true, delete: true }, thumbs: ["16x16"] },
    kept: {},
    own: { access: { read: (auth, file) => file.uploadedBy === auth?.id, write: (auth) => auth !== null } },
    club: { access: {
      read: (auth, _file, { db }) => auth !== null && db("shared").table("members").exists([["userId", "==", auth.id]]),
      write: true,
    } },
    slow: { access: { read: async () => { await Bun.sleep(1); return true; }, write: true } },
    caught: { access: {
      read: (auth, _file, { db }) => { try { return db("none").table("keys").get("open") !== null; } catch { return false; } },
      write: true,
    } },
  } },
};`;

let platform: TestPlatform;
let user: SignedIn;
let other: SignedIn;
beforeAll(async () => {
  platform = await testPlatform({ config: config(2) });
  [user, other] = [await signIn(platform), await signIn(platform)];
});
afterAll(() => platform.stop());

async function upload(by: Pick<TestPlatform, "fetch">, bucket: string, key: string, content: string | Blob) {
  const form = new FormData();
  form.append("key", key);
  form.append("file", typeof content === "string" ? new Blob([content], { type: "text/plain" }) : content, "a.txt");
  const sent = await by.fetch(`/api/storage/${bucket}/upload`, { method: "POST", body: form, ...ALONE });
  expect(sent.status).toBe(201);
}

/** The process that has answered: the beginning of the request's id. */
const processOf = (answer: Response): string => (answer.headers.get("x-request-id") ?? "").slice(0, 12);

/** Asks until each process has answered. Returns one answer of each, without what differs between any two answers. */
async function ofEach(ask: () => Promise<Response>): Promise<object[]> {
  const answers = new Map<string, object>();
  for (let asked = 0; answers.size < PROCESSES; asked++) {
    if (asked === 300) throw new Error(`only ${answers.size} processes have answered`);
    const answer = await ask();
    const { "x-request-id": _, date: _date, ...headers } = Object.fromEntries(answer.headers);
    const body = Bun.hash(await answer.bytes());
    const process = processOf(answer);
    const seen = { status: answer.status, headers, body };
    const known = answers.get(process);
    if (known !== undefined) expect<object>(seen).toEqual(known);
    answers.set(process, seen);
  }
  return [...answers.values()];
}

/** Path, headers, status and method of a request, of which each process gives the same answer. */
const ASKED: readonly [string, string, Record<string, string>, number, "GET" | "HEAD"][] = [
  ["a file", "/api/storage/open/a.txt", {}, 200, "GET"],
  ["a file of an encoded key", "/api/storage/open/%C3%A4%20b/c.txt", {}, 200, "GET"],
  ["the headers of a file", "/api/storage/open/a.txt", {}, 200, "HEAD"],
  ["a range", "/api/storage/open/a.txt", { range: "bytes=2-5" }, 206, "GET"],
  ["the end of a file", "/api/storage/open/a.txt", { range: "bytes=-3" }, 206, "GET"],
  ["several ranges, which are ignored", "/api/storage/open/a.txt", { range: "bytes=0-1,3-4" }, 200, "GET"],
  ["an empty file", "/api/storage/open/empty", {}, 200, "GET"],
  ["a file that the client has", "/api/storage/open/a.txt", { "if-none-match": "*" }, 304, "GET"],
  ["a range of another version", "/api/storage/open/a.txt", { range: "bytes=0-1", "if-range": '"x"' }, 200, "GET"],
  ["the first page", "/", {}, 200, "GET"],
  ["a file of the site", "/app.css", {}, 200, "GET"],
  ["the headers of a file of the site", "/app.css", {}, 200, "HEAD"],
  ["a range of a file of the site", "/app.css", { range: "bytes=0-3" }, 206, "GET"],
  ["the page of a directory", "/guide/", {}, 200, "GET"],
  ["the dashboard", "/admin", { "accept-encoding": "gzip" }, 200, "GET"],
  ["a page of the dashboard", "/admin/tables/shared", {}, 200, "GET"],
  ["the client", "/client/index.js", { "accept-encoding": "br" }, 200, "GET"],
  ["the package of the client", "/client/platform.tgz", {}, 200, "GET"],
  ["the page of the API", "/swagger", {}, 200, "GET"],
  ["the script of that page", "/swagger/ui.js", {}, 200, "GET"],
  ["the public configuration", "/api/config", { origin: "https://elsewhere.example" }, 200, "GET"],
];

describe("[WK4] every process gives the same answer:", () => {
  beforeAll(async () => {
    await upload(platform.service, "open", "a.txt", "0123456789");
    await upload(platform.service, "open", "ä b/c.txt", "of an encoded key");
    await upload(platform.service, "open", "empty", "");
  });

  test.each(ASKED)("%s", async (_, path, headers, status, method) => {
    const answers = await ofEach(() => platform.fetch(path, { method, headers: { ...headers, connection: "close" } }));
    expect(answers).toEqual(answers.map(() => expect.objectContaining({ status })));
  });

  test("a download by a service key, a user, and a signed URL of either", async () => {
    await upload(platform.service, "kept", "k", "kept");
    await upload(user, "own", "mine", "mine");
    const signed = async (by: Pick<TestPlatform, "post">, bucket: string, key: string): Promise<string> => {
      const { body } = await by.post<{ url: string }>(`/api/storage/${bucket}/signed-url`, { key });
      return new URL(body.url).pathname + new URL(body.url).search;
    };
    const ofKey = await signed(platform.withKey(READER), "kept", "k");
    const ofUser = await signed(user, "own", "mine");
    const asks = [
      () => platform.withKey(READER).fetch("/api/storage/kept/k", ALONE),
      () => user.fetch("/api/storage/own/mine", ALONE),
      () => platform.fetch(ofKey, ALONE),
      () => platform.fetch(ofUser, ALONE),
    ];
    for (const ask of asks)
      expect(await ofEach(ask)).toEqual(Array(PROCESSES).fill(expect.objectContaining({ status: 200 })));
  });

  test("a thumbnail that has been made", async () => {
    await upload(platform.service, "open", "p.png", new Blob([png(40, 40)], { type: "image/png" }));
    const ask = () => platform.fetch("/api/storage/open/p.png?thumb=16x16", ALONE);
    expect((await ask()).status).toBe(200);
    expect(await ofEach(ask)).toEqual(Array(PROCESSES).fill(expect.objectContaining({ status: 200 })));
  });
});

test("[WK3] a refusal, and what a rule waits for, are the main process's in every case", async () => {
  await upload(platform.service, "slow", "s", "slow");
  await upload(platform.service, "caught", "c", "caught");
  await upload(user, "own", "refused", "own");
  const asks: [string, () => Promise<Response>, number][] = [
    ["missing", () => platform.fetch("/api/storage/open/none", ALONE), 404],
    ["malformed", () => platform.fetch("/api/storage/open/%E0%A4%A", ALONE), 400],
    ["of another", () => other.fetch("/api/storage/own/refused", ALONE), 403],
    ["anonymous", () => platform.fetch("/api/storage/own/refused", ALONE), 401],
    ["scope", () => platform.withKey(READER).fetch("/api/storage/open/a.txt", ALONE), 403],
    ["awaited", () => platform.fetch("/api/storage/slow/s", ALONE), 200],
    [
      "range",
      () => platform.fetch("/api/storage/open/a.txt", { headers: { ...ALONE.headers, range: "bytes=99-" } }),
      416,
    ],
    ["size", () => platform.fetch("/api/storage/open/a.txt?thumb=9x9", ALONE), 400],
    ["listing", () => user.fetch("/api/storage/own", ALONE), 200],
    ["metadata", () => user.fetch("/api/storage/own/refused/metadata", ALONE), 200],
    ["directory", () => platform.fetch("/guide", { ...ALONE, redirect: "manual" }), 301],
    ["page", () => platform.fetch("/none", ALONE), 404],
  ];
  for (const [name, ask, status] of asks) {
    const processes = new Set<string>();
    for (let n = 0; n < 12; n++) {
      const answer = await ask();
      expect([name, answer.status]).toEqual([name, status]);
      processes.add(processOf(answer));
    }
    expect([name, processes.size]).toEqual([name, 1]);
  }
});

test("[WK10] a file that was replaced or deleted is shown by no process once that is answered", async () => {
  for (let round = 0; round < ROUNDS; round++) {
    await upload(platform.service, "open", "turn", `round ${round}`);
    const got = await Promise.all(
      [1, 2, 3].map(async () => (await platform.fetch("/api/storage/open/turn", ALONE)).text()),
    );
    expect(got).toEqual(Array(3).fill(`round ${round}`));
    if (round % 2 === 0) continue;
    expect((await platform.service.fetch("/api/storage/open/turn", { method: "DELETE", ...ALONE })).status).toBe(200);
    const gone = await Promise.all(
      [1, 2, 3].map(async () => (await platform.fetch("/api/storage/open/turn", ALONE)).status),
    );
    expect(gone).toEqual([404, 404, 404]);
  }
}, 120_000);

test("[WK11] a right to a file that was taken away is used by no process once that is answered", async () => {
  await upload(platform.service, "club", "c", "club");
  const ask = () => Promise.all([1, 2, 3].map(async () => (await user.fetch("/api/storage/club/c", ALONE)).status));
  for (let round = 0; round < ROUNDS; round++) {
    const { id } = (await platform.service.post<{ id: string }>("/api/db/shared/tables/members", { userId: user.id }))
      .body;
    expect(await ask()).toEqual([200, 200, 200]);
    expect((await platform.service.delete(`/api/db/shared/tables/members/${id}`)).status).toBe(200);
    expect(await ask()).toEqual([403, 403, 403]);
  }
}, 120_000);

test("[WK11] a signed URL of a user who was disabled is good in no process once that is answered", async () => {
  const person = await signIn(platform);
  await upload(person, "own", "signed", "signed");
  const { url } = (await person.post<{ url: string }>("/api/storage/own/signed-url", { key: "signed" })).body;
  const ask = () =>
    Promise.all([1, 2, 3].map(async () => (await fetch(url, { headers: { connection: "close" } })).status));
  for (let round = 0; round < ROUNDS / 4; round++) {
    expect(await ask()).toEqual([200, 200, 200]);
    expect((await platform.service.patch(`/api/auth/admin/users/${person.id}`, { disabled: true })).status).toBe(200);
    expect(await ask()).toEqual([401, 401, 401]);
    expect((await platform.service.patch(`/api/auth/admin/users/${person.id}`, { disabled: false })).status).toBe(200);
  }
}, 120_000);

test("[WK23] downloads, pages and parts are counted once, with their status and method", async () => {
  const own = await testPlatform({ config: config(2) });
  await upload(own.service, "open", "a.txt", "0123456789");
  for (let n = 0; n < 30; n++) {
    await own.fetch("/api/storage/open/a.txt", { headers: { connection: "close", range: "bytes=0-1" } });
    await own.fetch("/api/storage/open/a.txt", { headers: { connection: "close", "if-none-match": "*" } });
    await own.fetch("/api/storage/open/a.txt", { method: "HEAD", ...ALONE });
    await own.fetch("/app.css", ALONE);
  }
  const counted = async (area: string, method: string, status: string): Promise<number> => {
    const text = await (await own.service.fetch("/metrics")).text();
    const line = new RegExp(
      `^platform_http_requests_total\\{area="${area}",method="${method}",status="${status}"\\} (\\d+)$`,
      "m",
    );
    return Number(line.exec(text)?.[1] ?? 0);
  };
  const all = () =>
    Promise.all([
      counted("storage", "GET", "2xx"),
      counted("storage", "GET", "3xx"),
      counted("storage", "HEAD", "2xx"),
    ]);
  while (!Bun.deepEquals(await all(), [30, 30, 30])) await Bun.sleep(50);
  await own.stop();
});
