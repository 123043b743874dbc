import { afterAll, beforeAll, expect, test } from "bun:test";
import { createHash } from "node:crypto";
import { createProviderClient } from "./client.ts";
import { KNOWN, type PlainRow } from "./known.ts";
import { createPlainClient } from "./plain-client.ts";
import { profileOf } from "./profile.ts";

/** A provider that speaks OAuth 2 without OpenID Connect, as GitHub does. */
let server: Bun.Server<undefined>;
let plain: PlainRow;
let challenge = "";
let discoveries = 0;

const EMAILS = [
  { email: "other@example.com", primary: false, verified: true },
  { email: "Octo@Example.com", primary: true, verified: true },
];

const githubRow = (): PlainRow => {
  const { github } = KNOWN;
  if (!("plain" in github)) throw new Error("GitHub has OAuth 2 alone");
  return github.plain;
};

beforeAll(() => {
  server = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    routes: {
      "/token": {
        async POST(request) {
          const form = new URLSearchParams(await request.text());
          const verifier = createHash("sha256")
            .update(form.get("code_verifier") ?? "")
            .digest("base64url");
          const isRight =
            form.get("code") === "right" && form.get("client_secret") === "secret" && verifier === challenge;
          if (!isRight) return Response.json({ error: "bad_verification_code" }, { status: 400 });
          return Response.json({ access_token: "granted", token_type: "bearer", scope: "user:email" });
        },
      },
      "/user": (request) =>
        request.headers.get("authorization") === "Bearer granted"
          ? Response.json({ id: 7, login: "octo", name: null, avatar_url: "https://example.com/7.png" })
          : new Response(null, { status: 401 }),
      "/user/emails": () => Response.json(EMAILS),
      "/.well-known/openid-configuration": () => {
        discoveries += 1;
        const issuer = `http://127.0.0.1:${server.port}`;
        return Response.json({
          issuer,
          authorization_endpoint: `${issuer}/authorize`,
          token_endpoint: `${issuer}/token`,
          jwks_uri: `${issuer}/keys`,
        });
      },
    },
  });
  const issuer = `http://127.0.0.1:${server.port}`;
  plain = {
    ...githubRow(),
    authorize: `${issuer}/authorize`,
    token: `${issuer}/token`,
    requests: () => [{ url: `${issuer}/user` }, { url: `${issuer}/user/emails` }],
  };
});
afterAll(() => server.stop(true));

const CONFIG = { clientId: "client", clientSecret: "secret" };
const [state, nonce, verifier] = ["s".repeat(43), "n".repeat(43), "v".repeat(43)] as const;
const callback = (query: string) => new URL(`https://api.example.com/callback?${query}`);

test("[AU32] providers without OpenID Connect: state and PKCE are sent, and the profile is read from their API", async () => {
  const client = createPlainClient(CONFIG, plain, Date.now);
  const url = await client.authorizationUrl({
    state,
    nonce,
    verifier,
    redirectUri: "https://api.example.com/callback",
  });
  expect(url.searchParams.get("state")).toBe(state);
  challenge = url.searchParams.get("code_challenge") ?? "";
  expect(challenge).toBe(createHash("sha256").update(verifier).digest("base64url"));
  const profile = await client.profile({ callback: callback(`code=right&state=${state}`), state, nonce, verifier });
  expect(profile).toEqual({
    subject: "7",
    email: "octo@example.com",
    emailVerified: true,
    name: "octo",
    picture: "https://example.com/7.png",
  });
});

test("[AU33] providers without OpenID Connect: another state, verifier or code is refused", async () => {
  const client = createPlainClient(CONFIG, plain, Date.now);
  const attempt = (query: string, secret = verifier) =>
    client.profile({ callback: callback(query), state, nonce, verifier: secret }).then(
      () => "accepted",
      () => "refused",
    );
  expect(await attempt(`code=right&state=${"x".repeat(43)}`)).toBe("refused");
  expect(await attempt("code=right")).toBe("refused");
  expect(await attempt(`code=wrong&state=${state}`)).toBe("refused");
  expect(await attempt(`code=right&state=${state}`, "w".repeat(43))).toBe("refused");
  expect(await attempt(`code=right&state=${state}`)).toBe("accepted");
});

test("[AU33] what an issuer says of itself is read again after a day, and after the clock was set back", async () => {
  const issuer = `http://127.0.0.1:${server.port}`;
  let now = Date.UTC(2030, 0, 1);
  const client = createProviderClient("own", { ...CONFIG, issuer }, () => now);
  const ask = () =>
    client.authorizationUrl({ state, nonce, verifier, redirectUri: "https://api.example.com/callback" });
  const readings: number[] = [];
  for (const passedMs of [0, 3_600_000, 24 * 3_600_000, -4 * 365 * 24 * 3_600_000]) {
    now += passedMs;
    await ask();
    readings.push(discoveries);
  }
  expect(readings).toEqual([1, 1, 2, 3]);
});

test("[AU34] GitHub: an email that it has not verified is none", () => {
  const user = { id: 7, login: "octo" };
  const read = (...answers: unknown[]) => profileOf(githubRow().read(...answers));
  expect(read(user, [{ email: "a@example.com", primary: true, verified: false }])).toMatchObject({ email: null });
  expect(read(user, { message: "rate limited" })).toMatchObject({ email: null, emailVerified: false });
  expect(() => read({ id: "7" }, [])).toThrow("id of the user");
});

test.each([[""], ["  "], ["x".repeat(256)], [0], [-1], [1.5], [null], [{}], [undefined]])(
  "[AU281] an id of a user that is %p is refused",
  (id) => {
    expect(() => profileOf({ id })).toThrow("id of the user");
  },
);
