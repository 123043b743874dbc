import { afterAll, beforeAll, expect, test } from "bun:test";
import type { JsonObject, JsonValue } from "../../../src/kernel/json/json.ts";
import { signIn, type TestPlatform, testPlatform } from "../../support/index.ts";
import { mailedToken, nextEmail, PASSWORD, signUp, type Tokens } from "../auth/auth-support.ts";

/** A hook calls `app.users` as the record's `calls` say, one after another, and keeps what each gave or threw. */
const CONFIG = `{
  rateLimits: { auth: { requests: 100000, window: 60 }, signup: { requests: 100000, window: 60 } },
  databases: { shared: { tables: { probes: {
    schema: { calls: { type: "json" }, results: { type: "json" } },
    access: { insert: true, read: true },
    hooks: {
      async beforeInsert(_auth, record, { users }) {
        const results = [];
        for (const [method, ...args] of record.calls) {
          try {
            const called = users[method](...args);
            // What was handed over is changed at once, which must have no effect.
            for (const arg of args) if (typeof arg === "object") for (const name in arg) arg[name] = "spoilt";
            results.push((await called) ?? null);
          } catch (error) {
            results.push({ status: error.status ?? 0, data: error.data ?? {}, message: error.message });
          }
        }
        return { calls: [], results };
      },
    },
  } } } },
}`;

let platform: TestPlatform;
beforeAll(async () => {
  platform = await testPlatform({ config: CONFIG });
});
afterAll(() => platform.stop());

// Each test knows what its calls give, and its assertions check it.
type Result = JsonObject & { status?: number; id: string };

async function call(...calls: [method: string, ...args: JsonValue[]][]): Promise<Result[]> {
  const answer = await platform.post<{ results: Result[] }>("/api/db/shared/tables/probes", { calls });
  expect([answer.status, answer.body]).toMatchObject([201, {}]);
  return answer.body.results;
}
const detail = async (id: string): Promise<JsonObject> => {
  const { name: _, ...user } = (await platform.service.get(`/api/auth/admin/users/${id}`)).body;
  return user;
};

test("[US200] app.users gives users as the detail of an administrator does, unknown ones as null", async () => {
  const email = nextEmail();
  const ada = await signIn(platform, { email, role: "editor", claims: { team: 7 } });
  const expected = await detail(ada.id);
  expect(expected).toMatchObject({ email, role: "editor", customClaims: { team: 7 }, disabled: false });
  const [byId, byEmail, missing, unknown, bad] = await call(
    ...[["get", ada.id] as ["get", string], ["find", { email: ` ${email.toUpperCase()} ` }] as ["find", JsonObject]],
    ["get", "nobody"],
    ["find", { email: "nobody@example.com" }],
    ["find", { email: "no address" }],
  );
  expect(byId).toEqual(expected as Result);
  expect(byEmail).toEqual(expected as Result);
  expect([missing, unknown]).toEqual([null, null] as unknown as Result[]);
  expect(bad).toMatchObject({ status: 400, data: { email: { code: "invalid_value" } } });
});

test("[US200] app.users.list pages through all users once, and finds some by the beginning of email or name", async () => {
  const prefix = `listed-${crypto.randomUUID().slice(0, 8)}`;
  for (let n = 0; n < 5; n++) await signUp(platform, `${prefix}-${n}@example.com`);
  const seen: string[] = [];
  for (let cursor: JsonValue = "0"; cursor !== null; ) {
    const [page] = await call(["list", { limit: 2, cursor }]);
    const users = page?.["users"] as Result[];
    expect(users.length).toBeLessThanOrEqual(2);
    seen.push(...users.map(({ id }) => id));
    cursor = page?.["cursor"] ?? null;
  }
  expect(new Set(seen).size).toBe(seen.length);
  const [found, all, bad, email] = await call(
    ["list", { q: prefix.toUpperCase() }],
    ["list"],
    ["list", { limit: 0 }],
    ["list", { email: "a@example.com" }],
  );
  const users = found?.["users"] as Result[];
  expect(users.map((user) => user["email"])).toEqual([0, 1, 2, 3, 4].map((n) => `${prefix}-${n}@example.com`));
  expect(users[0]).toEqual((await detail(users[0]?.id ?? "")) as Result);
  expect(users.every(({ id }) => seen.includes(id))).toBe(true);
  expect(((all?.["users"] ?? []) as Result[]).length).toBeGreaterThanOrEqual(5);
  expect(bad).toMatchObject({ status: 400, data: { limit: {} } });
  expect(email).toMatchObject({ status: 400, data: { email: { code: "unknown_field" } } });
});

test("[US201] app.users creates, changes and deletes with the checks of the endpoints, and copies what it is given", async () => {
  const email = nextEmail();
  const [created, again, bare, short, unknown] = await call(
    [
      "create",
      { email: email.toUpperCase(), password: PASSWORD, role: "editor", metadata: { n: 1 }, emailVerified: true },
    ],
    ["create", { email, password: PASSWORD }],
    ["create", { email: nextEmail() }],
    ["create", { email: nextEmail(), password: "short" }],
    ["create", { email: nextEmail(), disabled: true }],
  );
  expect(created).toMatchObject({ email, role: "editor", metadata: { n: 1 }, emailVerified: true, disabled: false });
  expect(again).toMatchObject({ status: 409, data: { email: { code: "not_unique" } } });
  expect(bare).toMatchObject({ role: "user", emailVerified: false });
  expect(short).toMatchObject({ status: 400, data: { password: { code: "too_short" } } });
  expect(unknown).toMatchObject({ status: 400, data: { disabled: { code: "unknown_field" } } });
  const id = String(created?.id);
  const signedIn = await platform.post<Tokens>("/api/auth/signin", { email, password: PASSWORD });
  expect(signedIn.status).toBe(200);
  const large = { text: "x".repeat(17_000) };
  const [updated, claims, tooLarge, tooLargeClaims, unknownField, nobody] = await call(
    ["update", id, { displayName: "Ada", appMetadata: { plan: "pro" } }],
    ["setClaims", id, { team: "blue" }],
    ["update", id, { metadata: large }],
    ["setClaims", id, large],
    ["update", id, { createdAt: "2020-01-01" }],
    ["update", "nobody", { displayName: "Ada" }],
  );
  expect(updated).toMatchObject({ id, displayName: "Ada", appMetadata: { plan: "pro" }, metadata: { n: 1 } });
  expect(claims).toBeNull();
  expect([tooLarge, tooLargeClaims, unknownField, nobody].map((one) => one?.status)).toEqual([413, 413, 400, 404]);
  expect(await detail(id)).toMatchObject({ displayName: "Ada", customClaims: { team: "blue" } });
  expect(await call(["revokeSessions", id], ["revokeSessions", "nobody"])).toMatchObject([
    null,
    { status: 404 },
  ] as never);
  expect((await platform.as(signedIn.body.accessToken).get("/api/auth/me")).status).toBe(401);
  expect(await call(["delete", id], ["delete", id], ["get", id])).toMatchObject([null, { status: 404 }, null] as never);
  for (const method of ["setClaims", "delete"])
    expect(await call([method, "nobody", {}])).toMatchObject([{ status: 404 }]);
});

test("[US202] app.users.auth gives what a rule gets; null for an unknown and a disabled user", async () => {
  const user = await signIn(platform, { role: "editor", claims: { team: 7 } });
  const [auth, unknown] = await call(["auth", user.id], ["auth", "nobody"]);
  expect(auth).toEqual({
    id: user.id,
    email: user.email,
    emailVerified: false,
    phone: null,
    role: "editor",
    isAnonymous: false,
    custom: { team: 7 },
    invitation: null,
  });
  expect(unknown).toBeNull();
  await call(["update", user.id, { disabled: true }]);
  expect(await call(["auth", user.id])).toEqual([null] as unknown as Result[]);
  expect((await user.get("/api/auth/me")).status).toBe(401);
});

test("[US203] app.users.invite does what the endpoint does", async () => {
  const email = nextEmail();
  const [invited, bad, redirect, large] = await call(
    ["invite", email.toUpperCase(), { role: "editor", metadata: { team: 7 } }],
    ["invite", email, { disabled: true }],
    ["invite", email, { redirectUrl: "https://evil.example.com/" }],
    ["invite", email, { metadata: { text: "x".repeat(17_000) } }],
  );
  const user = invited?.["user"] as unknown as Result;
  expect(user).toEqual((await detail(String(user.id))) as Result);
  expect(user).toMatchObject({ email, role: "editor", metadata: { team: 7 }, emailVerified: false });
  expect([bad, redirect, large].map((one) => one?.status)).toEqual([400, 400, 413]);
  const token = mailedToken(platform, email);
  expect((await platform.post("/api/auth/accept-invite", { token, password: PASSWORD })).status).toBe(200);
  expect(await call(["invite", email])).toMatchObject([{ status: 409 }]);
  expect(await call(["invite", { email: nextEmail() }])).toMatchObject([
    { status: 400, message: expect.stringContaining("app.users.invite(email, {") },
  ]);
});
