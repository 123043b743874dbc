import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { argon2Sync, createHmac, pbkdf2Sync, scryptSync } from "node:crypto";
import type { JsonObject } from "../../../src/kernel/json/json.ts";
import { type ErrorAnswer, type TestPlatform, testPlatform } from "../../support/index.ts";
import { enrol, nextEmail, PASSWORD, signUp, type Tokens } from "../auth/auth-support.ts";

// Codes of one step are wanted, and its end may have to be waited for.
setDefaultTimeout(20_000);

let platform: TestPlatform;

beforeAll(async () => {
  platform = await testPlatform({
    config: {
      auth: { mfa: { totp: true } },
      rateLimits: { auth: { requests: 100_000, window: 60 }, signup: { requests: 100_000, window: 60 } },
      serviceKeys: {
        reader: { key: "reader-key-0123456789", scopes: ["auth:admin:*:read"] },
        writer: { key: "writer-key-0123456789", scopes: ["auth:admin:*:write"] },
        other: { key: "other-key-0123456789", scopes: ["kv:namespace:*:read"] },
      },
    },
  });
});
afterAll(() => platform.stop());

const BASE = "/api/auth/admin/users";
const IMPORT = "/api/admin/auth/users/import";

interface Created {
  user: { id: string; email: string; displayName: string | null; role: string; createdAt: string };
}

interface Page {
  users: { id: string; email: string; role: string; createdAt: string }[];
  cursor: string | null;
}

const create = (body: JsonObject = {}) =>
  platform.service.post<Created>(BASE, { email: nextEmail(), password: PASSWORD, ...body });
const signIn = (email: string, password = PASSWORD) => platform.post<Tokens>("/api/auth/signin", { email, password });
/** A hash by another implementation than the server's. */
function argon2Of(algorithm: "argon2id" | "argon2i", cost: { parallelism: number; memory: number }): string {
  const nonce = Buffer.from("0123456789abcdef");
  const tag = argon2Sync(algorithm, { message: PASSWORD, nonce, tagLength: 32, passes: 2, ...cost });
  const base64 = (bytes: Uint8Array) => Buffer.from(bytes).toString("base64").replace(/=+$/, "");
  return `$${algorithm}$v=19$m=${cost.memory},t=2,p=${cost.parallelism}$${base64(nonce)}$${base64(tag)}`;
}
const importUsers = (users: JsonObject[]) =>
  platform.service.post<ErrorAnswer & { results: { id: string; success: boolean }[] }>(IMPORT, { users });

describe("administration", () => {
  test("[US205] a key that may write and not read gets the id and what it has sent", async () => {
    const writer = platform.withKey("writer-key-0123456789");
    const invite = (client: TestPlatform["service"], body: JsonObject) =>
      client.post<{ user: JsonObject }>(`${BASE}/invite`, body);
    const email = nextEmail();
    const first = await invite(platform.service, { email, role: "editor", metadata: { secret: 1 } });
    const id = String(first.body.user["id"]);
    await platform.service.put(`${BASE}/${id}/claims`, { secret: 2 });
    const again = await invite(writer, { email });
    expect([again.status, again.body.user]).toEqual([201, { id, email }]);
    const [empty, named] = [
      await writer.patch(`${BASE}/${id}`, {}),
      await writer.patch(`${BASE}/${id}`, { role: "x" }),
    ];
    expect([empty.status, empty.body, named.body]).toEqual([200, { id }, { id, role: "x" }]);
    const whole = (await platform.service.patch(`${BASE}/${id}`, {})).body;
    expect(whole).toMatchObject({ id, role: "x", metadata: { secret: 1 }, customClaims: { secret: 2 } });
  });

  test("[US1] every endpoint requires a service key: 401 without or with a wrong one, 403 outside its scopes", async () => {
    const { user, accessToken } = await signUp(platform);
    const calls: [string, string][] = [
      ["GET", BASE],
      ["POST", BASE],
      ["GET", `${BASE}/${user.id}`],
      ["PATCH", `${BASE}/${user.id}`],
      ["DELETE", `${BASE}/${user.id}`],
      ["PUT", `${BASE}/${user.id}/claims`],
      ["POST", `${BASE}/${user.id}/revoke`],
      ["DELETE", `${BASE}/${user.id}/mfa`],
      ["POST", `${BASE}/invite`],
      ["POST", IMPORT],
    ];
    for (const [method, path] of calls) {
      const init = {
        method,
        headers: { "content-type": "application/json" },
        ...(method === "GET" ? {} : { body: "{}" }),
      };
      expect((await platform.fetch(path, init)).status).toBe(401);
      expect((await platform.as(accessToken).fetch(path, init)).status).toBe(401);
      const wrong = await platform.withKey("wrong").fetch(path, init);
      expect(wrong.status).toBe(401);
      expect(await wrong.json()).toEqual({ code: 401, message: "Invalid service key" });
      expect((await platform.withKey("other-key-0123456789").fetch(path, init)).status).toBe(403);
      if (method !== "GET")
        expect((await platform.withKey("reader-key-0123456789").fetch(path, init)).status).toBe(403);
    }
    expect((await platform.withKey("reader-key-0123456789").get(BASE)).status).toBe(200);
    expect((await platform.as(accessToken).get("/api/auth/me")).status).toBe(200);
  });

  test("[US2] create, read, change, delete have the interface's shapes", async () => {
    const email = nextEmail();
    const created = await create({ email: ` ${email.toUpperCase()} `, displayName: "Mary", role: "editor" });
    expect(created.status).toBe(201);
    const { user } = created.body;
    expect(user).toMatchObject({ id: user.id, email, displayName: "Mary", role: "editor", createdAt: user.createdAt });
    expect(Object.keys(created.body)).toEqual(["user"]);
    const read = await platform.service.get(`${BASE}/${user.id}`);
    expect(read.body).toMatchObject({
      ...{ id: user.id, email, name: "Mary", role: "editor", emailVerified: false },
      ...{ createdAt: user.createdAt, customClaims: {} },
    });
    const changed = await platform.service.patch(`${BASE}/${user.id}`, { role: "reviewer", displayName: "Mary S." });
    expect(changed.body).toMatchObject({
      id: user.id,
      email,
      displayName: "Mary S.",
      role: "reviewer",
      disabled: false,
    });
    expect((await platform.service.delete(`${BASE}/${user.id}`)).body).toMatchObject({
      ok: true,
      report: { records: {}, sessions: 0 },
    });
    const gone: Promise<{ status: number }>[] = [
      platform.service.get(`${BASE}/${user.id}`),
      platform.service.patch(`${BASE}/${user.id}`, {}),
      platform.service.delete(`${BASE}/${user.id}`),
      platform.service.put(`${BASE}/${user.id}/claims`, {}),
      platform.service.post(`${BASE}/${user.id}/revoke`),
      platform.service.delete(`${BASE}/${user.id}/mfa`),
    ];
    for (const answer of await Promise.all(gone)) expect(answer.status).toBe(404);
    expect((await signIn(email)).status).toBe(401);
    expect((await create()).body.user.role).toBe("user");
  });

  test("[US3] a known email is 409; missing and unknown fields are 400, each named", async () => {
    const { body } = await create();
    expect((await create({ email: body.user.email })).status).toBe(409);
    const empty = await platform.service.post<ErrorAnswer>(BASE, { disabled: true, id: "x" });
    expect(empty.status).toBe(400);
    const codes = Object.entries(empty.body.data ?? {}).map(([field, problem]) => [field, problem.code]);
    expect(Object.fromEntries(codes)).toEqual({
      ...{ email: "required", password: "required", disabled: "unknown_field", id: "unknown_field" },
    });
    const patch = await platform.service.patch<ErrorAnswer>(`${BASE}/${body.user.id}`, { createdAt: "2020-01-01" });
    expect(patch.body.data?.["createdAt"]?.code).toBe("unknown_field");
    for (const bad of [{ role: "" }, { role: null }, { disabled: "yes" }, { metadata: [] }, { displayName: 1 }]) {
      expect((await platform.service.patch(`${BASE}/${body.user.id}`, bad)).status).toBe(400);
    }
  });

  test("[US4] the list is in order of creation and its pages neither overlap nor leave out", async () => {
    const ids: string[] = [];
    for (let count = 0; count < 7; count++) ids.push((await create()).body.user.id);
    const seen: string[] = [];
    let cursor: string | null = "0";
    for (let page = 0; cursor !== null && page < 100; page++) {
      const answer: { body: Page } = await platform.service.get<Page>(BASE, { query: { limit: 3, cursor } });
      expect(answer.body.users.length).toBeLessThanOrEqual(3);
      seen.push(...answer.body.users.map((user) => user.id));
      // A user who goes between two pages moves nobody.
      if (page === 0) await platform.service.delete(`${BASE}/${seen[0]}`);
      cursor = answer.body.cursor;
    }
    expect(seen.slice(-7)).toEqual(ids);
    expect(new Set(seen).size).toBe(seen.length);
    const first = await platform.service.get<Page>(BASE);
    expect(Object.keys(first.body.users[0] ?? {})).toEqual(
      expect.arrayContaining(["createdAt", "email", "id", "role"]),
    );
    expect((await platform.service.get<Page>(BASE, { query: { limit: 5000 } })).body.cursor).toBeNull();
    for (const query of [{ limit: 0 }, { limit: -1 }, { limit: "x" }, { cursor: "x" }]) {
      expect((await platform.service.get(BASE, { query: query as Record<string, string> })).status).toBe(400);
    }
  });

  test("[US5] metadata and appMetadata are replaced whole, up to 16 KB each; appMetadata never reaches the user", async () => {
    const { user, accessToken } = await signUp(platform);
    const path = `${BASE}/${user.id}`;
    const filled = (bytes: number) => ({ x: "y".repeat(bytes - '{"x":""}'.length) });
    for (const field of ["metadata", "appMetadata"]) {
      expect((await platform.service.patch(path, { [field]: filled(16_384) })).status).toBe(200);
      expect((await platform.service.patch(path, { [field]: filled(16_385) })).status).toBe(413);
    }
    await platform.service.patch(path, { metadata: { a: 1 }, appMetadata: { secret: "only for the server" } });
    const read = await platform.service.get(path);
    expect(read.body).toMatchObject({ metadata: { a: 1 }, appMetadata: { secret: "only for the server" } });
    const caller = platform.as(accessToken);
    const answers = [
      await caller.get("/api/auth/me"),
      await caller.patch("/api/auth/me", {}),
      await signIn(String(user.email)),
    ];
    for (const answer of answers) expect(JSON.stringify(answer.body)).not.toContain("only for the server");
  });

  test("[US6] claims are replaced whole, up to 4 KB", async () => {
    const { user, refreshToken } = await signUp(platform);
    const path = `${BASE}/${user.id}/claims`;
    const filled = (bytes: number) => ({ x: "y".repeat(bytes - '{"x":""}'.length) });
    expect((await platform.service.put(path, filled(4097))).status).toBe(413);
    expect((await platform.service.put(path, filled(4096))).status).toBe(200);
    expect((await platform.service.put(path, { plan: "pro", seats: 3 })).body).toEqual({ ok: true });
    expect((await platform.service.put(path, { plan: "free" })).status).toBe(200);
    expect((await platform.service.get(`${BASE}/${user.id}`)).body["customClaims"]).toEqual({ plan: "free" });
    const renewed = await platform.post<Tokens>("/api/auth/refresh", { refreshToken });
    expect(renewed.body.user["customClaims"]).toEqual({ plan: "free" });
  });

  test("[US7] disabling ends every session at once; signing in is 403, only with the right password", async () => {
    const { user, accessToken, refreshToken } = await signUp(platform);
    const path = `${BASE}/${user.id}`;
    expect((await platform.service.patch(path, { disabled: true })).body["disabled"]).toBe(true);
    expect((await platform.as(accessToken).get("/api/auth/me")).body).toEqual({ code: 401, message: "Invalid token" });
    expect((await platform.post("/api/auth/refresh", { refreshToken })).status).toBe(401);
    const right = await signIn(String(user.email));
    expect([right.status, right.body as unknown]).toEqual([403, { code: 403, message: "Account is disabled" }]);
    expect((await signIn(String(user.email), "not the password")).status).toBe(401);
    await platform.service.patch(path, { disabled: false });
    expect((await signIn(String(user.email))).status).toBe(200);
    expect((await platform.as(accessToken).get("/api/auth/me")).status).toBe(401);
  });

  test("[US8] revoke ends every session of the user and nobody else's", async () => {
    const { user, accessToken, refreshToken } = await signUp(platform);
    const second = await signIn(String(user.email));
    const other = await signUp(platform);
    expect((await platform.service.post(`${BASE}/${user.id}/revoke`)).body).toEqual({ ok: true });
    for (const token of [accessToken, second.body.accessToken]) {
      expect((await platform.as(token).get("/api/auth/me")).status).toBe(401);
    }
    expect((await platform.post("/api/auth/refresh", { refreshToken })).status).toBe(401);
    expect((await platform.as(other.accessToken).get("/api/auth/me")).status).toBe(200);
    expect((await signIn(String(user.email))).status).toBe(200);
  });

  test("[US8] a deleted user's tokens are refused at their next use", async () => {
    const { user, accessToken, refreshToken } = await signUp(platform);
    await platform.service.delete(`${BASE}/${user.id}`);
    expect((await platform.as(accessToken).get("/api/auth/me")).status).toBe(401);
    expect((await platform.post("/api/auth/refresh", { refreshToken })).status).toBe(401);
    const again = await signUp(platform, String(user.email));
    expect(again.user.id).not.toBe(user.id);
  });

  test("[US9] removing MFA removes factors and recovery codes", async () => {
    const { user, accessToken } = await signUp(platform);
    await enrol(platform.as(accessToken));
    expect((await signIn(String(user.email))).body as unknown).toMatchObject({ mfaRequired: true });
    expect((await platform.service.delete(`${BASE}/${user.id}/mfa`)).body).toEqual({ ok: true });
    expect((await signIn(String(user.email))).body.accessToken).toBeString();
    const factors = await platform.as(accessToken).get("/api/auth/mfa/factors");
    expect(factors.body["factors"]).toEqual([]);
  });
});

describe("import", () => {
  test("[US10] ids, roles, verification and metadata come along; results are in the order given", async () => {
    const [one, two] = [nextEmail(), nextEmail()];
    const answer = await importUsers([
      {
        ...{ id: "imported-1", email: one, password: PASSWORD, displayName: "One", role: "editor", verified: true },
        ...{ metadata: { a: 1 }, appMetadata: { b: 2 }, avatarUrl: "https://example.com/1.png" },
      },
      { email: two, password: "another password" },
    ]);
    expect(answer.status).toBe(200);
    expect(answer.body.results[0]).toEqual({ id: "imported-1", success: true });
    expect((await platform.service.get(`${BASE}/imported-1`)).body).toMatchObject({
      ...{ email: one, name: "One", role: "editor", emailVerified: true, metadata: { a: 1 }, appMetadata: { b: 2 } },
    });
    const signedIn = await signIn(two, "another password");
    expect(signedIn.body.user).toMatchObject({ id: answer.body.results[1]?.id, role: "user", emailVerified: false });
  });

  test("[US11] bcrypt, argon2 and PBKDF2 hashes sign in, and are replaced by argon2id", async () => {
    const bcrypt = await Bun.password.hash(PASSWORD, { algorithm: "bcrypt", cost: 4 });
    // A reference of its own for what bcrypt does beyond 72 bytes: it looks no further.
    const long = "p".repeat(72);
    const bcryptLong = await Bun.password.hash(long, { algorithm: "bcrypt", cost: 4 });
    const salt = Buffer.from("0123456789abcdef");
    const derived = pbkdf2Sync(PASSWORD, salt, 2_000, 32, "sha256").toString("base64");
    const cases: [string, string, string][] = [
      [nextEmail(), bcrypt, PASSWORD],
      [nextEmail(), bcrypt.replace("$2b$", "$2a$"), PASSWORD],
      [nextEmail(), bcrypt.replace("$2b$", "$2y$"), PASSWORD],
      [nextEmail(), bcryptLong, `${long}and what other systems do not look at`],
      [nextEmail(), `pbkdf2:sha256:2000:${salt.toString("base64")}:${derived}`, PASSWORD],
      [nextEmail(), `pbkdf2_sha256$2000$${salt}$${derived}`, PASSWORD],
      [nextEmail(), argon2Of("argon2id", { parallelism: 4, memory: 64 }), PASSWORD],
      [nextEmail(), argon2Of("argon2i", { parallelism: 1, memory: 1_024 }), PASSWORD],
    ];
    const answer = await importUsers(cases.map(([email, passwordHash]) => ({ email, passwordHash })));
    expect(answer.status).toBe(200);
    for (const [email, , password] of cases) {
      expect((await signIn(email, "not the password")).status).toBe(401);
      expect((await signIn(email, password)).status).toBe(200);
    }
    // Replaced: now that the hash is argon2id, every byte counts.
    const [longEmail = ""] = cases[3] ?? [];
    expect((await signIn(longEmail, long)).status).toBe(401);
    for (const [email, , password] of cases) expect((await signIn(email, password)).status).toBe(200);
  });

  test("[US387] hashes of scrypt, of Firebase and of SHA-crypt sign in, and are replaced by argon2id", async () => {
    const salt = Buffer.from("0123456789abcdef");
    const plain = (bytes: Buffer): string => bytes.toString("base64").replace(/=+$/, "");
    const scrypt = scryptSync(PASSWORD, salt, 32, { N: 2 ** 10, r: 8, p: 2 });
    const cases: [email: string, hash: string, password: string][] = [
      [nextEmail(), `$scrypt$ln=10,r=8,p=2$${plain(salt)}$${plain(scrypt)}`, PASSWORD],
      // The example that Firebase publishes with its scrypt.
      [
        nextEmail(),
        "$firebase-scrypt$ln=14,r=8$42xEC+ixf3L2lw==$Bw==$jxspr8Ki0RYycVU8zykbdLGjFQ3McFUH0uiiTvC8pVMXAn210wjLNmdZJzxUECKbm0QsEmYUSDzZvpjeJ9WmXA==$lSrfV15cpx95/sZS2W9c9Kp6i/LVgQNDNC/qzrCnh1SAyZvqmZqAjTdn3aoItz+VHjoZilo78198JAdRuid5lQ==",
        "user1password",
      ],
      // As glibc makes them.
      [nextEmail(), "$5$saltstring$5B8vYYiY.CVt1RlTTf8KbXBH3hsxY/GNooZaBBGWEc5", "Hello world!"],
      [
        nextEmail(),
        "$6$rounds=10000$saltstringsaltst$OW1/O6BYHV6BcXZu8QVeXbDWra3Oeqh0sbHbbMCVNSnCM/UrjmM0Dp8vOuZeHBy/YTBmSK6H9qs/y3RnOaw5v.",
        "Hello world!",
      ],
    ];
    const users = cases.map(([email, passwordHash]) => ({ email, passwordHash }));
    expect((await importUsers(users)).status).toBe(200);
    for (const [email, , password] of cases) {
      expect((await signIn(email, `${password}!`)).status).toBe(401);
      expect((await signIn(email, password)).status).toBe(200);
      // By argon2id now.
      expect((await signIn(email, password)).status).toBe(200);
    }
    const short = "YWFhYWFhYWFhYWFhYWFhYQ";
    const refused: [hash: string, words: string][] = [
      [`$scrypt$ln=18,r=8,p=1$${short}$${short}`, "scrypt bytes of memory from 1 to 134217728, got 268435456"],
      [`$scrypt$ln=10,r=8,p=17$${short}$${short}`, "scrypt parallelism from 1 to 16, got 17"],
      [`$firebase-scrypt$ln=21,r=1$${short}$$${short}$${short}`, "scrypt logarithm from 1 to 20, got 21"],
      [`$6$rounds=1000001$salt$${"x".repeat(86)}`, "SHA-crypt rounds from 1000 to 1000000, got 1000001"],
      [`$5$rounds=999$salt$${"x".repeat(43)}`, "SHA-crypt rounds from 1000 to 1000000, got 999"],
      [`$5$salt$${"x".repeat(86)}`, "must be bcrypt"],
    ];
    for (const [passwordHash, words] of refused) {
      const answer = await importUsers([{ email: nextEmail(), passwordHash }]);
      expect(answer.status).toBe(400);
      expect(JSON.stringify(answer.body)).toContain(words);
    }
  });

  test("[US11] several sign-ins at once with an imported hash all succeed, and a wrong password beside them does not", async () => {
    const email = nextEmail();
    const passwordHash = await Bun.password.hash(PASSWORD, { algorithm: "bcrypt", cost: 6 });
    expect((await importUsers([{ email, passwordHash }])).status).toBe(200);
    const passwords = [PASSWORD, PASSWORD, "not the password", PASSWORD];
    const answers = await Promise.all(passwords.map((password) => signIn(email, password)));
    expect(answers.map(({ status }) => status)).toEqual([200, 200, 401, 200]);
  });

  test("[US11] PBKDF2 with a salt of one byte and a hash of 16 is taken; what is outside the bounds is named", async () => {
    const hash = (salt: number, size: number, iterations = 1_000) => {
      const bytes = Buffer.alloc(salt, 7);
      const derived = pbkdf2Sync(PASSWORD, bytes, Math.min(iterations, 1_000), size, "sha256");
      return `pbkdf2:sha256:${iterations}:${bytes.toString("base64")}:${derived.toString("base64")}`;
    };
    const email = nextEmail();
    expect((await importUsers([{ email, passwordHash: hash(1, 16) }])).status).toBe(200);
    expect((await signIn(email)).status).toBe(200);
    const argon2 = (cost: string, salt = "YWFhYWFhYWFhYWFhYWFhYQ") =>
      `$argon2id$v=19$${cost}$${salt}$${salt.repeat(2)}`;
    const refused: [passwordHash: string, words: string][] = [
      [hash(8, 15), "hash bytes from 16 to 128, got 15"],
      [hash(8, 129), "hash bytes from 16 to 128, got 129"],
      [hash(1_025, 32), "salt bytes from 1 to 1024, got 1025"],
      [hash(8, 32, 10_000_001), "iterations from 1 to 10000000, got 10000001"],
      [hash(8, 32).replace(":1000:", ":0:"), "iterations from 1 to 10000000, got 0"],
      [`$2b$17$${"x".repeat(53)}`, "bcrypt cost from 4 to 16, got 17"],
      ["pbkdf2:sha512:1000:c2FsdA==:aGFzaA==", "must be bcrypt"],
      [
        hash(8, 32)
          .replace(/^.*?:1000:/, "pbkdf2_sha256$$10000001$$")
          .replace(":", "$"),
        "got 10000001",
      ],
      [argon2("m=131073,t=1,p=1"), "argon2 memory (KiB) from 8 to 131072, got 131073"],
      [argon2("m=15,t=1,p=2"), "argon2 memory (KiB) from 16 to 131072, got 15"],
      [argon2("m=64,t=17,p=1"), "argon2 passes from 1 to 16, got 17"],
      [argon2("m=1024,t=1,p=17"), "argon2 lanes from 1 to 16, got 17"],
      [argon2("m=64,t=1,p=1", "YWFh"), "salt bytes from 8 to 1024, got 3"],
      [argon2("m=64,t=1,p=1").replace("argon2id", "argon2d"), "must be bcrypt"],
    ];
    for (const [passwordHash, words] of refused) {
      const answer = await importUsers([{ email: nextEmail(), passwordHash }]);
      expect([answer.status, answer.body.message]).toEqual([400, expect.stringContaining(words)]);
    }
  });

  test("[US12] one invalid user prevents the import, and the problems are named", async () => {
    const good = { email: nextEmail(), password: PASSWORD };
    const known = await create();
    const attempts: [JsonObject[], number, string][] = [
      [[good, { email: "no address", password: PASSWORD }], 400, "users.1.email"],
      [
        [good, { email: nextEmail(), password: PASSWORD, passwordHash: `$2b$04$${"x".repeat(53)}` }],
        400,
        "users.1.password",
      ],
      [[good, { email: nextEmail(), password: "short" }], 400, "users.1.password"],
      [[good, { email: nextEmail(), passwordHash: "md5:1234" }], 400, "users.1.passwordHash"],
      [[good, { email: nextEmail(), passwordHash: `$2b$31$${"x".repeat(53)}` }], 400, "users.1.passwordHash"],
      [[good, { email: nextEmail(), password: PASSWORD, disabled: "yes" }], 400, "users.1.disabled"],
      ...["a/b", ".", "..", "a\u0085b", "half\ud800", "x".repeat(257), "search", "aggregate"].map(
        (id): [JsonObject[], number, string] => [
          [good, { email: nextEmail(), password: PASSWORD, id }],
          400,
          "users.1.id",
        ],
      ),
      [[good, { email: "half\ud800@example.com", password: PASSWORD }], 400, "users.1.email"],
      [[good, { email: nextEmail(), password: PASSWORD, role: "half\ud800" }], 400, "users.1.role"],
      [[good, { email: nextEmail(), password: PASSWORD, toString: "x" }], 400, "users.1.toString"],
      [
        [good, { email: nextEmail(), password: PASSWORD, metadata: { x: "y".repeat(16_384) } }],
        400,
        "users.1.metadata",
      ],
      [[good, { email: known.body.user.email, password: PASSWORD }], 409, "users.1.email"],
      [[good, { email: good.email.toUpperCase(), password: PASSWORD }], 409, "users.1.email"],
      [[good, { email: nextEmail(), password: PASSWORD, id: known.body.user.id }], 409, "users.1.id"],
    ];
    for (const [users, status, field] of attempts) {
      const answer = await importUsers(users);
      expect([answer.status, Object.keys(answer.body.data ?? {})]).toEqual([status, [field]]);
    }
    expect((await signIn(good.email)).status).toBe(401);
    const over = await importUsers(Array.from({ length: 1001 }, () => ({ email: nextEmail(), password: PASSWORD })));
    expect(over.status).toBe(400);
    expect((await platform.service.post(IMPORT, {})).status).toBe(400);
    expect((await importUsers([])).body.results).toEqual([]);
  });

  test("[US13] other requests are answered while an import hashes passwords", async () => {
    const users = Array.from({ length: 60 }, () => ({ email: nextEmail(), password: PASSWORD }));
    let isDone = false;
    const running = importUsers(users).finally(() => {
      isDone = true;
    });
    let answered = 0;
    while (!isDone && answered < 10_000) {
      expect((await platform.get("/api/health")).status).toBe(200);
      answered++;
    }
    expect((await running).status).toBe(200);
    // The hashes alone take far longer than that many answers: none of them waited for the import.
    expect(answered).toBeGreaterThan(users.length);
  });

  test("[US14] a malformed token does not open the administration", async () => {
    const head = Buffer.from(JSON.stringify({ alg: "HS256" })).toString("base64url");
    const claims = Buffer.from(JSON.stringify({ sub: "x", sid: "x", role: "admin", exp: 9_999_999_999 })).toString(
      "base64url",
    );
    const mac = createHmac("sha256", "guessed").update(`${head}.${claims}`).digest("base64url");
    expect((await platform.as(`${head}.${claims}.${mac}`).get(BASE)).status).toBe(401);
    const admin = await create({ role: "admin" });
    const token = (await signIn(admin.body.user.email)).body.accessToken;
    expect((await platform.as(token).get(BASE)).status).toBe(401);
  });
});
