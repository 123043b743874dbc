import { Database } from "bun:sqlite";
import { afterAll, beforeAll, expect, test } from "bun:test";
import { join } from "node:path";
import type { JsonObject } from "../../../src/kernel/json/json.ts";
import { type TestPlatform, testPlatform } from "../../support/index.ts";
import { startOidcProvider } from "../../support/oidc-provider.ts";
import { mailedToken, nextEmail, PASSWORD } from "./auth-support.ts";

// Tokens of a provider for the code of the config. The provider is a server of the test.

let provider: Bun.Server<unknown>;
let platform: TestPlatform;
/** The user who is at the provider. */
let person = { id: "1", email: "" };
let issued = 0;
let expiresIn = 3_600;
let refusal: (() => Response) | null = null;
const forms: { [name: string]: string }[] = [];

beforeAll(async () => {
  provider = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    async fetch(request): Promise<Response> {
      const { pathname } = new URL(request.url);
      if (pathname === "/user") return Response.json(person);
      const form = Object.fromEntries(new URLSearchParams(await request.text()));
      forms.push(form);
      const isRefresh = form["grant_type"] === "refresh_token";
      if (isRefresh && refusal !== null) return refusal();
      issued++;
      const tokens = { access_token: `access-${issued}`, refresh_token: `refresh-${issued}`, expires_in: expiresIn };
      return Response.json({ ...tokens, token_type: "bearer" });
    },
  });
  const { origin } = provider.url;
  const addresses = `clientId: "id", clientSecret: "secret", authorizationUrl: "${origin}/authorize", tokenUrl: "${origin}/token",
    userInfoUrl: "${origin}/user", profile: (raw) => ({ id: raw.id, email: raw.email, emailVerified: true })`;
  platform = await testPlatform({
    config: `import { defineConfig } from "platform";
export default defineConfig({
  auth: { oauth: { kept: { ${addresses}, keepTokens: true }, plain: { ${addresses} } } },
  routes: (api) => api.get("/token/:id/:provider", async ({ params, app }) => ({ token: await app.users.providerToken(params.id, params.provider) })),
  rateLimits: { auth: { requests: 100000, window: 60 }, signup: { requests: 100000, window: 60 } },
});
`,
  });
});
afterAll(async () => {
  await provider.stop(true);
  await platform.stop();
});

test("[AU446] what refreshes the tokens of an issuer is asked for where they are kept, and nowhere else", async () => {
  const oidc = await startOidcProvider();
  const { issuer, clientId, clientSecret } = oidc;
  const declared = { issuer, clientId, clientSecret };
  const asking = await testPlatform({
    config: { auth: { oauth: { kept: { ...declared, keepTokens: true }, plain: declared } } },
  });
  try {
    const scopesOf = async (name: string) => {
      const begun = await asking.fetch(`/api/auth/oauth/${name}`, { redirect: "manual" });
      return new URL(begun.headers.get("location") ?? "").searchParams.get("scope")?.split(" ");
    };
    expect(await scopesOf("kept")).toContain("offline_access");
    expect(await scopesOf("plain")).not.toContain("offline_access");
  } finally {
    oidc.stop();
    await asking.stop();
  }
});

let people = 0;
/** Signs a new person in at the provider. Returns the id of the account, and its token. */
async function enter(name: string, who = { id: `person-${++people}`, email: nextEmail() }) {
  person = who;
  const begun = await platform.fetch(`/api/auth/oauth/${name}`, { redirect: "manual" });
  const state = new URL(begun.headers.get("location") ?? "").searchParams.get("state") ?? "";
  const query = new URLSearchParams({ code: "code", state });
  const back = await platform.fetch(`/api/auth/oauth/${name}/callback?${query}`, { redirect: "manual" });
  const token =
    new URLSearchParams(new URL(back.headers.get("location") ?? "").hash.slice(1)).get("access_token") ?? "";
  const me = await platform.as(token).get<{ user: { id: string } }>("/api/auth/me");
  expect(me.status).toBe(200);
  return { id: me.body.user.id, token, who };
}
const tokenOf = async (id: string, name = "kept") => {
  const { status, body } = await platform.service.get<{ token: JsonObject | null }>(
    `/api/functions/token/${id}/${name}`,
  );
  return status === 200 ? body.token : status;
};
const stored = (id: string): string | null => {
  const file = new Database(join(platform.dataDirectory, "system.db"), { readonly: true });
  const row = file.query<{ tokens: string | null }, [string]>("SELECT tokens FROM identities WHERE userId = ?").get(id);
  file.close();
  return row?.tokens ?? null;
};

test("[AU446] the provider's token is kept encrypted, where the config says so, and no answer shows it", async () => {
  const { id, token } = await enter("kept");
  const access = `access-${issued}`;
  expect(await tokenOf(id)).toEqual({ accessToken: access, expiresAt: expect.stringMatching(/^\d{4}-.*Z$/) });
  expect(stored(id)).toBeString();
  expect(stored(id)).not.toContain("access-");
  for (const answer of [
    await platform.as(token).get("/api/auth/identities"),
    await platform.as(token).get("/api/auth/me/export"),
    await platform.service.get(`/api/auth/admin/users/${id}/export`),
  ]) {
    expect(JSON.stringify(answer.body)).not.toMatch(/access-\d|refresh-\d|tokens/);
  }
  const other = await enter("plain");
  expect(await tokenOf(other.id, "plain")).toBeNull();
  expect(stored(other.id)).toBeNull();
  expect(await tokenOf("nobody")).toBeNull();
  expect(await tokenOf(id, "plain")).toBeNull();
});

test("[AU447] a token that ends is refreshed, once for all who ask together", async () => {
  expiresIn = 30;
  const { id } = await enter("kept");
  const before = `refresh-${issued}`;
  forms.length = 0;
  expiresIn = 3_600;
  const answers = await Promise.all(Array.from({ length: 8 }, () => tokenOf(id)));
  for (const answer of answers) expect(answer).toMatchObject({ accessToken: `access-${issued}` });
  expect(forms).toMatchObject([{ grant_type: "refresh_token", refresh_token: before }]);
  expect(await tokenOf(id)).toMatchObject({ accessToken: `access-${issued}` });
  expect(forms.length).toBe(1);
});

test("[AU447] one that the provider takes no more is null from then on; a provider that fails is 502, and asked again", async () => {
  expiresIn = 30;
  const { id } = await enter("kept");
  expiresIn = 3_600;
  refusal = () => new Response("no", { status: 500 });
  expect(await tokenOf(id)).toBe(502);
  expect(stored(id)).toBeString();
  refusal = () => Response.json({ error: "invalid_grant" }, { status: 400 });
  expect(await tokenOf(id)).toBeNull();
  refusal = null;
  expect(await tokenOf(id)).toBeNull();
  expect(stored(id)).toBeNull();
});

test("[AU448] unlinking, a reset and deletion remove it; a merge takes it along", async () => {
  const { id, token, who } = await enter("kept");
  await platform.post("/api/auth/request-password-reset", { email: who.email });
  const reset = { token: mailedToken(platform, who.email), newPassword: PASSWORD };
  expect((await platform.post("/api/auth/reset-password", reset)).status).toBe(200);
  expect(stored(id)).toBeNull();
  expect((await platform.as(token).get("/api/auth/me")).status).toBe(401);
  // The identity stays, and the next sign-in with it brings a token again.
  const again = await enter("kept", who);
  expect(again.id).toBe(id);
  expect(stored(id)).toBeString();
  const client = platform.as(again.token);
  const { identities } = (await client.get<{ identities: { id: string }[] }>("/api/auth/identities")).body;
  expect((await client.delete(`/api/auth/identities/${identities[0]?.id}`)).status).toBe(200);
  expect(await tokenOf(id)).toBeNull();

  const [into, from] = [await enter("plain"), await enter("kept")];
  const kept = await tokenOf(from.id);
  expect((await platform.service.post(`/api/auth/admin/users/${into.id}/merge`, { from: from.id })).status).toBe(200);
  expect(await tokenOf(into.id)).toEqual(kept);
  expect((await platform.service.delete(`/api/auth/admin/users/${into.id}`)).status).toBe(200);
  expect(await tokenOf(into.id)).toBeNull();
});
