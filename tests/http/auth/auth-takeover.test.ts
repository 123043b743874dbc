import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import type { JsonObject } from "../../../src/kernel/json/json.ts";
import { createAuthenticator } from "../../support/authenticator.ts";
import { type TestPlatform, testPlatform } from "../../support/index.ts";
import { type OidcProvider, type OidcUser, startOidcProvider } from "../../support/oidc-provider.ts";
import {
  type Enrolment,
  enrol,
  lastMail,
  mailedToken,
  nextEmail,
  PASSWORD,
  signUp,
  type Ticket,
  type Tokens,
  totpCode,
} from "./auth-support.ts";

// Who has set something on an account before its owner came, or changed something before they were thrown out.

const ORIGIN = "https://app.example.com";
const NEW_PASSWORD = "the owner's own words";

// Codes of one step are wanted, and its end may have to be waited for.
setDefaultTimeout(20_000);

let platform: TestPlatform;
let provider: OidcProvider;

beforeAll(async () => {
  provider = await startOidcProvider();
  const { issuer, clientId, clientSecret } = provider;
  platform = await testPlatform({
    config: {
      auth: {
        ...{ magicLink: true, emailOtp: true, anonymous: true, mfa: { totp: true } },
        passkeys: { rpName: "Film Club", rpId: "app.example.com", origin: ORIGIN },
        oauth: { club: { clientId, clientSecret, issuer } },
      },
      rateLimits: { auth: { requests: 100_000, window: 60 }, signup: { requests: 100_000, window: 60 } },
    },
  });
});
afterAll(async () => {
  provider.stop();
  await platform.stop();
});

const post = <T = Tokens & Ticket>(path: string, body: { [field: string]: string } = {}) =>
  platform.post<T>(`/api/auth/${path}`, body);

/** Ways in which the owner of an address comes: each proves that they read its mail. */
const OWNERS: [name: string, come: (email: string) => Promise<void>][] = [
  [
    "password reset",
    async (email) => {
      await post("request-password-reset", { email });
      const token = mailedToken(platform, email);
      expect((await post("reset-password", { token, newPassword: NEW_PASSWORD })).status).toBe(200);
    },
  ],
  [
    "magic link",
    async (email) => {
      await post("signin/magic-link", { email });
      expect((await post("verify-magic-link", { token: mailedToken(platform, email) })).status).toBe(200);
    },
  ],
  [
    "mailed code",
    async (email) => {
      await post("signin/email-otp", { email });
      const code = lastMail(platform, email).code ?? "";
      expect((await post("verify-email-otp", { email, code })).status).toBe(200);
    },
  ],
];

/** Returns the answer that a user's browser gets at the end of a sign-in at the provider. */
async function signInAtProvider(user: OidcUser): Promise<{ status: number; accessToken: string | null; id?: string }> {
  const begun = await platform.fetch("/api/auth/oauth/club");
  const { pathname, search } = new URL(provider.approve(begun.headers.get("location") ?? "", user));
  const back = await platform.fetch(pathname + search);
  const location = back.headers.get("location");
  const accessToken =
    location === null ? null : new URLSearchParams(new URL(location).hash.slice(1)).get("access_token");
  if (accessToken === null) return { status: back.status, accessToken };
  const me = await platform.as(accessToken).get<{ user: Tokens["user"] }>("/api/auth/me");
  return { status: back.status, accessToken, id: me.body.user.id };
}

describe("somebody else's address", () => {
  test.each([...OWNERS])(
    "[AU24] loses passkey, password, sessions and factor in the making to a %s",
    async (_, come) => {
      const email = nextEmail();
      const squatter = await signUp(platform, email);
      const caller = platform.as(squatter.accessToken);
      const authenticator = createAuthenticator({ rpId: "app.example.com", origin: ORIGIN });
      const options = await caller.post<{ challenge: string }>("/api/auth/passkeys/register-options");
      const registered = await caller.post("/api/auth/passkeys/register", authenticator.register(options.body));
      expect(registered.status).toBe(200);
      expect((await caller.post("/api/auth/mfa/totp/enroll")).status).toBe(200);
      await come(email);
      const signInOptions = await post<{ challenge: string }>("passkeys/auth-options");
      const byPasskey = authenticator.authenticate(signInOptions.body);
      expect((await platform.post("/api/auth/passkeys/authenticate", byPasskey)).status).toBe(400);
      expect((await caller.get("/api/auth/me")).status).toBe(401);
      expect((await post("refresh", { refreshToken: squatter.refreshToken })).status).toBe(401);
      expect((await post("signin", { email, password: PASSWORD })).status).toBe(401);
      await post("signin/magic-link", { email });
      const owner = await post("verify-magic-link", { token: mailedToken(platform, email) });
      expect(owner.body.user).toMatchObject({ id: squatter.user.id, emailVerified: true });
      const own = platform.as(owner.body.accessToken);
      expect((await own.get("/api/auth/passkeys")).body).toEqual({ passkeys: [] });
      expect((await own.get("/api/auth/mfa/factors")).body).toEqual({ factors: [] });
    },
  );

  test.each([...OWNERS])("[AU24] a %s removes an identity whose email was never verified", async (_, come) => {
    const email = nextEmail();
    const user = { sub: `squatter of ${email}`, email, email_verified: false };
    const squatter = await signInAtProvider(user);
    expect(squatter.accessToken).toBeString();
    await come(email);
    const again = await signInAtProvider(user);
    expect([again.status, again.accessToken]).toEqual([409, null]);
    expect((await platform.as(squatter.accessToken ?? "").get("/api/auth/me")).status).toBe(401);
  });

  test.each([...OWNERS])("[AU24] keeps a verified factor, which is required after a %s", async (_, come) => {
    const email = nextEmail();
    const { accessToken, user } = await signUp(platform, email);
    const { secret }: Enrolment = await enrol(platform.as(accessToken));
    await come(email);
    await post("signin/magic-link", { email });
    const half = await post("verify-magic-link", { token: mailedToken(platform, email) });
    expect(half.body.mfaRequired).toBe(true);
    expect(Object.keys(half.body)).not.toContain("accessToken");
    const { mfaTicket } = half.body;
    expect((await post("mfa/verify", { mfaTicket, code: totpCode(secret) })).status).toBe(200);
    // Where the factor is not the owner's, an administrator takes it away.
    expect((await platform.service.delete(`/api/auth/admin/users/${user.id}/mfa`)).status).toBe(200);
    await post("signin/magic-link", { email });
    const whole = await post("verify-magic-link", { token: mailedToken(platform, email) });
    expect(whole.body.accessToken).toBeString();
  });
});

describe("an identity at a provider", () => {
  const totp = async (ticket: string, secret: string, steps = 0) =>
    post("mfa/verify", { mfaTicket: ticket, code: totpCode(secret, steps) });

  test("[AU101] that belongs to a former address loses the account when the new owner of the address resets the password", async () => {
    const [former, victim] = [nextEmail(), nextEmail()];
    const user = { sub: `owner of ${former}`, email: former, email_verified: true };
    const { accessToken, id } = await signInAtProvider(user);
    await post("request-password-reset", { email: former });
    expect((await post("reset-password", { token: mailedToken(platform, former), newPassword: PASSWORD })).status).toBe(
      200,
    );
    // Of the present address it stays.
    expect(accessToken).toBeString();
    const again = await signInAtProvider(user);
    expect(again.id).toBe(id);
    const attacker = platform.as(again.accessToken ?? "");
    expect((await attacker.post("/api/auth/change-email", { newEmail: victim, password: PASSWORD })).status).toBe(200);
    expect((await post("verify-email-change", { token: mailedToken(platform, victim) })).status).toBe(200);
    // Saying at the provider that the new address is theirs, unverified, helps as little.
    expect((await signInAtProvider({ ...user, email: victim, email_verified: false })).id).toBe(id);
    await post("request-password-reset", { email: victim });
    const reset = { token: mailedToken(platform, victim), newPassword: NEW_PASSWORD };
    expect((await post("reset-password", reset)).status).toBe(200);
    expect((await signInAtProvider(user)).id).not.toBe(id);
    expect((await signInAtProvider({ ...user, email: victim, email_verified: false })).id).not.toBe(id);
    expect((await post("signin", { email: victim, password: NEW_PASSWORD })).status).toBe(200);
  });

  test("[AU280] is linked when the second factor is given, and not before; the audit log has that, and its removal", async () => {
    const email = nextEmail();
    const tokens = await signUp(platform, email);
    const owner = platform.as(tokens.accessToken);
    await owner.post("/api/auth/request-email-verification");
    await post("verify-email", { token: mailedToken(platform, email) });
    const { secret } = await enrol(owner);
    const identities = async () =>
      (await owner.get<{ identities: { id: string; provider: string }[] }>("/api/auth/identities")).body.identities;
    const user = { sub: `mailbox of ${email}`, email, email_verified: true };
    const begun = await platform.fetch("/api/auth/oauth/club");
    const { pathname, search } = new URL(provider.approve(begun.headers.get("location") ?? "", user));
    const back = await platform.fetch(pathname + search);
    const fragment = new URLSearchParams(new URL(back.headers.get("location") ?? "").hash.slice(1));
    expect(fragment.get("mfa_required")).toBe("true");
    const ticket = fragment.get("mfa_ticket") ?? "";
    expect((await totp(ticket, secret, -100)).status).toBe(400);
    expect(await identities()).toEqual([]);
    expect((await totp(ticket, secret)).status).toBe(200);
    expect(await identities()).toMatchObject([{ provider: "club", email }]);
    const log = async (action: string) => {
      const path = `/api/admin/audit?target=users/${tokens.user.id}&action=${action}`;
      const { body } = await platform.service.get<{ entries: { after: JsonObject }[] }>(path);
      return body.entries.map(({ after }) => after);
    };
    expect(await log("factor.add")).toContainEqual({ type: "identity", provider: "club" });
    const [identity] = await identities();
    expect((await owner.delete(`/api/auth/identities/${identity?.id}`)).status).toBe(200);
    expect(await log("factor.delete")).toEqual([{ type: "identity" }]);
  });

  test("[AU281] without an id is refused: two people would be one account", async () => {
    for (const sub of ["", " ", "x".repeat(256)]) {
      const email = nextEmail();
      const answer = await signInAtProvider({ sub, email, email_verified: true });
      expect([sub, answer.status, answer.accessToken]).toEqual([sub, 400, null]);
    }
    const longest = { sub: "x".repeat(255), email: nextEmail(), email_verified: true };
    expect((await signInAtProvider(longest)).accessToken).toBeString();
  });
});

describe("guesses with a stolen access token", () => {
  test.each(["DELETE mfa/totp", "POST mfa/totp/verify"])(
    "[AU282] at %s block no sign-in with a code",
    async (operation) => {
      const email = nextEmail();
      const tokens = await signUp(platform, email);
      const owner = platform.as(tokens.accessToken);
      const { secret, factorId } = await enrol(owner);
      const wrong = { code: "000000" };
      const guess = () =>
        operation.startsWith("DELETE")
          ? owner.fetch("/api/auth/mfa/totp", {
              method: "DELETE",
              headers: { "content-type": "application/json" },
              body: JSON.stringify(wrong),
            })
          : owner.post("/api/auth/mfa/totp/verify", { ...wrong, factorId });
      const statuses: number[] = [];
      for (let count = 0; count < 21; count++) statuses.push((await guess()).status);
      expect(statuses.slice(-1)).toEqual([429]);
      const { body } = await post("signin", { email, password: PASSWORD });
      expect((await post("mfa/verify", { mfaTicket: body.mfaTicket, code: totpCode(secret) })).status).toBe(200);
    },
  );

  test("[AU282] and mailed codes block no sign-in with the password", async () => {
    const email = nextEmail();
    const { accessToken } = await signUp(platform, email);
    const thief = platform.as(accessToken);
    const last = async (guess: () => Promise<{ status: number }>): Promise<number> => {
      let status = 0;
      for (let count = 0; count < 11; count++) ({ status } = await guess());
      return status;
    };
    const confirm = () =>
      thief.post("/api/auth/change-password", { currentPassword: "a wrong guess", newPassword: NEW_PASSWORD });
    expect(await last(confirm)).toBe(429);
    expect((await post("signin", { email, password: PASSWORD })).status).toBe(200);
    await post("signin/email-otp", { email });
    expect(await last(() => post("verify-email-otp", { email, code: "000000" }))).toBe(429);
    expect((await post("signin", { email, password: PASSWORD })).status).toBe(200);
  });
});

describe("a change of address that is under way", () => {
  async function begun() {
    const tokens = await signUp(platform);
    const newEmail = nextEmail();
    const caller = platform.as(tokens.accessToken);
    expect((await caller.post("/api/auth/change-email", { newEmail, password: PASSWORD })).status).toBe(200);
    return { ...tokens, id: tokens.user.id, email: String(tokens.user.email), caller, newEmail };
  }
  type Begun = Awaited<ReturnType<typeof begun>>;
  const admin = ({ id }: Begun) => `/api/auth/admin/users/${id}`;

  const ENDS: [name: string, end: (user: Begun) => Promise<{ status: number }>][] = [
    [
      "a changed password",
      ({ caller }) =>
        caller.post("/api/auth/change-password", { currentPassword: PASSWORD, newPassword: NEW_PASSWORD }),
    ],
    [
      "a password reset",
      async ({ email }) => {
        await post("request-password-reset", { email });
        return post("reset-password", { token: mailedToken(platform, email), newPassword: NEW_PASSWORD });
      },
    ],
    ["revocation", (user) => platform.service.post(`${admin(user)}/revoke`)],
    [
      "disabling",
      async (user) => {
        await platform.service.patch(admin(user), { disabled: true });
        return platform.service.patch(admin(user), { disabled: false });
      },
    ],
  ];

  test.each([...ENDS])("[AU20] ends with %s", async (_, end) => {
    const user = await begun();
    const token = mailedToken(platform, user.newEmail);
    expect((await end(user)).status).toBe(200);
    expect((await post("verify-email-change", { token })).status).toBe(400);
    expect((await platform.service.get(admin(user))).body["email"]).toBe(user.email);
  });

  test.each([...ENDS])("[AU20] does not begin with a password that was confirmed before %s", async (_, end) => {
    const tokens = await signUp(platform);
    const email = String(tokens.user.email);
    const other = await post("signin", { email, password: PASSWORD });
    const thief = platform.as(other.body.accessToken);
    // One after another is hashed: while the first ones are answered, others wait with the hash that was right.
    const requests = Array.from({ length: 8 }, async () => {
      const newEmail = nextEmail();
      const { status } = await thief.post("/api/auth/change-email", { newEmail, password: PASSWORD });
      return { newEmail, status };
    });
    await Promise.race(requests);
    const caller = platform.as(tokens.accessToken);
    expect((await end({ ...tokens, id: tokens.user.id, email, caller, newEmail: "" })).status).toBe(200);
    const begun = (await Promise.all(requests)).filter(({ status }) => status === 200);
    for (const { newEmail } of begun) {
      const answer = await post("verify-email-change", { token: mailedToken(platform, newEmail) });
      expect([newEmail, answer.status]).toEqual([newEmail, 400]);
    }
    const { body } = await platform.service.get(`/api/auth/admin/users/${tokens.user.id}`);
    expect(body["email"]).toBe(email);
  });
});

describe("a password that was set", () => {
  test("[AU7] ends the previous refresh token at once", async () => {
    const tokens = await signUp(platform);
    const body = { currentPassword: PASSWORD, newPassword: NEW_PASSWORD };
    const changed = await platform.as(tokens.accessToken).post<Tokens>("/api/auth/change-password", body);
    expect((await post("refresh", { refreshToken: changed.body.refreshToken })).status).toBe(200);
    expect((await post("refresh", { refreshToken: tokens.refreshToken })).status).toBe(401);
  });

  test("[AU7] by link neither", async () => {
    const { body } = await post("signin/anonymous");
    const link = { email: nextEmail(), password: PASSWORD };
    const linked = await platform.as(body.accessToken).post<Tokens>("/api/auth/link/email", link);
    expect(linked.status).toBe(200);
    expect((await post("refresh", { refreshToken: body.refreshToken })).status).toBe(401);
  });
});

test("[AL6] the passkeys that a password reset removes are in the audit log, and so are the changes of a second invitation", async () => {
  const log = async (id: string, action: string) => {
    const path = `/api/admin/audit?target=users/${id}&action=${action}`;
    const { body } = await platform.service.get<{ entries: { after: JsonObject }[] }>(path);
    return body.entries.map(({ after }) => after);
  };
  const email = nextEmail();
  const { accessToken, user } = await signUp(platform, email);
  const caller = platform.as(accessToken);
  const options = await caller.post<{ challenge: string }>("/api/auth/passkeys/register-options");
  const response = createAuthenticator({ rpId: "app.example.com", origin: ORIGIN }).register(options.body);
  expect((await caller.post("/api/auth/passkeys/register", response)).status).toBe(200);
  await post("request-password-reset", { email });
  expect(
    (await post("reset-password", { token: mailedToken(platform, email), newPassword: NEW_PASSWORD })).status,
  ).toBe(200);
  expect(await log(user.id, "factor.delete")).toEqual([{ type: "passkey" }]);
  await post("request-password-reset", { email });
  expect(
    (await post("reset-password", { token: mailedToken(platform, email), newPassword: NEW_PASSWORD })).status,
  ).toBe(200);
  expect(await log(user.id, "factor.delete")).toHaveLength(1);

  const invited = nextEmail();
  const invite = (role: string) =>
    platform.service.post<{ user: { id: string } }>("/api/auth/admin/users/invite", { email: invited, role });
  const { id } = (await invite("editor")).body.user;
  expect((await invite("admin")).status).toBe(201);
  expect(await log(id, "user.update")).toEqual([expect.objectContaining({ role: "admin" })]);
});

test("[AU37] at most 50 passkeys, however many registrations were begun before", async () => {
  const { accessToken } = await signUp(platform);
  const caller = platform.as(accessToken);
  const responses: JsonObject[] = [];
  for (let count = 0; count < 53; count++) {
    const options = await caller.post<{ challenge: string }>("/api/auth/passkeys/register-options");
    responses.push(createAuthenticator({ rpId: "app.example.com", origin: ORIGIN }).register(options.body));
  }
  const answers = await Promise.all(responses.map((response) => caller.post("/api/auth/passkeys/register", response)));
  expect(answers.map(({ status }) => status).sort()).toEqual([...Array(50).fill(200), 400, 400, 400]);
  const listed = await caller.get<{ passkeys: unknown[] }>("/api/auth/passkeys");
  expect(listed.body.passkeys).toHaveLength(50);
});
