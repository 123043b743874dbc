import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import { type ErrorAnswer, type HttpClient, type TestPlatform, testPlatform } from "../../support/index.ts";
import {
  type Enrolment,
  enrol,
  lastMail,
  mailedToken,
  PASSWORD,
  signUp,
  steadyStep,
  type Ticket,
  type Tokens,
  totpCode,
} from "./auth-support.ts";

// Codes of one step are wanted, and its end may have to be waited for.
setDefaultTimeout(20_000);

let platform: TestPlatform;

beforeAll(async () => {
  platform = await testPlatform({
    config: {
      auth: { mfa: { totp: true }, magicLink: true, emailOtp: true },
      rateLimits: { auth: { requests: 100_000, window: 60 }, signup: { requests: 100_000, window: 60 } },
    },
  });
});
afterAll(() => platform.stop());

interface Person {
  email: string;
  caller: HttpClient;
  factor: Enrolment;
}

async function enrolled(): Promise<Person> {
  const { user, accessToken } = await signUp(platform);
  const caller = platform.as(accessToken);
  return { email: String(user.email), caller, factor: await enrol(caller) };
}

const ticketFor = async (email: string): Promise<Ticket> => {
  const answer = await platform.post<Ticket>("/api/auth/signin", { email, password: PASSWORD });
  expect(answer.status).toBe(200);
  return answer.body;
};
const verify = (mfaTicket: string, code: string) =>
  platform.post<Tokens & ErrorAnswer>("/api/auth/mfa/verify", { mfaTicket, code });
const recover = (mfaTicket: string, recoveryCode: string) =>
  platform.post<Tokens & ErrorAnswer>("/api/auth/mfa/recovery", { mfaTicket, recoveryCode });
/** Six digits that are none of the present codes. */
const wrongCode = (secret: string): string => {
  const right = new Set([-1, 0, 1].map((step) => totpCode(secret, step)));
  return ["000000", "111111", "222222", "333333"].find((code) => !right.has(code)) ?? "";
};

test("[AU26] a factor is active once verified, and is listed", async () => {
  const { user, accessToken } = await signUp(platform);
  const caller = platform.as(accessToken);
  await steadyStep();
  const { body } = await caller.post<Enrolment>("/api/auth/mfa/totp/enroll");
  expect(body.uri).toStartWith("otpauth://totp/");
  expect(body.uri).toContain(`secret=${body.secret}`);
  expect(new Set(body.recoveryCodes).size).toBe(10);
  const signIn = { email: String(user.email), password: PASSWORD };
  expect((await platform.post<Tokens>("/api/auth/signin", signIn)).body.accessToken).toBeString();
  const confirm = (code: string) => caller.post("/api/auth/mfa/totp/verify", { factorId: body.factorId, code });
  expect((await confirm(wrongCode(body.secret))).status).toBe(400);
  expect((await confirm(totpCode(body.secret))).body).toEqual({ ok: true });
  const ticket = await ticketFor(signIn.email);
  expect(ticket).toMatchObject({ mfaRequired: true, factors: [{ id: body.factorId, type: "totp" }] });
  expect(Object.keys(ticket).sort()).toEqual(["factors", "mfaRequired", "mfaTicket"]);
  const { factors } = (await caller.get<{ factors: object[] }>("/api/auth/mfa/factors")).body;
  expect(factors).toMatchObject([{ id: body.factorId, type: "totp", verified: true }]);
  expect((await caller.post("/api/auth/mfa/totp/enroll")).status).toBe(409);
  const stranger = platform.as((await signUp(platform)).accessToken);
  const foreign = await stranger.post("/api/auth/mfa/totp/verify", {
    factorId: body.factorId,
    code: totpCode(body.secret),
  });
  expect(foreign.status).toBe(404);
});

test("[AU26] a new enrolment replaces one that was never verified, recovery codes included", async () => {
  const { user, accessToken } = await signUp(platform);
  const caller = platform.as(accessToken);
  const first = (await caller.post<Enrolment>("/api/auth/mfa/totp/enroll")).body;
  const second = await enrol(caller);
  const code = totpCode(first.secret);
  expect((await caller.post("/api/auth/mfa/totp/verify", { factorId: first.factorId, code })).status).toBe(404);
  const { mfaTicket } = await ticketFor(String(user.email));
  expect((await recover(mfaTicket, first.recoveryCodes[0] ?? "")).status).toBe(400);
  expect((await recover(mfaTicket, second.recoveryCodes[0] ?? "")).status).toBe(200);
});

test("[AU27] a ticket and a code open one session", async () => {
  const { email, factor } = await enrolled();
  const { mfaTicket } = await ticketFor(email);
  const signedIn = await verify(mfaTicket, totpCode(factor.secret));
  expect(signedIn.status).toBe(200);
  expect((await platform.as(signedIn.body.accessToken).get("/api/auth/me")).status).toBe(200);
  expect((await verify(mfaTicket, totpCode(factor.secret, 1))).status).toBe(400);
  expect((await platform.as(mfaTicket).get("/api/auth/me")).status).toBe(401);
});

test("[AU27] five wrong attempts invalidate the ticket, also when sent at once", async () => {
  const { email, factor } = await enrolled();
  const { mfaTicket } = await ticketFor(email);
  const attempts = Array.from({ length: 5 }, (_, n) =>
    n % 2 === 0 ? verify(mfaTicket, wrongCode(factor.secret)) : recover(mfaTicket, "aaaa-bbbb-cccc"),
  );
  for (const answer of await Promise.all(attempts)) expect(answer.status).toBe(400);
  expect((await verify(mfaTicket, totpCode(factor.secret))).status).toBe(400);
  expect((await recover(mfaTicket, factor.recoveryCodes[0] ?? "")).status).toBe(400);
  const fresh = await ticketFor(email);
  expect((await verify(fresh.mfaTicket, totpCode(factor.secret))).status).toBe(200);
});

test("[AU27] new tickets give no further guesses: after 20 wrong codes of a user, 429", async () => {
  const { email, factor } = await enrolled();
  for (let round = 0; round < 4; round++) {
    const { mfaTicket } = await ticketFor(email);
    for (let n = 0; n < 5; n++) expect((await verify(mfaTicket, wrongCode(factor.secret))).status).toBe(400);
  }
  const { mfaTicket } = await ticketFor(email);
  expect((await verify(mfaTicket, totpCode(factor.secret))).status).toBe(429);
});

test("[AU28] a code is valid once: not for a second ticket, nor after enrolling with it", async () => {
  const { email, factor } = await enrolled();
  const [one, two] = [await ticketFor(email), await ticketFor(email)];
  expect((await verify(one.mfaTicket, totpCode(factor.secret, -1))).status).toBe(400);
  const code = totpCode(factor.secret);
  expect((await verify(one.mfaTicket, code)).status).toBe(200);
  expect((await verify(two.mfaTicket, code)).status).toBe(400);
  expect((await verify(two.mfaTicket, totpCode(factor.secret, 1))).status).toBe(200);
});

test("[AU28] a code sent many times concurrently, for one ticket or several, opens one session", async () => {
  const { email, factor } = await enrolled();
  const tickets = [await ticketFor(email), await ticketFor(email), await ticketFor(email)];
  const code = totpCode(factor.secret);
  const attempts = tickets.flatMap(({ mfaTicket }) => [verify(mfaTicket, code), verify(mfaTicket, code)]);
  const statuses = (await Promise.all(attempts)).map((answer) => answer.status);
  expect(statuses.toSorted()).toEqual([200, 400, 400, 400, 400, 400]);
});

test("[AU28] codes of the previous and the next step are accepted, and no others", async () => {
  const { email, factor } = await enrolled();
  const { mfaTicket } = await ticketFor(email);
  for (const step of [-2, 2]) expect((await verify(mfaTicket, totpCode(factor.secret, step))).status).toBe(400);
  expect((await verify(mfaTicket, totpCode(factor.secret, 1))).status).toBe(200);
});

test("[AU29] a recovery code opens one session, also when sent many times at once", async () => {
  const { email, factor } = await enrolled();
  const [code = "", another = ""] = factor.recoveryCodes;
  const tickets = [await ticketFor(email), await ticketFor(email), await ticketFor(email)];
  const answers = await Promise.all(tickets.map(({ mfaTicket }) => recover(mfaTicket, code)));
  expect(answers.map((answer) => answer.status).sort()).toEqual([200, 400, 400]);
  const { mfaTicket } = await ticketFor(email);
  expect((await recover(mfaTicket, code)).status).toBe(400);
  expect((await recover(mfaTicket, ` ${another.toUpperCase().replaceAll("-", " ")} `)).status).toBe(200);
});

test("[AU29] a recovery code works for its own user only", async () => {
  const [one, two] = [await enrolled(), await enrolled()];
  const { mfaTicket } = await ticketFor(one.email);
  expect((await recover(mfaTicket, two.factor.recoveryCodes[0] ?? "")).status).toBe(400);
  expect((await verify(mfaTicket, totpCode(two.factor.secret))).status).toBe(400);
});

test("[AU30] magic links and mailed codes require the factor too", async () => {
  const { email, factor, caller } = await enrolled();
  await caller.post("/api/auth/request-email-verification");
  await platform.post("/api/auth/verify-email", { token: mailedToken(platform, email) });
  await platform.post("/api/auth/signin/magic-link", { email });
  const token = mailedToken(platform, email);
  const byLink = await platform.post<Ticket>("/api/auth/verify-magic-link", { token });
  expect(byLink.body.mfaRequired).toBe(true);
  expect(Object.keys(byLink.body)).not.toContain("accessToken");
  await platform.post("/api/auth/signin/email-otp", { email });
  const code = lastMail(platform, email).code ?? "";
  const byCode = await platform.post<Ticket>("/api/auth/verify-email-otp", { email, code });
  expect(byCode.body.mfaRequired).toBe(true);
  expect((await verify(byCode.body.mfaTicket, totpCode(factor.secret))).status).toBe(200);
});

test("[AU30] a password reset does not remove the factor", async () => {
  const { email } = await enrolled();
  await platform.post("/api/auth/request-password-reset", { email });
  const reset = { token: mailedToken(platform, email), newPassword: "a new password" };
  expect((await platform.post("/api/auth/reset-password", reset)).body).toEqual({ ok: true });
  const signedIn = await platform.post<Ticket>("/api/auth/signin", { email, password: "a new password" });
  expect(signedIn.body.mfaRequired).toBe(true);
});

test("[AU30] a ticket ends when the user is disabled or every session is revoked", async () => {
  const { email, factor, caller } = await enrolled();
  const { body } = await caller.get<{ user: Tokens["user"] }>("/api/auth/me");
  const path = `/api/auth/admin/users/${body.user.id}`;
  const first = await ticketFor(email);
  await platform.service.post(`${path}/revoke`);
  expect((await verify(first.mfaTicket, totpCode(factor.secret))).status).toBe(400);
  const second = await ticketFor(email);
  await platform.service.patch(path, { disabled: true });
  expect((await verify(second.mfaTicket, totpCode(factor.secret))).status).toBe(400);
});

test("[AU31] removing the factor requires one of its codes, or the password", async () => {
  const { email, caller, factor } = await enrolled();
  const remove = (body?: { [field: string]: string }) => caller.delete<ErrorAnswer>("/api/auth/mfa/totp", body);
  expect((await remove({})).status).toBe(400);
  expect((await remove({ code: wrongCode(factor.secret) })).status).toBe(400);
  expect((await remove({ password: "not the password" })).status).toBe(401);
  const { mfaTicket } = await ticketFor(email);
  expect((await remove({ code: totpCode(factor.secret) })).status).toBe(200);
  const answer = await platform.post<Tokens>("/api/auth/signin", { email, password: PASSWORD });
  expect(answer.body.accessToken).toBeString();
  expect((await recover(mfaTicket, factor.recoveryCodes[0] ?? "")).status).toBe(400);
  expect((await remove({ password: PASSWORD })).status).toBe(404);
});

test("[AU26] enrolling requires a signed-in user", async () => {
  expect((await platform.post("/api/auth/mfa/totp/enroll")).status).toBe(401);
  expect((await platform.service.post("/api/auth/mfa/totp/enroll")).status).toBe(401);
  expect((await platform.get("/api/auth/mfa/factors")).status).toBe(401);
});
