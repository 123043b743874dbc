import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import { lastMail, mailedToken, nextEmail, PASSWORD, steadyStep, totpCode } from "../http/auth/auth-support.ts";
import type { TestPlatform } from "../support/platform.ts";
import { clubClient, clubPlatform, errorOf } from "./support.ts";

// Codes of one step are wanted, and its end may have to be waited for.
setDefaultTimeout(30_000);

let platform: TestPlatform;
let strict: TestPlatform;
beforeAll(async () => {
  platform = await clubPlatform();
  strict = await clubPlatform((text) => text.replace("anonymous: true", "anonymous: true, requireVerifiedEmail: true"));
});
afterAll(async () => {
  await platform.stop();
  await strict.stop();
});

async function member() {
  const client = clubClient(platform.url);
  const email = nextEmail();
  await client.auth.signUp({ email, password: PASSWORD, displayName: "Ada" });
  return { client, email };
}

test("[TC30] signing up and in gives the user, who is signed in from then on", async () => {
  const { client, email } = await member();
  expect(client.auth.user).toMatchObject({ email, displayName: "Ada", role: "user", isAnonymous: false });
  expect(await errorOf(client.auth.signUp({ email, password: PASSWORD }))).toMatchObject({ code: "conflict" });

  const other = clubClient(platform.url);
  expect(await errorOf(other.auth.signIn({ email, password: "wrong password" }))).toMatchObject({
    code: "unauthenticated",
  });
  expect(other.auth.user).toBeNull();
  const { user, mfa } = await other.auth.signIn({ email, password: PASSWORD });
  expect([user?.id, mfa]).toEqual([client.auth.user?.id, undefined]);
  expect(other.auth.user).toEqual(user ?? null);
});

test("[TC30] whoever is signed in signs in as another user", async () => {
  const [first, second] = [await member(), await member()];
  const heard: (string | undefined)[] = [];
  first.client.auth.subscribe((user) => heard.push(user?.id));
  await first.client.auth.signIn({ email: second.email, password: PASSWORD });
  expect(first.client.auth.user).toEqual(second.client.auth.user);
  expect(heard).toEqual([second.client.auth.user?.id]);
  expect(await first.client.auth.reload()).toMatchObject({ email: second.email });
});

test("[TC30] an anonymous user keeps the id when an address is linked", async () => {
  const client = clubClient(platform.url);
  const { user } = await client.auth.signInAnonymously();
  const film = await client.db("shared").table("films").insert({ title: "mine" });
  const email = nextEmail();
  const linked = await client.auth.link({ email, password: PASSWORD });
  expect(linked).toMatchObject({ user: { id: user.id, email, isAnonymous: false }, verificationRequired: false });
  expect(client.auth.user?.email).toBe(email);
  expect(await client.db("shared").table("films").get(film.id)).toEqual(film);
});

test("[TC30] a mailed link and a mailed code sign in", async () => {
  const client = clubClient(platform.url);
  const email = nextEmail();
  await client.auth.magicLink.request({ email });
  const { user } = await client.auth.magicLink.use(mailedToken(platform, email));
  expect(client.auth.user).toEqual(user ?? null);
  expect(await errorOf(client.auth.magicLink.use("none"))).toMatchObject({ code: "invalid" });

  const other = clubClient(platform.url);
  await other.auth.code.request({ email });
  await other.auth.code.use(email, lastMail(platform, email).code ?? "");
  expect(other.auth.user?.id).toBe(client.auth.user?.id);
});

test("[TC30] where the address has to be verified, nobody is signed in before", async () => {
  const client = clubClient(strict.url);
  const email = nextEmail();
  const result = await client.auth.signUp({ email, password: PASSWORD });
  expect(result).toMatchObject({ user: { email }, verificationRequired: true });
  expect(client.auth.user).toBeNull();
  await client.auth.emailVerification.use(mailedToken(strict, email));
  await client.auth.signIn({ email, password: PASSWORD });
  expect(client.auth.user).toMatchObject({ email, emailVerified: true });
});

test("[TC30] an invitation signs in", async () => {
  const email = nextEmail();
  expect((await platform.service.post("/api/auth/admin/users/invite", { email })).status).toBeLessThan(300);
  const client = clubClient(platform.url);
  await client.auth.acceptInvite({ token: mailedToken(platform, email), password: PASSWORD, displayName: "Bob" });
  expect(client.auth.user).toMatchObject({ email, displayName: "Bob", emailVerified: true });
});

test("[AU367] who has an account accepts an invitation with data signed in", async () => {
  const { client, email } = await member();
  const invitation = { email, data: { team: "Acme" } };
  expect((await platform.service.post("/api/auth/admin/users/invite", invitation)).status).toBe(201);
  const token = mailedToken(platform, email);
  expect(await errorOf(clubClient(platform.url).auth.acceptInvite({ token }))).toMatchObject({ status: 401 });
  const { user } = await client.auth.acceptInvite({ token });
  expect(user?.email).toBe(email);
  expect(client.auth.user?.email).toBe(email);
});

test("[TC30] [TC33] with a second factor a sign-in is completed by a code or a recovery code", async () => {
  const { client, email } = await member();
  await steadyStep();
  const { factorId, secret, uri, recoveryCodes } = await client.auth.mfa.enroll();
  expect(uri).toStartWith("otpauth://");
  await client.auth.mfa.verify(factorId, totpCode(secret, -1));
  expect(await client.auth.mfa.factors()).toMatchObject([{ id: factorId, type: "totp", verified: true }]);

  const other = clubClient(platform.url);
  const { mfa, user } = await other.auth.signIn({ email, password: PASSWORD });
  expect([user, mfa?.factors]).toEqual([undefined, [{ id: factorId, type: "totp" }]]);
  expect(other.auth.user).toBeNull();
  expect(await errorOf(mfa?.verify("000000") ?? Promise.resolve())).toMatchObject({ code: expect.any(String) });
  await mfa?.verify(totpCode(secret));
  expect(other.auth.user?.email).toBe(email);

  const third = clubClient(platform.url);
  const again = await third.auth.signIn({ email, password: PASSWORD });
  await again.mfa?.recover(recoveryCodes[0] ?? "");
  expect(third.auth.user?.email).toBe(email);

  await client.auth.mfa.remove({ password: PASSWORD });
  expect(await client.auth.mfa.factors()).toEqual([]);
});

test("[TC33] changing the password continues with the new tokens; other sessions end", async () => {
  const { client, email } = await member();
  const other = clubClient(platform.url);
  await other.auth.signIn({ email, password: PASSWORD });
  await client.auth.changePassword({ currentPassword: PASSWORD, newPassword: "correct horse battery 2" });
  expect(await client.auth.reload()).toMatchObject({ email });
  expect(await other.auth.reload().catch(() => null)).toBeNull();
  expect(other.auth.user).toBeNull();
});

test("[TC33] sessions are listed and ended; identities are listed", async () => {
  const { client, email } = await member();
  const other = clubClient(platform.url);
  await other.auth.signIn({ email, password: PASSWORD });
  const sessions = await client.auth.sessions.list();
  expect(sessions).toHaveLength(2);
  const foreign = sessions.find(({ current }) => !current);
  await client.auth.sessions.end(foreign?.id ?? "");
  expect(await client.auth.sessions.list()).toHaveLength(1);
  expect(await errorOf(other.auth.sessions.list())).toMatchObject({ code: "unauthenticated" });
  expect(await client.auth.identities.list()).toEqual([]);
  expect(await errorOf(client.auth.identities.remove("none"))).toMatchObject({ code: "not_found" });
});

test("[TC33] a profile is changed, and read again", async () => {
  const { client, email } = await member();
  const other = clubClient(platform.url);
  await other.auth.signIn({ email, password: PASSWORD });
  const user = await client.auth.updateMe({ displayName: "Lovelace", metadata: { theme: "dark" } });
  expect(client.auth.user).toEqual(user);
  expect(other.auth.user?.displayName).toBe("Ada");
  expect(await other.auth.reload()).toEqual(user);
  expect(other.auth.user).toEqual(user);
  expect(await clubClient(platform.url).auth.reload()).toBeNull();
});

test("[TC33] a password is reset, and an address verified and changed, by mail", async () => {
  const { client, email } = await member();
  await client.auth.emailVerification.request();
  await client.auth.emailVerification.use(mailedToken(platform, email));
  expect(await client.auth.reload()).toMatchObject({ emailVerified: true });

  const newEmail = nextEmail();
  expect(await errorOf(client.auth.emailChange.request({ newEmail, password: "wrong" }))).toMatchObject({
    code: "unauthenticated",
  });
  await client.auth.emailChange.request({ newEmail, password: PASSWORD });
  await client.auth.emailChange.use(mailedToken(platform, newEmail));
  expect(await client.auth.reload().catch(() => null)).toBeNull();

  await client.auth.passwordReset.request({ email: newEmail });
  await client.auth.passwordReset.use({
    token: mailedToken(platform, newEmail),
    newPassword: "correct horse battery 3",
  });
  await client.auth.signIn({ email: newEmail, password: "correct horse battery 3" });
  expect(client.auth.user?.email).toBe(newEmail);
});

test("[TC33] who deletes the account is signed out", async () => {
  const { client, email } = await member();
  await client.auth.deleteMe();
  expect(client.auth.user).toBeNull();
  expect(await errorOf(client.auth.signIn({ email, password: PASSWORD }))).toMatchObject({ code: "unauthenticated" });
});
