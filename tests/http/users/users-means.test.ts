import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import type { JsonObject } from "../../../src/kernel/json/json.ts";
import { createAuthenticator } from "../../support/authenticator.ts";
import { type TestPlatform, testPlatform } from "../../support/index.ts";
import { type OidcProvider, startOidcProvider } from "../../support/oidc-provider.ts";
import { enrol, nextEmail, PASSWORD, signUp, type Tokens } from "../auth/auth-support.ts";

// Codes of one step are wanted, and its end may have to be waited for.
setDefaultTimeout(20_000);

const ORIGIN = "https://app.example.com";
const RP = { rpName: "Film Club", rpId: "app.example.com", origin: ORIGIN };
const READER = "reader-key-0123456789abcdef";

let provider: OidcProvider;
let platform: TestPlatform;
beforeAll(async () => {
  provider = await startOidcProvider();
  const { issuer, clientId, clientSecret } = provider;
  platform = await testPlatform({
    config: {
      auth: {
        ...{ passkeys: RP, mfa: { totp: true }, redirectUrls: [`${ORIGIN}/*`] },
        oauth: { club: { clientId, clientSecret, issuer } },
      },
      rateLimits: { auth: { requests: 100_000, window: 60 }, signup: { requests: 100_000, window: 60 } },
      serviceKeys: {
        reader: { key: READER, scopes: ["auth:admin:*:read"] },
        other: { key: "other-key-0123456789abcdef", scopes: ["kv:namespace:*:read"] },
      },
    },
  });
});
afterAll(async () => {
  provider.stop();
  await platform.stop();
});

interface Means {
  sessions: { id: string; userAgent: string | null }[];
  factors: { id: string }[];
  identities: { id: string }[];
  passkeys: { id: string }[];
}

const pathOf = (id: string) => `/api/auth/admin/users/${id}`;
const meansOf = async (id: string) => (await platform.service.get<Means & JsonObject>(`${pathOf(id)}/means`)).body;

async function withEverything() {
  const tokens = await signUp(platform);
  const caller = platform.as(tokens.accessToken);
  const authenticator = createAuthenticator({ rpId: RP.rpId, origin: ORIGIN });
  const options = await caller.post<{ challenge: string } & JsonObject>("/api/auth/passkeys/register-options");
  const passkey = { ...authenticator.register(options.body), name: "phone" };
  expect((await caller.post("/api/auth/passkeys/register", passkey)).status).toBe(200);
  const { secret } = await enrol(caller);
  return { id: tokens.user.id, caller, secret, passkeyId: authenticator.credentialId };
}

async function withIdentity(): Promise<string> {
  const begun = await platform.fetch(`/api/auth/oauth/club?redirect_url=${encodeURIComponent(`${ORIGIN}/in`)}`);
  const cookie = (begun.headers.get("set-cookie") ?? "").split(";")[0] ?? "";
  const email = nextEmail();
  const user = { sub: `subject of ${email}`, email, email_verified: true, name: "Some Body", picture: "" };
  const back = new URL(provider.approve(begun.headers.get("location") ?? "", user));
  const done = await platform.fetch(back.pathname + back.search, {
    headers: { "sec-fetch-site": "cross-site", cookie },
  });
  const token = new URLSearchParams(new URL(done.headers.get("location") ?? "").hash.slice(1)).get("access_token");
  return (await platform.as(token ?? "").get<{ user: { id: string } }>("/api/auth/me")).body.user.id;
}

test("[US360] sessions, factors, identities and passkeys of a user are listed without secrets", async () => {
  const { id, secret, passkeyId } = await withEverything();
  const means = await meansOf(id);
  expect(means.sessions).toEqual([
    {
      id: expect.any(String),
      createdAt: expect.any(String),
      lastUsedAt: expect.any(String),
      expiresAt: expect.any(String),
      ip: "127.0.0.1",
      userAgent: expect.any(String),
    },
  ] as never);
  expect(means.factors).toEqual([
    { id: expect.any(String), type: "totp", verified: true, createdAt: expect.any(String) },
  ] as never);
  expect(means.passkeys).toEqual([
    { id: passkeyId, name: "phone", deviceType: expect.any(String), createdAt: expect.any(String), lastUsedAt: null },
  ] as never);
  expect(JSON.stringify(means)).not.toContain(secret);
  const identity = (await meansOf(await withIdentity())).identities[0];
  expect(identity).toEqual({
    ...{ id: expect.any(String), provider: "club", email: expect.any(String) },
    ...{ createdAt: expect.any(String), lastSignInAt: expect.any(String) },
  } as never);
});

test("[US360] [US361] reading needs auth:admin:*:read, removing auth:admin:*:write", async () => {
  const { user } = await signUp(platform);
  for (const listed of ["means", "sessions"]) {
    const path = `${pathOf(user.id)}/${listed}`;
    expect((await platform.get(path)).status).toBe(401);
    expect((await platform.withKey("other-key-0123456789abcdef").get(path)).status).toBe(403);
    expect((await platform.withKey(READER).get(path)).status).toBe(200);
    expect((await platform.service.get(`${pathOf("nobody")}/${listed}`)).status).toBe(404);
  }
  const { sessions } = await meansOf(user.id);
  expect(sessions).toHaveLength(1);
  expect((await platform.service.get(`${pathOf(user.id)}/sessions`)).body).toEqual({ sessions });
  for (const part of ["sessions", "identities", "passkeys"]) {
    expect((await platform.delete(`${pathOf(user.id)}/${part}/x`)).status).toBe(401);
    expect((await platform.withKey(READER).delete(`${pathOf(user.id)}/${part}/x`)).status).toBe(403);
    expect((await platform.service.delete(`${pathOf(user.id)}/${part}/x`)).status).toBe(404);
  }
});

test("[US361] a session ends at once, and the others stay", async () => {
  const { user, accessToken } = await signUp(platform);
  const second = await platform.post<Tokens>("/api/auth/signin", { email: user.email, password: PASSWORD });
  const [newest] = (await meansOf(user.id)).sessions;
  expect((await platform.service.delete(`${pathOf(user.id)}/sessions/${newest?.id}`)).status).toBe(200);
  expect((await platform.as(second.body.accessToken).get("/api/auth/me")).status).toBe(401);
  expect((await platform.as(accessToken).get("/api/auth/me")).status).toBe(200);
  expect((await meansOf(user.id)).sessions).toHaveLength(1);
});

test("[US361] a passkey and an identity are removed, and those of somebody else are 404", async () => {
  const { id, passkeyId } = await withEverything();
  const other = await withIdentity();
  const [identity] = (await meansOf(other)).identities;
  expect((await platform.service.delete(`${pathOf(other)}/passkeys/${passkeyId}`)).status).toBe(404);
  expect((await platform.service.delete(`${pathOf(id)}/identities/${identity?.id}`)).status).toBe(404);
  const [session] = (await meansOf(id)).sessions;
  expect((await platform.service.delete(`${pathOf(other)}/sessions/${session?.id}`)).status).toBe(404);
  expect((await platform.service.delete(`${pathOf(id)}/passkeys/${passkeyId}`)).status).toBe(200);
  expect((await platform.service.delete(`${pathOf(other)}/identities/${identity?.id}`)).status).toBe(200);
  expect((await meansOf(id)).passkeys).toEqual([]);
  expect((await meansOf(other)).identities).toEqual([]);
  const { body } = await platform.service.get<{ entries: { action: string; after: JsonObject }[] }>(
    "/api/admin/audit",
    {
      query: { target: `users/${id}`, action: "factor.delete" },
    },
  );
  expect(body.entries[0]?.after).toEqual({ type: "passkey" });
});
