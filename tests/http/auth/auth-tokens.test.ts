import { afterAll, beforeAll, expect, test } from "bun:test";
import { createHmac, generateKeyPairSync } from "node:crypto";
import { decodeJwt, decodeProtectedHeader, exportSPKI, SignJWT } from "jose";
import type { JsonObject } from "../../../src/kernel/json/json.ts";
import { JWT_SECRET, signToken, type TestPlatform, testPlatform } from "../../support/index.ts";
import { signUp, type Tokens } from "./auth-support.ts";

let platform: TestPlatform;
let tokens: Tokens;
let claims: { sub: string; sid: string };

beforeAll(async () => {
  platform = await testPlatform({
    config: `{
      auth: {},
      rateLimits: { auth: { requests: 100000, window: 60 } },
      databases: { shared: { tables: { open: { access: { read: true } } } } },
    }`,
  });
  tokens = await signUp(platform);
  const { sub = "", sid } = decodeJwt<{ sid: string }>(tokens.accessToken);
  claims = { sub, sid };
});
afterAll(() => platform.stop());

const me = async (token: string) => {
  const { status, body } = await platform.as(token).get("/api/auth/me");
  return [status, body["message"]];
};
const base64 = (value: JsonObject) => Buffer.from(JSON.stringify(value)).toString("base64url");
const valid = () => ({ ...claims, role: "user", email: null, custom: {}, anon: false, exp: 9_999_999_999 });
/** HS256 whatever the header says. */
const forge = (header: JsonObject, payload: JsonObject, secret: string | Uint8Array = JWT_SECRET) => {
  const text = `${base64(header)}.${base64(payload)}`;
  return `${text}.${createHmac("sha256", secret).update(text).digest("base64url")}`;
};

test("[AU15] the access token is an HS256 JWT with the claims of the interface", async () => {
  expect(decodeProtectedHeader(tokens.accessToken).alg).toBe("HS256");
  const payload = decodeJwt(tokens.accessToken);
  expect(Object.keys(payload).sort()).toEqual(["anon", "custom", "email", "exp", "iat", "role", "sid", "sub"]);
  expect((payload.exp ?? 0) - (payload.iat ?? 0)).toBe(900);
  expect(await me(await signToken(claims))).toEqual([200, undefined]);
});

test("[AU15] alg none is refused, in every spelling and with any signature", async () => {
  for (const alg of ["none", "None", "NONE", "nOnE", ""]) {
    const text = `${base64({ alg, typ: "JWT" })}.${base64(valid())}`;
    for (const signature of ["", tokens.accessToken.split(".")[2] ?? "", "AAAA"]) {
      expect(await me(`${text}.${signature}`)).toEqual([401, "Invalid token"]);
    }
    expect((await me(text))[0]).toBe(401);
  }
});

test("[AU15] other algorithms are refused, also with the right secret", async () => {
  const key = new TextEncoder().encode(JWT_SECRET);
  for (const alg of ["HS384", "HS512"]) {
    const token = await new SignJWT(valid()).setProtectedHeader({ alg }).sign(key);
    expect(await me(token)).toEqual([401, "Invalid token"]);
  }
  expect(await me(forge({ alg: "RS256" }, valid()))).toEqual([401, "Invalid token"]);
});

test("[AU15] RS256 tokens are refused, and so are HS256 ones keyed with a public key", async () => {
  const { privateKey, publicKey } = generateKeyPairSync("rsa", { modulusLength: 2048 });
  const token = await new SignJWT(valid()).setProtectedHeader({ alg: "RS256" }).sign(privateKey);
  expect(await me(token)).toEqual([401, "Invalid token"]);
  const pem = await exportSPKI(publicKey);
  expect(await me(forge({ alg: "HS256" }, valid(), pem))).toEqual([401, "Invalid token"]);
});

test("[AU15] a token signed with another or an empty secret, or with a key from its own header, is refused", async () => {
  const own = "an-attackers-secret-of-32-bytes-or-more";
  expect(await me(forge({ alg: "HS256" }, valid(), own))).toEqual([401, "Invalid token"]);
  expect(await me(forge({ alg: "HS256" }, valid(), ""))).toEqual([401, "Invalid token"]);
  const k = Buffer.from(own).toString("base64url");
  const headers: JsonObject[] = [
    { alg: "HS256", jwk: { kty: "oct", k } },
    { alg: "HS256", jku: "https://attacker.example/keys.json", kid: "1" },
    { alg: "HS256", kid: "../../../../dev/null" },
    { alg: "HS256", kid: "' UNION SELECT 'x' --" },
    { alg: "HS256", x5u: "https://attacker.example/cert.pem" },
    { alg: "HS256", crit: ["exp"], b64: false },
  ];
  for (const header of headers) {
    expect(await me(forge(header, valid(), own))).toEqual([401, "Invalid token"]);
    expect((await me(forge(header, valid(), "")))[0]).toBe(401);
  }
  // What is critical and unknown must be understood or refused, also with the right key.
  expect(await me(forge({ alg: "HS256", crit: ["made-up"], "made-up": 1 }, valid()))).toEqual([401, "Invalid token"]);
});

test("[AU15] a changed payload, header or signature is refused", async () => {
  const [head = "", payload = "", signature = ""] = tokens.accessToken.split(".");
  const raised = base64({ ...decodeJwt<JsonObject>(tokens.accessToken), role: "admin" });
  expect(await me(`${head}.${raised}.${signature}`)).toEqual([401, "Invalid token"]);
  expect(await me(`${base64({ alg: "HS256", typ: "at+jwt" })}.${payload}.${signature}`)).toEqual([
    401,
    "Invalid token",
  ]);
  expect((await me(`${head}.${payload}.${signature.slice(0, -3)}`))[0]).toBe(401);
  expect((await me(`${head}.${payload}`))[0]).toBe(401);
  for (const garbage of ["x", "a.b.c", "....", `${tokens.accessToken}.x`, "é".repeat(50), "x".repeat(12_000)]) {
    expect((await me(encodeURIComponent(garbage)))[0]).toBe(401);
  }
});

test("[AU15] the signature is checked first, then the expiry, then the session", async () => {
  const expired = { ...valid(), exp: 1_000 };
  expect(await me(forge({ alg: "HS256" }, expired, "another secret"))).toEqual([401, "Invalid token"]);
  expect(await me(forge({ alg: "HS256" }, expired))).toEqual([401, "Token expired"]);
  expect(await me(forge({ alg: "HS256" }, { ...expired, sid: "no-such-session" }))).toEqual([401, "Token expired"]);
  expect(await me(forge({ alg: "HS256" }, { ...valid(), sid: "no-such-session" }))).toEqual([401, "Invalid token"]);
  const { exp: _, ...endless } = valid();
  expect(await me(forge({ alg: "HS256" }, endless))).toEqual([401, "Invalid token"]);
});

test("[AU15] a token issued in the future is refused", async () => {
  expect((await me(forge({ alg: "HS256" }, { ...valid(), iat: 9_999_999_000 })))[0]).toBe(401);
  expect((await me(forge({ alg: "HS256" }, { ...valid(), nbf: 9_999_999_000 })))[0]).toBe(401);
});

test("[AU15] a session is valid for its own user only, whatever the token says", async () => {
  const other = await signUp(platform);
  expect(await me(await signToken({ ...claims, sub: other.user.id }))).toEqual([401, "Invalid token"]);
  // The role is the user's present one, not the token's.
  const raised = await platform
    .as(await signToken({ ...claims, role: "admin" }))
    .get<{ user: JsonObject }>("/api/auth/me");
  expect(raised.body.user["role"]).toBe("user");
});

test("[AU15] a bad token is 401, even where everyone may read", async () => {
  expect((await platform.get("/api/db/shared/tables/open")).status).toBe(200);
  expect((await platform.as("x.y.z").get("/api/db/shared/tables/open")).status).toBe(401);
  const basic = await platform.get("/api/auth/me", { headers: { authorization: "Basic dXNlcjpwYXNz" } });
  expect(basic.status).toBe(401);
});

test("[AU15] a refresh token is not accepted as an access token, nor the reverse", async () => {
  expect((await me(tokens.refreshToken))[0]).toBe(401);
  const answer = await platform.post("/api/auth/refresh", { refreshToken: tokens.accessToken });
  expect(answer.status).toBe(401);
});
