import { Database } from "bun:sqlite";
import { afterEach, expect, test } from "bun:test";
import { join } from "node:path";
import {
  type Enrolment,
  lastMail,
  mailAnswer,
  mailedToken,
  nextEmail,
  PASSWORD,
  type Ticket,
  type Tokens,
  totpCode,
} from "../../../../../tests/http/auth/auth-support.ts";
import { createAuthenticator } from "../../../../../tests/support/authenticator.ts";
import type { ErrorAnswer, HttpClient } from "../../../../../tests/support/index.ts";
import { openSocket } from "../../../../../tests/support/socket.ts";
import { type TimedPlatform, timedPlatform } from "../../../../../tests/support/timed-platform.ts";
import type { JsonObject } from "../../../../kernel/json/json.ts";
import { DAY_MS, HOUR_MS, MINUTE_MS, SECOND_MS } from "../../../../kernel/time/duration.ts";

const ORIGIN = "https://app.example.com";
const RP = { rpName: "Film Club", rpId: "app.example.com", origin: ORIGIN };
const AUTH = { passkeys: RP, mfa: { totp: true }, anonymous: true, magicLink: true, emailOtp: true };

let running: TimedPlatform | null = null;
async function platformAt(options: Parameters<typeof timedPlatform>[1] = {}): Promise<TimedPlatform> {
  running = await timedPlatform({ auth: AUTH }, options);
  return running;
}
afterEach(async () => running?.stop());

const signUp = async (platform: TimedPlatform): Promise<Tokens> =>
  (await platform.post<Tokens>("/api/auth/signup", { email: nextEmail(), password: PASSWORD })).body;
const signIn = (platform: TimedPlatform, email: unknown, password = PASSWORD) =>
  platform.post<Tokens & Ticket>("/api/auth/signin", { email: String(email), password });
const options = (caller: HttpClient) =>
  caller.post<JsonObject & { challenge: string }>("/api/auth/passkeys/register-options");

async function addPasskey(caller: HttpClient) {
  const authenticator = createAuthenticator({ rpId: RP.rpId, origin: ORIGIN });
  const given = await options(caller);
  const added = await caller.post("/api/auth/passkeys/register", authenticator.register(given.body));
  expect(added.status).toBe(200);
  return authenticator;
}
const passkeyCount = async (caller: HttpClient): Promise<number> =>
  (await caller.get<{ passkeys: JsonObject[] }>("/api/auth/passkeys")).body.passkeys.length;

test("[AU100] more than ten minutes after a sign-in, no access token, refreshed or not, adds or removes a way of signing in", async () => {
  const platform = await platformAt();
  const first = await signUp(platform);
  const { credentialId } = await addPasskey(platform.as(first.accessToken));
  platform.clock.advance(10 * MINUTE_MS + 1);
  const { body } = await platform.post<Tokens>("/api/auth/refresh", { refreshToken: first.refreshToken });
  const late = platform.as(body.accessToken);
  const attempts = [
    () => late.post<ErrorAnswer>("/api/auth/passkeys/register-options"),
    () => late.post<ErrorAnswer>("/api/auth/mfa/totp/enroll"),
    () => late.delete<ErrorAnswer>(`/api/auth/passkeys/${credentialId}`),
    () => late.delete<ErrorAnswer>("/api/auth/identities/one"),
  ];
  for (const attempt of attempts) {
    const { status, body: error } = await attempt();
    expect([status, error.message]).toEqual([401, "Sign in again"]);
  }
  expect((await late.get("/api/auth/me")).status).toBe(200);
  const again = platform.as((await signIn(platform, first.user.email)).body.accessToken);
  expect((await options(again)).status).toBe(200);
  expect((await again.post("/api/auth/mfa/totp/enroll")).status).toBe(200);
  expect((await again.delete(`/api/auth/passkeys/${credentialId}`)).status).toBe(200);
});

test("[AU100] a confirmed password counts like a sign-in; a guest without a way to sign in has no time limit", async () => {
  const platform = await platformAt();
  const { user, accessToken } = await signUp(platform);
  platform.clock.advance(11 * MINUTE_MS);
  expect((await options(platform.as(accessToken))).status).toBe(401);
  const changed = await platform
    .as(accessToken)
    .post<Tokens>("/api/auth/change-password", { currentPassword: PASSWORD, newPassword: "another password" });
  expect([changed.status, changed.body.user.id]).toEqual([200, user.id]);
  expect((await options(platform.as(changed.body.accessToken))).status).toBe(200);
  const guest = await platform.post<Tokens>("/api/auth/signin/anonymous");
  platform.clock.advance(12 * MINUTE_MS);
  const caller = platform.as(guest.body.accessToken);
  await addPasskey(caller);
  expect((await options(caller)).status).toBe(401);
});

test("[AU200] DELETE me wants a sign-in of the last ten minutes, which a refresh is not, and ends every session", async () => {
  const platform = await platformAt();
  const first = await signUp(platform);
  const email = String(first.user.email);
  const other = await signIn(platform, email);
  platform.clock.advance(10 * MINUTE_MS + 1);
  const { body } = await platform.post<Tokens>("/api/auth/refresh", { refreshToken: first.refreshToken });
  const late = await platform.as(body.accessToken).delete<ErrorAnswer>("/api/auth/me");
  expect([late.status, late.body.message]).toEqual([401, "Sign in again"]);
  const fresh = platform.as((await signIn(platform, email)).body.accessToken);
  expect((await fresh.delete("/api/auth/me?all=1")).status).toBe(400);
  const deleted = await fresh.delete("/api/auth/me");
  expect([deleted.status, deleted.body]).toEqual([200, { ok: true }]);
  for (const refreshToken of [body.refreshToken, other.body.refreshToken]) {
    expect((await platform.post("/api/auth/refresh", { refreshToken })).status).toBe(401);
  }
  expect((await fresh.get("/api/auth/me")).status).toBe(401);
  expect((await fresh.delete("/api/auth/me")).status).toBe(401);
  expect((await platform.refused(signIn(platform, email))).status).toBe(401);
  expect((await platform.post("/api/auth/signup", { email, password: PASSWORD })).status).toBe(201);
});

test("[AU200] an anonymous user without a way to sign in again deletes the account at any time", async () => {
  const platform = await platformAt();
  const { body } = await platform.post<Tokens>("/api/auth/signin/anonymous");
  platform.clock.advance(11 * MINUTE_MS);
  expect((await platform.as(body.accessToken).delete("/api/auth/me")).status).toBe(200);
  expect((await platform.as(body.accessToken).get("/api/auth/me")).status).toBe(401);
});

test("[AU101] a password reset removes the passkeys, unless keepPasskeys is true", async () => {
  const platform = await platformAt();
  const { user, accessToken } = await signUp(platform);
  await addPasskey(platform.as(accessToken));
  const reset = async (more: JsonObject): Promise<HttpClient> => {
    const email = String(user.email);
    await mailAnswer(platform, email, () => platform.post("/api/auth/request-password-reset", { email }));
    const token = mailedToken(platform, String(user.email));
    const answer = await platform.post("/api/auth/reset-password", { token, newPassword: PASSWORD, ...more });
    expect(answer.status).toBe(200);
    return platform.as((await signIn(platform, user.email)).body.accessToken);
  };
  // The first reset proves the address, which takes away whatever was set before.
  const proved = await reset({ keepPasskeys: true });
  expect(await passkeyCount(proved)).toBe(0);
  await addPasskey(proved);
  const kept = await reset({ keepPasskeys: true });
  expect(await passkeyCount(kept)).toBe(1);
  expect(await passkeyCount(await reset({}))).toBe(0);
});

/** A user with a confirmed factor. */
async function withFactor(platform: TimedPlatform): Promise<Tokens & { factor: Enrolment }> {
  const tokens = await signUp(platform);
  const caller = platform.as(tokens.accessToken);
  const { body: factor } = await caller.post<Enrolment>("/api/auth/mfa/totp/enroll");
  const code = totpCode(factor.secret, 0, platform.clock.now());
  expect((await caller.post("/api/auth/mfa/totp/verify", { factorId: factor.factorId, code })).status).toBe(200);
  return { ...tokens, factor };
}

test("[AU102] after fifty wrong codes in a day an account accepts none until the day is over, also after a restart; recovery codes still work", async () => {
  let platform = await platformAt();
  const { user, factor } = await withFactor(platform);
  const ticket = async () => (await signIn(platform, user.email)).body.mfaTicket;
  let wrongCount = 0;
  while (wrongCount < 50) {
    // Within the limits of minutes, as a patient guesser keeps.
    platform.clock.advance(16 * MINUTE_MS);
    for (let batch = 0; batch < 2; batch++) {
      const mfaTicket = await ticket();
      for (let count = 0; count < 5; count++, wrongCount++) {
        expect((await platform.post("/api/auth/mfa/verify", { mfaTicket, code: "000000" })).status).toBe(400);
      }
    }
  }
  const { dataDirectory, clock } = platform;
  const right = async () => {
    const code = totpCode(factor.secret, 0, clock.now());
    return platform.post<ErrorAnswer>("/api/auth/mfa/verify", { mfaTicket: await ticket(), code });
  };
  clock.advance(16 * MINUTE_MS);
  const refused = await right();
  expect([refused.status, refused.body.message]).toEqual([
    429,
    "Too many wrong codes: codes are taken again in 23 h, other ways to sign in are open",
  ]);
  const waitSeconds = Number(refused.headers.get("retry-after"));
  expect(waitSeconds * SECOND_MS).toBeGreaterThan(22 * HOUR_MS);
  await platform.stop();
  platform = await platformAt({ dataDirectory, clock });
  expect((await right()).status).toBe(429);
  const [recoveryCode = ""] = factor.recoveryCodes;
  const recovered = await platform.post("/api/auth/mfa/recovery", { mfaTicket: await ticket(), recoveryCode });
  expect(recovered.status).toBe(200);
  clock.advance(waitSeconds * SECOND_MS);
  expect((await right()).status).toBe(200);
});

test("[AU102] mailed codes have fifty guesses a day; links, passwords and other addresses are not affected", async () => {
  const platform = await platformAt();
  const { user } = await signUp(platform);
  const email = String(user.email);
  const verify = (code: string, to = email) =>
    platform.post<ErrorAnswer>("/api/auth/verify-email-otp", { email: to, code });
  expect((await verify("000000")).status).toBe(400);
  for (let mail = 0; mail < 10; mail++) {
    platform.clock.advance(11 * MINUTE_MS);
    await mailAnswer(platform, email, () => platform.post("/api/auth/signin/email-otp", { email }));
    for (let count = 0; count < 5; count++) {
      const mailed = lastMail(platform, email).code ?? "";
      expect((await verify(mailed === "000000" ? "000001" : "000000")).status).toBe(400);
    }
  }
  platform.clock.advance(11 * MINUTE_MS);
  await mailAnswer(platform, email, () => platform.post("/api/auth/signin/email-otp", { email }));
  expect((await verify(lastMail(platform, email).code ?? "")).status).toBe(429);
  expect((await signIn(platform, email)).status).toBe(200);
  await mailAnswer(platform, email, () => platform.post("/api/auth/signin/magic-link", { email }));
  expect((await platform.post("/api/auth/verify-magic-link", { token: mailedToken(platform, email) })).status).toBe(
    200,
  );
  const other = nextEmail();
  await mailAnswer(platform, other, () => platform.post("/api/auth/signin/email-otp", { email: other }));
  expect((await verify(lastMail(platform, other).code ?? "", other)).status).toBe(200);
  platform.clock.advance(DAY_MS);
  await mailAnswer(platform, email, () => platform.post("/api/auth/signin/email-otp", { email }));
  expect((await verify(lastMail(platform, email).code ?? "")).status).toBe(200);
});

test("[AU102] guessing codes with a stolen token to remove the factor does not lock the owner's sign-in", async () => {
  const platform = await platformAt();
  const { user, factor } = await withFactor(platform);
  let stolen = "";
  for (let count = 0; count < 50; count++) {
    if (count % 15 === 0) {
      platform.clock.advance(16 * MINUTE_MS);
      stolen = await freshToken(platform, user, factor, count);
    }
    const answer = await platform.as(stolen).delete("/api/auth/mfa/totp", { code: "000000" });
    expect(answer.status).toBe(400);
  }
  platform.clock.advance(16 * MINUTE_MS);
  const owner = await freshToken(platform, user, factor, 50);
  const code = totpCode(factor.secret, 1, platform.clock.now());
  expect((await platform.as(owner).delete("/api/auth/mfa/totp", { code })).status).toBe(429);
  expect((await platform.as(owner).delete("/api/auth/mfa/totp", { password: PASSWORD })).status).toBe(200);
});

/** Signs in with a code of the next step: each is good once. */
async function freshToken(platform: TimedPlatform, user: JsonObject, factor: Enrolment, turn: number): Promise<string> {
  platform.clock.advance(61 * SECOND_MS);
  const { mfaTicket } = (await signIn(platform, user["email"])).body;
  const code = totpCode(factor.secret, 0, platform.clock.now());
  const answer = await platform.post<Tokens>("/api/auth/mfa/verify", { mfaTicket, code });
  expect([turn, answer.status]).toEqual([turn, 200]);
  return answer.body.accessToken;
}

test("[AU103] after change-password the older access tokens of the session are refused, and its sockets closed", async () => {
  const platform = await platformAt();
  const { accessToken, refreshToken } = await signUp(platform);
  const refreshed = await platform.post<Tokens>("/api/auth/refresh", { refreshToken });
  const tokens = [accessToken, refreshed.body.accessToken];
  const socket = await openSocket(`${platform.url.replace("http", "ws")}/api/realtime`);
  socket.send({ type: "auth", token: accessToken });
  await socket.expect({ type: "auth_success" });
  const changed = await platform
    .as(accessToken)
    .post<Tokens>("/api/auth/change-password", { currentPassword: PASSWORD, newPassword: "another password" });
  expect(changed.status).toBe(200);
  for (const token of tokens) {
    const answer = await platform.as(token).get<ErrorAnswer>("/api/auth/me");
    expect([answer.status, answer.body.message]).toEqual([401, "Invalid token"]);
  }
  await socket.expect({ type: "error", code: "SESSION_REVOKED" });
  const { body } = await platform.post<Tokens>("/api/auth/refresh", { refreshToken: changed.body.refreshToken });
  expect((await platform.as(body.accessToken).get("/api/auth/me")).status).toBe(200);
  expect((await platform.as(changed.body.accessToken).get("/api/auth/me")).status).toBe(200);
});

test("[AU104] the last passkey of an account without an address stays", async () => {
  const platform = await platformAt();
  const guest = await platform.post<Tokens>("/api/auth/signin/anonymous");
  const caller = platform.as(guest.body.accessToken);
  const first = await addPasskey(caller);
  const remove = (id: string) => caller.delete<ErrorAnswer>(`/api/auth/passkeys/${id}`);
  const refused = await remove(first.credentialId);
  expect([refused.status, refused.body.message]).toEqual([409, "This is the only way to sign in to this account"]);
  const second = await addPasskey(caller);
  expect((await remove(first.credentialId)).status).toBe(200);
  expect((await remove(second.credentialId)).status).toBe(409);
  const { accessToken } = await signUp(platform);
  const { credentialId } = await addPasskey(platform.as(accessToken));
  expect((await platform.as(accessToken).delete(`/api/auth/passkeys/${credentialId}`)).status).toBe(200);
});

test("[AU12] a user has at most 1,000 sessions: one more ends the one used longest ago", async () => {
  const first = await platformAt();
  const { user, accessToken } = await signUp(first);
  const { dataDirectory, clock } = first;
  await first.stop();
  const file = new Database(join(dataDirectory, "system.db"));
  const insert = file.prepare(
    "INSERT INTO sessions (id, userId, createdAt, lastUsedAt, expiresAt) VALUES (?, ?, ?, ?, ?)",
  );
  const now = clock.now();
  file.transaction(() => {
    // The first of them began first, and was used last.
    for (let index = 0; index < 999; index++) {
      insert.run(`session-${index}`, user.id, now - DAY_MS + index, now - HOUR_MS - index, now + DAY_MS);
    }
  })();
  file.close();
  const platform = await platformAt({ dataDirectory, clock });
  const idsOf = async (token: string) => {
    const { body } = await platform.as(token).get<{ sessions: { id: string }[] }>("/api/auth/sessions");
    return body.sessions.map(({ id }) => id);
  };
  expect(await idsOf(accessToken)).toHaveLength(1_000);
  const { body } = await signIn(platform, user.email);
  const ids = await idsOf(body.accessToken);
  expect(ids).toHaveLength(1_000);
  expect([ids.includes("session-0"), ids.includes("session-998")]).toEqual([true, false]);
  expect((await platform.as(accessToken).get("/api/auth/me")).status).toBe(200);
});
