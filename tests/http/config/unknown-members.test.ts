import { afterAll, beforeAll, expect, test } from "bun:test";
import { type ErrorAnswer, type SignedIn, signIn, type TestPlatform, testPlatform } from "../../support/index.ts";

let platform: TestPlatform;
let user: SignedIn;
beforeAll(async () => {
  platform = await testPlatform({
    config: {
      databases: {
        shared: { tables: { notes: { access: { insert: true, update: true, read: true, delete: true } } } },
      },
      auth: {
        ...{ anonymous: true, magicLink: true, emailOtp: true, mfa: { totp: true } },
        passkeys: { rpName: "Test", rpId: "localhost", origin: "http://localhost" },
      },
      rateLimits: { auth: { requests: 100_000, window: 60 }, signup: { requests: 100_000, window: 60 } },
    },
  });
  user = await signIn(platform);
});
afterAll(() => platform.stop());

const AUTH = [
  ...["signup", "signin", "signin/anonymous", "refresh", "signout", "change-password", "link/email"],
  ...["request-email-verification", "verify-email", "request-password-reset", "reset-password", "signin/magic-link"],
  ...["verify-magic-link", "signin/email-otp", "verify-email-otp", "change-email", "verify-email-change"],
  ...["mfa/totp/verify", "mfa/verify", "mfa/recovery", "passkeys/register", "passkeys/authenticate"],
].map((path) => `/api/auth/${path}`);
const PUSH_OF_USERS = ["register", "unregister", "topic/subscribe", "topic/unsubscribe"].map(
  (path) => `/api/push/${path}`,
);
const OF_KEYS = [
  ...["send", "send-many", "send-to-token", "send-to-topic", "broadcast"].map((path) => `/api/push/${path}`),
  ...["/api/auth/admin/users", "/api/admin/auth/users/import", "/api/realtime/broadcast", "/api/analytics/track"],
];
const NOTES = "/api/db/shared/tables/notes";
/** Members that a body may have, where that depends on one of them. */
const MEMBERS: Readonly<Record<string, object>> = { [`${NOTES}/batch-by-filter`]: { action: "delete" } };

test("[HT114] an unknown member of a body is 400 and named, in users, push, realtime, analytics and batches", async () => {
  const cases = [
    ...[...AUTH, ...PUSH_OF_USERS].map((path) => ({ method: "POST", path, client: user })),
    ...[...OF_KEYS, `${NOTES}/batch`, `${NOTES}/batch-by-filter`].map((path) => ({
      method: "POST",
      path,
      client: platform.service,
    })),
    { method: "PATCH", path: "/api/auth/me", client: user },
    { method: "DELETE", path: "/api/auth/mfa/totp", client: user },
    { method: "PATCH", path: `/api/auth/admin/users/${user.id}`, client: platform.service },
    { method: "PATCH", path: "/api/push/tokens", client: platform.service },
  ];
  const accepted: string[] = [];
  for (const { method, path, client } of cases) {
    const answer = await client.fetch(path, {
      method,
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ ...MEMBERS[path], surprise: 1 }),
    });
    const text = await answer.text();
    if (answer.status === 400 && text.includes('"surprise":{"code":"unknown_field"')) continue;
    accepted.push(`${method} ${path}: ${answer.status} ${text.slice(0, 150)}`);
  }
  expect(accepted).toEqual([]);
});

test("[HT114] of many unknown members the first twenty are named", async () => {
  const many = Object.fromEntries(Array.from({ length: 1_000 }, (_, index) => [`m${index}`, 1]));
  const { status, body } = await platform.service.post<ErrorAnswer>("/api/admin/auth/users/import", many);
  expect(status).toBe(400);
  // And `users`, which is missing.
  expect(Object.keys(body.data ?? {})).toHaveLength(21);
});
