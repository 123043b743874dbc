import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import type { JsonObject } from "../../../src/kernel/json/json.ts";
import { attested } from "../../support/attestation.ts";
import { type AuthenticatorOptions, createAuthenticator } from "../../support/authenticator.ts";
import { type HttpClient, type TestPlatform, testPlatform } from "../../support/index.ts";
import { enrol, signUp, type Ticket, type Tokens } from "./auth-support.ts";

const ORIGIN = "https://app.example.com";
const RP = { rpName: "Film Club", rpId: "app.example.com", origin: ORIGIN };

// Codes of one step are wanted, and its end may have to be waited for.
setDefaultTimeout(20_000);

let platform: TestPlatform;

beforeAll(async () => {
  platform = await testPlatform({
    config: {
      auth: { passkeys: RP, mfa: { totp: true } },
      rateLimits: { auth: { requests: 100_000, window: 60 }, signup: { requests: 100_000, window: 60 } },
    },
  });
});
afterAll(() => platform.stop());

interface Options {
  challenge: string;
  [member: string]: unknown;
}

const registerOptions = async (caller: HttpClient): Promise<Options> => {
  const answer = await caller.post<Options & JsonObject>("/api/auth/passkeys/register-options");
  expect(answer.status).toBe(200);
  return answer.body;
};
const authOptions = async (): Promise<Options> =>
  (await platform.post<Options & JsonObject>("/api/auth/passkeys/auth-options")).body;
const register = (caller: HttpClient, response: JsonObject) => caller.post("/api/auth/passkeys/register", response);
const authenticate = (response: JsonObject) =>
  platform.post<Tokens & Ticket>("/api/auth/passkeys/authenticate", response);

async function withPasskey(options: Partial<AuthenticatorOptions> = {}) {
  const tokens = await signUp(platform);
  const caller = platform.as(tokens.accessToken);
  const authenticator = createAuthenticator({ rpId: RP.rpId, origin: ORIGIN, ...options });
  const registered = await register(caller, {
    ...authenticator.register(await registerOptions(caller)),
    name: "phone",
  });
  expect(registered.status).toBe(200);
  return { user: tokens.user, caller, authenticator };
}

test("[AU37] a passkey is registered, listed, signs in, and is removed", async () => {
  const { user, caller, authenticator } = await withPasskey();
  const listed = await caller.get<{ passkeys: JsonObject[] }>("/api/auth/passkeys");
  expect(listed.body.passkeys).toMatchObject([{ id: authenticator.credentialId, name: "phone", lastUsedAt: null }]);
  const options = await authOptions();
  expect(options["rpId"]).toBe(RP.rpId);
  const signedIn = await authenticate(authenticator.authenticate(options));
  expect(signedIn.status).toBe(200);
  expect(signedIn.body.user.id).toBe(user.id);
  expect((await platform.as(signedIn.body.accessToken).get("/api/auth/me")).status).toBe(200);
  const again = await registerOptions(caller);
  expect(again["excludeCredentials"]).toMatchObject([{ id: authenticator.credentialId }]);
  const stranger = platform.as((await signUp(platform)).accessToken);
  expect((await stranger.delete(`/api/auth/passkeys/${authenticator.credentialId}`)).status).toBe(404);
  expect((await caller.delete(`/api/auth/passkeys/${authenticator.credentialId}`)).body).toEqual({ ok: true });
  expect((await authenticate(authenticator.authenticate(await authOptions()))).status).toBe(400);
});

test("[AU30] a passkey with user verification needs no second factor; one without is a first factor", async () => {
  const verifying = await withPasskey();
  await enrol(verifying.caller);
  const signedIn = await authenticate(verifying.authenticator.authenticate(await authOptions()));
  expect(signedIn.body.accessToken).toBeString();
  const touching = await withPasskey({ verifiesUser: false });
  await enrol(touching.caller);
  const half = await authenticate(touching.authenticator.authenticate(await authOptions()));
  expect(half.body.mfaRequired).toBe(true);
  expect(Object.keys(half.body)).not.toContain("accessToken");
});

test("[AU37] a challenge is valid once, also when it arrives twice at once; a made-up one is refused", async () => {
  const { authenticator } = await withPasskey();
  const response = authenticator.authenticate(await authOptions());
  const answers = await Promise.all([authenticate(response), authenticate(response), authenticate(response)]);
  expect(answers.map((answer) => answer.status).sort()).toEqual([200, 400, 400]);
  expect((await authenticate(response)).status).toBe(400);
  expect((await authenticate(authenticator.authenticate({ challenge: "bWFkZSB1cA" }))).status).toBe(400);
});

test("[AU37] a registration challenge is valid for its own user only, and not for signing in", async () => {
  const one = await signUp(platform);
  const two = await signUp(platform);
  const options = await registerOptions(platform.as(one.accessToken));
  const authenticator = createAuthenticator({ rpId: RP.rpId, origin: ORIGIN });
  expect((await register(platform.as(two.accessToken), authenticator.register(options))).status).toBe(400);
  expect((await register(platform.as(one.accessToken), authenticator.register(await authOptions()))).status).toBe(400);
  expect((await register(platform.as(one.accessToken), authenticator.register(options))).status).toBe(200);
  const again = authenticator.register(await registerOptions(platform.as(two.accessToken)));
  expect((await register(platform.as(two.accessToken), again)).status).toBe(409);
});

test("[AU37] another origin, another site, another key, a changed signature or a counter set back are refused", async () => {
  const { authenticator, caller } = await withPasskey();
  for (const lie of [{ origin: "https://evil.example" }, { rpId: "evil.example" }]) {
    const phished = createAuthenticator({ rpId: RP.rpId, origin: ORIGIN, ...lie });
    expect((await register(caller, phished.register(await registerOptions(caller)))).status).toBe(400);
  }
  const forger = createAuthenticator({ rpId: RP.rpId, origin: ORIGIN });
  const forged = {
    ...forger.authenticate(await authOptions()),
    id: authenticator.credentialId,
    rawId: authenticator.credentialId,
  };
  expect((await authenticate(forged)).status).toBe(400);
  expect((await authenticate(authenticator.authenticate(await authOptions()))).status).toBe(200);
  authenticator.counter = 0;
  expect((await authenticate(authenticator.authenticate(await authOptions()))).status).toBe(400);
  for (const garbage of [{}, { id: 5 }, { id: "x", response: { clientDataJSON: "!!!" } }, { response: null }]) {
    expect((await authenticate(garbage)).status).toBe(400);
  }
});

test("[AU37] what comes with a passkey unasked is not looked at: no certificate makes the server call somebody", async () => {
  const called: string[] = [];
  const elsewhere = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    fetch(request) {
      called.push(request.url);
      return new Response(null, { status: 404 });
    },
  });
  const { accessToken } = await signUp(platform);
  const caller = platform.as(accessToken);
  const authenticator = createAuthenticator({ rpId: RP.rpId, origin: ORIGIN });
  const { challenge } = await registerOptions(caller);
  const response = await attested(authenticator, { challenge, url: `${elsewhere.url}revoked` });
  const answer = await register(caller, response);
  await elsewhere.stop(true);
  expect([answer.status, called]).toEqual([200, []]);
  expect((await authenticate(authenticator.authenticate(await authOptions()))).status).toBe(200);
  for (const transports of [5, "usb", [7, ["usb"]], null]) {
    const other = createAuthenticator({ rpId: RP.rpId, origin: ORIGIN });
    const registration = other.register(await registerOptions(caller));
    const odd = { ...registration, response: { ...(registration["response"] as JsonObject), transports } };
    expect([transports, (await register(caller, odd)).status]).toEqual([transports, 200]);
  }
  for (const attestationObject of [null, 5, "", "!!!", "oA", "9".repeat(40_000)]) {
    const broken = authenticator.register(await registerOptions(caller));
    const odd = { ...broken, response: { ...(broken["response"] as JsonObject), attestationObject } };
    expect([attestationObject, (await register(caller, odd)).status]).toEqual([attestationObject, 400]);
  }
});

test("[AU37] a disabled user is 403; registration options require a signed-in user", async () => {
  const { user, authenticator } = await withPasskey();
  await platform.service.patch(`/api/auth/admin/users/${user.id}`, { disabled: true });
  expect((await authenticate(authenticator.authenticate(await authOptions()))).status).toBe(403);
  expect((await platform.post("/api/auth/passkeys/register-options")).status).toBe(401);
  expect((await platform.get("/api/auth/passkeys")).status).toBe(401);
});
