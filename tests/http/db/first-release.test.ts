import { Database } from "bun:sqlite";
import { afterAll, beforeAll, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import * as layouts from "../../../schema/migrations/index.ts";
import config from "../../fixtures/first-release/config.ts";
import { ANN, LARGE_FILE, type Made, PASSKEY_SITE, partOf, readBack } from "../../fixtures/first-release/contents.ts";
import { createAuthenticator } from "../../support/authenticator.ts";
import { createHttpClient } from "../../support/http-client.ts";
import { SERVICE_KEY, temporaryDirectory, testClock } from "../../support/index.ts";
import { type TimedPlatform, timedPlatform } from "../../support/timed-platform.ts";
import { totpCode } from "../auth/auth-support.ts";

// A data directory that the first release made (tests/fixtures/first-release/make.ts), at the time when it was made.

const FIXTURE = resolve(import.meta.dir, "../../fixtures/first-release");
const FILES: Record<string, layouts.FileLayout> = {
  "system.db": layouts.systemLayout,
  "rooms.db": layouts.roomsLayout,
  "analytics.db": layouts.analyticsLayout,
  "kv/settings.db": layouts.kvLayout,
  "vectorize/tastes.db": layouts.vectorizeLayout,
  "databases/shared.db": layouts.tablesLayout,
  "databases/clubs/noir.db": layouts.tablesLayout,
};

let made: Made;
let dataDirectory: string;
let platform: TimedPlatform;

beforeAll(async () => {
  made = await Bun.file(join(FIXTURE, "made.json")).json();
  dataDirectory = temporaryDirectory();
  const unpacked = Bun.spawnSync(["tar", "xzf", join(FIXTURE, "data.tar.gz"), "-C", dataDirectory]);
  if (!unpacked.success) throw new Error(unpacked.stderr.toString());
  platform = await timedPlatform(config, { dataDirectory, clock: testClock(made.madeAt) });
});
afterAll(() => platform.stop());

const answersNow = () =>
  readBack({
    annId: made.ann.id,
    anonymous: platform,
    ann: platform.as(made.ann.accessToken),
    service: createHttpClient(() => platform.url, { "x-platform-service-key": SERVICE_KEY }),
  });

test("[DB31] everything in a directory of the first release is read back as it was", async () => {
  // Members that answers have gained since may be there beside.
  expect(await answersNow()).toMatchObject(made.answers);
});

test("[DB31] a second start changes nothing in the files", async () => {
  await platform.stop();
  const upgraded = snapshot(dataDirectory);
  expect(upgraded.size).toBeGreaterThan(15);
  const clock = testClock(made.madeAt);
  platform = await timedPlatform(config, { dataDirectory, clock });
  await platform.stop();
  expect(snapshot(dataDirectory)).toEqual(upgraded);
  platform = await timedPlatform(config, { dataDirectory, clock });
  expect(await answersNow()).toMatchObject(made.answers);
});

test("[US204] users of the first release count as having signed in: an invitation is 409", async () => {
  const service = createHttpClient(() => platform.url, { "x-platform-service-key": SERVICE_KEY });
  const invited = await service.post("/api/auth/admin/users/invite", { email: ANN.email });
  expect(invited).toMatchObject({ status: 409, body: { data: { email: { code: "not_unique" } } } });
});

test("[DB31] sessions, passwords, TOTP secrets and recovery codes of the first release remain valid", async () => {
  const { ann } = made;
  const refreshed = await platform.post("/api/auth/refresh", { refreshToken: ann.refreshToken });
  expect(refreshed.status).toBe(200);
  const ticket = async () => {
    const answer = await platform.post<{ mfaTicket: string }>("/api/auth/signin", { ...ANN });
    expect(answer).toMatchObject({ status: 200, body: { mfaRequired: true } });
    return answer.body.mfaTicket;
  };
  const code = totpCode(ann.totpSecret, 1, platform.clock.now());
  expect((await platform.post("/api/auth/mfa/verify", { mfaTicket: await ticket(), code })).status).toBe(200);
  const recovery = { mfaTicket: await ticket(), recoveryCode: ann.recoveryCode };
  expect((await platform.post("/api/auth/mfa/recovery", recovery)).status).toBe(200);
});

test("[DB31] access tokens, refresh tokens and passkeys of the first release remain valid", async () => {
  const { bob } = made;
  expect((await platform.as(bob.accessToken).get("/api/auth/me")).status).toBe(200);
  expect((await platform.post("/api/auth/refresh", { refreshToken: bob.refreshToken })).status).toBe(200);
  const authenticator = createAuthenticator({ ...PASSKEY_SITE, passkey: bob.passkey });
  const { body } = await platform.post<{ challenge: string }>("/api/auth/passkeys/auth-options");
  const signedIn = await platform.post("/api/auth/passkeys/authenticate", authenticator.authenticate(body));
  expect(signedIn).toMatchObject({ status: 200, body: { user: { email: "bob@example.com" } } });
});

test("[DB31] an upload that the first release began is continued, and its signed URLs remain valid", async () => {
  const ann = platform.as(made.ann.accessToken);
  const { key, parts } = LARGE_FILE;
  const { uploadId, part } = made.upload;
  const query = new URLSearchParams({ uploadId, key, partNumber: "2" });
  const second = await ann.fetch(`/api/storage/posters/multipart/upload-part?${query}`, {
    method: "POST",
    body: parts[1],
  });
  const complete = { uploadId, key, parts: [part, await partOf(second)] };
  expect((await ann.post("/api/storage/posters/multipart/complete", complete)).status).toBe(200);
  expect(await (await platform.fetch(`/api/storage/posters/${key}`)).text()).toBe(parts.join(""));

  expect(await (await platform.fetch(made.signed.download)).text()).toBe("a rocket in its eye");
  const headers = { "content-type": "text/plain" };
  expect((await platform.fetch(made.signed.upload, { method: "PUT", headers, body: "signed" })).ok).toBe(true);
  expect(await (await platform.fetch("/api/storage/posters/signed.txt")).text()).toBe("signed");
});

test("[DB31] references and unique fields of the first release hold", async () => {
  const orphan = await platform.post("/api/db/shared/tables/reviews", { film: "nosferatu" });
  expect(orphan).toMatchObject({ status: 400, body: { data: { film: { code: "unknown_reference" } } } });
  const twice = await platform.as(made.ann.accessToken).post("/api/db/clubs/noir/tables/members", { nickname: "Ann" });
  expect(twice).toMatchObject({ status: 409, body: { data: { nickname: { code: "not_unique" } } } });
  await platform.delete("/api/db/shared/tables/films/metropolis");
  const left = await platform.get<{ items: { film: string }[] }>("/api/db/shared/tables/reviews");
  expect(left.body.items.map(({ film }) => film)).toEqual(["paper-moon"]);
});

/** Path to content, of every file in the data directory; of a database, what its tables have and how they are declared. */
function snapshot(directory: string): Map<string, unknown> {
  const contents = new Map<string, unknown>();
  for (const path of new Bun.Glob("**/*").scanSync({ cwd: directory, dot: true })) {
    // Bookkeeping of SQLite: what a log has is read through its database.
    if (/-(wal|shm|journal)$|\.lock$/.test(path)) continue;
    const file = join(directory, path);
    const isDatabase = /\.db(\.v\d+)?$/.test(path);
    contents.set(path, isDatabase ? { rows: contentOf(file), schema: schemaOf(file) } : readFileSync(file, "base64"));
  }
  return contents;
}

function schemaOf(path: string): unknown {
  using sqlite = new Database(path, { readonly: true });
  const version = sqlite.query("PRAGMA user_version").values();
  return { version, tables: sqlite.query("SELECT name, sql FROM sqlite_schema ORDER BY name").values() };
}

/** Returns the content of a file, table by table, but for tables of extensions. */
function contentOf(path: string): Record<string, unknown> {
  using sqlite = new Database(path, { readonly: true });
  const tables = sqlite
    .query<{ name: string }, []>(
      "SELECT name FROM sqlite_schema WHERE type = 'table' AND sql NOT LIKE 'CREATE VIRTUAL%'",
    )
    .all();
  return Object.fromEntries(tables.map(({ name }) => [name, sqlite.query(`SELECT * FROM "${name}"`).values()]));
}

test("[DB300] every file that was upgraded has a copy beside it, as the first release left it", () => {
  const original = temporaryDirectory();
  Bun.spawnSync(["tar", "xzf", join(FIXTURE, "data.tar.gz"), "-C", original]);
  let copied = 0;
  for (const path of Object.keys(FILES)) {
    const [copy, ...others] = [...new Bun.Glob(`${path}.v*`).scanSync(dataDirectory)];
    if (copy === undefined) continue;
    copied++;
    expect(others).toEqual([]);
    expect(contentOf(join(dataDirectory, copy))).toEqual(contentOf(join(original, path)));
  }
  // Those that have got tables or columns since.
  expect(copied).toBe(Object.keys(FILES).length);
});

test("[DB31] [DB164] every file has its version afterwards, and a higher one is refused", async () => {
  await platform.stop();
  for (const [path, { steps }] of Object.entries(FILES)) {
    const sqlite = new Database(join(dataDirectory, path));
    expect([path, sqlite.query("PRAGMA user_version").values()]).toEqual([path, [[steps.length]]]);
    if (path === "system.db")
      expect(sqlite.query("SELECT topic FROM push_topics").values()).toEqual([["all"], ["premieres"]]);
    sqlite.close();
  }
  for (const [path, { name, steps }] of Object.entries(FILES)) {
    if (path === "databases/clubs/noir.db") continue; // opened by a request
    const sqlite = new Database(join(dataDirectory, path));
    sqlite.run(`PRAGMA user_version = ${steps.length + 1}`);
    const opening = timedPlatform(config, { dataDirectory, clock: testClock(made.madeAt) });
    await expect(opening).rejects.toThrow(
      `${path} has version ${steps.length + 1} of the ${name} tables, and this executable knows versions up to ${steps.length}`,
    );
    sqlite.run(`PRAGMA user_version = ${steps.length}`);
    sqlite.close();
  }
});
