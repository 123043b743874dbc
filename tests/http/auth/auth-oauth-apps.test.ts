import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import { createHash, createHmac } from "node:crypto";
import type { JsonObject } from "../../../src/kernel/json/json.ts";
import { type TestPlatform, testPlatform } from "../../support/index.ts";
import { type OidcProvider, type OidcUser, startOidcProvider } from "../../support/oidc-provider.ts";
import { enrol, nextEmail, PASSWORD, signUp } from "./auth-support.ts";

// Codes of apps, linking, and ID tokens.

setDefaultTimeout(20_000);

let provider: OidcProvider;
let platform: TestPlatform;
beforeAll(async () => {
  provider = await startOidcProvider();
  const { issuer, clientId, clientSecret } = provider;
  platform = await testPlatform({
    config: {
      auth: {
        mfa: { totp: true },
        anonymous: true,
        redirectUrls: ["https://app.example.com/*", "myapp://signed-in", "http://127.0.0.1/back"],
        oauth: {
          club: { clientId, clientSecret, issuer, clientIds: ["the app on phones"] },
          other: { clientId, clientSecret, issuer },
          github: { clientId, clientSecret },
        },
      },
      rateLimits: { auth: { requests: 100_000, window: 60 }, signup: { requests: 100_000, window: 60 } },
    },
  });
});
afterAll(async () => {
  provider.stop();
  await platform.stop();
});

let subjects = 0;
const nextUser = (): OidcUser => ({
  sub: `app-${++subjects}`,
  email: nextEmail(),
  email_verified: true,
  name: "An App",
});

const pkce = () => {
  const verifier = Buffer.from(crypto.getRandomValues(new Uint8Array(32))).toString("base64url");
  return { verifier, challenge: createHash("sha256").update(verifier).digest("base64url") };
};

const start = (query: Record<string, string>) =>
  platform.fetch(`/api/auth/oauth/club?${new URLSearchParams(query)}`).then(async (answer) => ({
    status: answer.status,
    location: answer.headers.get("location") ?? "",
    body: await answer.text(),
  }));

/** The browser comes back from the provider. Returns where the server sends it. */
async function arrive(location: string, user: OidcUser): Promise<URL> {
  const { pathname, search } = new URL(provider.approve(location, user));
  const answer = await platform.fetch(pathname + search);
  expect(answer.status).toBe(302);
  return new URL(answer.headers.get("location") ?? "");
}

const asked = (challenge: string, redirect = "myapp://signed-in") => ({
  redirect_url: redirect,
  code_challenge: challenge,
  code_challenge_method: "S256",
});

test("[AU304] a code comes back in the query, to a scheme of the app's own too, and never tokens", async () => {
  const { verifier, challenge } = pkce();
  const user = nextUser();
  const back = await arrive((await start(asked(challenge))).location, user);
  expect(back.href).toStartWith("myapp://signed-in?code=");
  expect(back.hash).toBe("");
  const code = back.searchParams.get("code") ?? "";
  const answer = await platform.post<{ user: object }>("/api/auth/oauth/redeem", { code, codeVerifier: verifier });
  expect(answer.status).toBe(200);
  expect(answer.body.user).toMatchObject({ email: user.email, displayName: "An App" });
});

test("[AU304] nobody is made, and no session begins, before the code is redeemed", async () => {
  const { challenge } = pkce();
  const user = nextUser();
  await arrive((await start(asked(challenge))).location, user);
  const found = await platform.service.get<{ users: object[] }>("/api/auth/admin/users", {
    query: { email: user.email ?? "" },
  });
  expect(found.body.users).toEqual([]);
});

test("[AU304] codes redeemed at the same moment open one session", async () => {
  const { verifier, challenge } = pkce();
  const back = await arrive((await start(asked(challenge))).location, nextUser());
  const body = { code: back.searchParams.get("code"), codeVerifier: verifier };
  const answers = await Promise.all([1, 2, 3].map(() => platform.post("/api/auth/oauth/redeem", body)));
  expect(answers.map(({ status }) => status).sort()).toEqual([200, 400, 400]);
});

test("[AU304] a loopback address without a port fits any port, with a challenge only", async () => {
  const { challenge } = pkce();
  expect((await start(asked(challenge, "http://127.0.0.1:49152/back"))).status).toBe(302);
  expect((await start(asked(challenge, "http://127.0.0.1:49152/other"))).status).toBe(400);
  expect((await start(asked(challenge, "http://127.0.0.1.evil.example/back"))).status).toBe(400);
  expect((await start({ redirect_url: "http://127.0.0.1:49152/back" })).status).toBe(400);
});

test.each([
  [{ redirect_url: "myapp://signed-in" }, "code_challenge"],
  [{ code_challenge: "A".repeat(43) }, "code_challenge_method"],
  [{ code_challenge: "A".repeat(43), code_challenge_method: "plain" }, "code_challenge_method"],
  [{ code_challenge: "short", code_challenge_method: "S256" }, "code_challenge"],
])("[AU304] %p is 400, and names %s", async (query, field) => {
  const { status, body } = await start(query);
  expect(status).toBe(400);
  expect(Object.keys(JSON.parse(body).data)).toContain(field);
});

const link = (accessToken: string, redirectUrl = "https://app.example.com/account") =>
  platform.as(accessToken).post<{ url: string }>("/api/auth/oauth/club/link", { redirectUrl });

const redeemLink = (accessToken: string, code: string | null, name = "club") =>
  platform.as(accessToken).post(`/api/auth/oauth/${name}/link/redeem`, { code });

const identitiesOf = async (accessToken: string) =>
  (await platform.as(accessToken).get<{ identities: object[] }>("/api/auth/identities")).body.identities;

test("[AU305] the callback links nothing: the session that began redeems the code", async () => {
  const { accessToken, user } = await signUp(platform);
  const begun = await link(accessToken);
  expect(begun.status).toBe(200);
  const identity = nextUser();
  const back = await arrive(begun.body.url, identity);
  expect(back.origin + back.pathname).toBe("https://app.example.com/account");
  expect(await identitiesOf(accessToken)).toEqual([]);
  const code = back.searchParams.get("code");
  expect((await redeemLink(accessToken, code)).status).toBe(200);
  expect(await identitiesOf(accessToken)).toMatchObject([{ provider: "club", email: identity.email }]);
  expect((await redeemLink(accessToken, code)).status).toBe(400);
  // It signs in to this account from now on.
  const again = await arrive((await start({ redirect_url: "https://app.example.com/" })).location, identity);
  const token = new URLSearchParams(again.hash.slice(1)).get("access_token") ?? "";
  const me = await platform.as(token).get<{ user: { id: string } }>("/api/auth/me");
  expect(me.body.user.id).toBe(user.id);
});

test("[AU305] another session, of the same user too, and another provider cannot redeem it", async () => {
  const email = nextEmail();
  const { accessToken } = await signUp(platform, email);
  const victim = await signUp(platform);
  for (const thief of [victim.accessToken, "a second session", "another provider"]) {
    const back = await arrive((await link(accessToken)).body.url, nextUser());
    const code = back.searchParams.get("code");
    if (thief === "another provider") expect((await redeemLink(accessToken, code, "other")).status).toBe(400);
    else if (thief === "a second session") {
      const second = await platform.post<{ accessToken: string }>("/api/auth/signin", {
        email,
        password: PASSWORD,
      });
      expect((await redeemLink(second.body.accessToken, code)).status).toBe(400);
    } else expect((await redeemLink(thief, code)).status).toBe(400);
    // The wrong try has used it up.
    expect((await redeemLink(accessToken, code)).status).toBe(400);
  }
  expect(await identitiesOf(accessToken)).toEqual([]);
  expect(await identitiesOf(victim.accessToken)).toEqual([]);
});

test("[AU305] a code to link opens no session, and a code to sign in links nothing", async () => {
  const { accessToken } = await signUp(platform);
  const linked = await arrive((await link(accessToken)).body.url, nextUser());
  const { verifier, challenge } = pkce();
  const redeemed = { code: linked.searchParams.get("code"), codeVerifier: verifier };
  expect((await platform.post("/api/auth/oauth/redeem", redeemed)).status).toBe(400);
  const signedIn = await arrive((await start(asked(challenge))).location, nextUser());
  expect((await redeemLink(accessToken, signedIn.searchParams.get("code"))).status).toBe(400);
});

test("[AU305] an identity of another account is 409; a link needs a signed-in user and an allowed address", async () => {
  const identity = nextUser();
  const owner = await signUp(platform);
  await redeemLink(
    owner.accessToken,
    (await arrive((await link(owner.accessToken)).body.url, identity)).searchParams.get("code"),
  );
  const { accessToken } = await signUp(platform);
  const back = await arrive((await link(accessToken)).body.url, identity);
  expect((await redeemLink(accessToken, back.searchParams.get("code"))).status).toBe(409);
  expect((await platform.post("/api/auth/oauth/club/link", { redirectUrl: "https://app.example.com/" })).status).toBe(
    401,
  );
  expect((await link(accessToken, "https://evil.example/")).status).toBe(400);
  const unknown = platform
    .as(accessToken)
    .post("/api/auth/oauth/nobody/link", { redirectUrl: "https://app.example.com/" });
  expect((await unknown).status).toBe(404);
});

const present = (body: JsonObject, name = "club") =>
  platform.post<{ user: { id: string; displayName: string }; mfaRequired?: boolean; accessToken: string }>(
    `/api/auth/oauth/${name}/token`,
    body,
  );

test("[AU306] an ID token signs in once; the given name and metadata count for a new account", async () => {
  const user = nextUser();
  const idToken = await provider.idToken(user);
  const body = { idToken, displayName: "As The Phone Says", metadata: { from: "phone" } };
  const first = await present(body);
  expect(first.status).toBe(200);
  expect(first.body.user).toMatchObject({
    email: user.email,
    emailVerified: true,
    displayName: "As The Phone Says",
    metadata: { from: "phone" },
  });
  expect((await present(body)).status).toBe(401);
  const second = await present({ idToken: await provider.idToken(user, { jti: "2" }), displayName: "Another" });
  expect(second.body.user).toMatchObject({ id: first.body.user.id, displayName: "As The Phone Says" });
});

test("[AU306] one that arrives several times at once signs in once", async () => {
  const idToken = await provider.idToken(nextUser());
  const answers = await Promise.all([1, 2, 3].map(() => present({ idToken })));
  expect(answers.map(({ status }) => status).sort()).toEqual([200, 401, 401]);
});

test("[AU306] the nonce is that of the token, or its SHA-256 in hex; on one side only it is 401", async () => {
  const hashed = createHash("sha256").update("raw").digest("hex");
  const ask = async (claimed: string | null, nonce?: string) => {
    const idToken = await provider.idToken(nextUser(), claimed === null ? {} : { nonce: claimed });
    return (await present({ idToken, ...(nonce === undefined ? {} : { nonce }) })).status;
  };
  expect(await ask("raw", "raw")).toBe(200);
  expect(await ask(hashed, "raw")).toBe(200);
  expect(await ask("raw", hashed)).toBe(401);
  expect(await ask("raw")).toBe(401);
  expect(await ask(null, "raw")).toBe(401);
});

test("[AU306] further client ids are taken, and no others", async () => {
  expect((await present({ idToken: await provider.idToken(nextUser(), { aud: "the app on phones" }) })).status).toBe(
    200,
  );
  expect((await present({ idToken: await provider.idToken(nextUser(), { aud: "another app" }) })).status).toBe(401);
  const ofOther = { idToken: await provider.idToken(nextUser(), { aud: "the app on phones" }) };
  expect((await present(ofOther, "other")).status).toBe(401);
});

test("[AU306] a token that is expired, of another issuer, unsigned or signed by a secret is 401", async () => {
  const user = nextUser();
  const now = Math.floor(Date.now() / 1000);
  expect((await present({ idToken: await provider.idToken(user, { iat: now - 900, exp: now - 600 }) })).status).toBe(
    401,
  );
  expect((await present({ idToken: await provider.idToken(user, { iss: "https://evil.example" }) })).status).toBe(401);
  const claims = { sub: "admin", iss: provider.issuer, aud: provider.clientId, iat: now, exp: now + 300 };
  const part = (value: object) => Buffer.from(JSON.stringify(value)).toString("base64url");
  const unsigned = `${part({ alg: "none" })}.${part(claims)}.`;
  const input = `${part({ alg: "HS256", kid: "1" })}.${part(claims)}`;
  const bySecret = `${input}.${createHmac("sha256", provider.clientSecret).update(input).digest("base64url")}`;
  for (const idToken of [unsigned, bySecret, "no token", "a.b.c"])
    expect((await present({ idToken })).status).toBe(401);
  expect((await present({ idToken: "x" }, "github")).status).toBe(401);
  expect((await present({ idToken: "x" }, "nobody")).status).toBe(404);
});

test("[AU306] a second factor is asked for, and an unverified address opens no account", async () => {
  const user = nextUser();
  const first = await present({ idToken: await provider.idToken(user) });
  await enrol(platform.as(first.body.accessToken));
  const second = await present({ idToken: await provider.idToken(user, { jti: "2" }) });
  expect(second.body).toMatchObject({ mfaRequired: true });
  const other = { ...nextUser(), email: String(user.email), email_verified: false };
  expect((await present({ idToken: await provider.idToken(other) })).status).toBe(409);
});
