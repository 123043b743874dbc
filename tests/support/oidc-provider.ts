import { createHash, randomBytes } from "node:crypto";
import { exportJWK, generateKeyPair, type JWTPayload, SignJWT } from "jose";

export interface OidcUser {
  sub: string;
  email?: string;
  email_verified?: boolean;
  name?: string;
  picture?: string;
}

interface Grant {
  user: OidcUser;
  nonce: string | null;
  challenge: string | null;
  redirectUri: string;
}

/** False contents of the ID tokens of a cheating provider. */
export interface Lies {
  nonce?: string;
  iss?: string;
  aud?: string;
  expiresInSeconds?: number;
  /** Whether to sign with a key that the provider does not publish. */
  foreignKey?: boolean;
  /** Whether to leave the user's claims out of the ID token, so that they are fetched from `userinfo`. */
  bare?: boolean;
}

export interface OidcProvider {
  readonly issuer: string;
  readonly clientId: string;
  readonly clientSecret: string;
  lies: Lies;
  /** Simulates the user's browser at the provider: signs in, and returns the address it is redirected to. */
  approve(authorizationUrl: string, user: OidcUser): string;
  /** Signs an ID token, as an app on a device gets it from the provider; `claims` override the usual ones. */
  idToken(user: OidcUser, claims?: JWTPayload): Promise<string>;
  /** Returns the provider's page for a real browser; 404 by default. */
  page: (authorizationUrl: string) => Response;
  /** Transforms each response, by its path; unchanged by default. */
  altered: (path: string, answer: Response) => Response | Promise<Response>;
  /** Number of granted calls of the token endpoint. */
  readonly granted: number;
  stop(): void;
}

/** Starts an OpenID Connect provider on loopback: discovery, authorization code with PKCE, keys, userinfo. */
export async function startOidcProvider(): Promise<OidcProvider> {
  const [clientId, clientSecret] = ["platform-test", "the secret of the client & more"];
  const keys = await generateKeyPair("RS256", { extractable: true });
  const foreign = await generateKeyPair("RS256");
  const jwk = { ...(await exportJWK(keys.publicKey)), kid: "1", alg: "RS256", use: "sig" };
  const codes = new Map<string, Grant>();
  const accessTokens = new Map<string, OidcUser>();
  let granted = 0;
  let lies: Lies = {};
  let altered: OidcProvider["altered"] = (_path, answer) => answer;
  let page = (_url: string) => new Response(null, { status: 404 });

  const token = async (request: Request): Promise<Response> => {
    const form = new URLSearchParams(await request.text());
    const refuse = (error: string) => Response.json({ error }, { status: 400 });
    const credentials = Buffer.from((request.headers.get("authorization") ?? "").replace(/^Basic /, ""), "base64");
    const given = credentials
      .toString()
      .split(":")
      .map((part) => decodeURIComponent(part.replaceAll("+", " ")));
    if (given[0] !== clientId || given[1] !== clientSecret) {
      return Response.json({ error: "invalid_client" }, { status: 401 });
    }
    const code = form.get("code") ?? "";
    const grant = codes.get(code);
    if (grant === undefined || form.get("redirect_uri") !== grant.redirectUri) return refuse("invalid_grant");
    codes.delete(code);
    const challenge = createHash("sha256")
      .update(form.get("code_verifier") ?? "")
      .digest("base64url");
    if (grant.challenge !== challenge) return refuse("invalid_grant");
    granted++;
    const { sub, ...profile } = grant.user;
    const idToken = await new SignJWT({
      ...(lies.bare === true ? {} : profile),
      ...(grant.nonce === null ? {} : { nonce: lies.nonce ?? grant.nonce }),
    })
      .setProtectedHeader({ alg: "RS256", kid: "1" })
      .setSubject(sub)
      .setIssuer(lies.iss ?? issuer)
      .setAudience(lies.aud ?? clientId)
      .setIssuedAt()
      .setExpirationTime(Math.floor(Date.now() / 1000) + (lies.expiresInSeconds ?? 300))
      .sign(lies.foreignKey === true ? foreign.privateKey : keys.privateKey);
    const accessToken = randomBytes(16).toString("hex");
    accessTokens.set(accessToken, grant.user);
    return Response.json({ access_token: accessToken, token_type: "Bearer", expires_in: 300, id_token: idToken });
  };

  const routes: Record<string, (request: Request) => Response | Promise<Response>> = {
    "/.well-known/openid-configuration": () =>
      Response.json({
        issuer,
        ...{ authorization_endpoint: `${issuer}/authorize`, token_endpoint: `${issuer}/token` },
        ...{ jwks_uri: `${issuer}/keys`, userinfo_endpoint: `${issuer}/userinfo` },
        ...{ response_types_supported: ["code"], subject_types_supported: ["public"] },
        ...{ id_token_signing_alg_values_supported: ["RS256"], code_challenge_methods_supported: ["S256"] },
      }),
    "/keys": () => Response.json({ keys: [jwk] }),
    "/authorize": (request) => page(request.url),
    "/token": token,
    "/userinfo": (request) => {
      const bearer = request.headers.get("authorization")?.replace(/^Bearer /, "") ?? "";
      const user = accessTokens.get(bearer);
      return user === undefined ? new Response(null, { status: 401 }) : Response.json(user);
    },
  };
  const server: Bun.Server<undefined> = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    async fetch(request) {
      const { pathname } = new URL(request.url);
      const answer = (await routes[pathname]?.(request)) ?? new Response(null, { status: 404 });
      return altered(pathname, answer);
    },
  });
  const issuer: string = `http://127.0.0.1:${server.port}`;

  return {
    ...{ issuer, clientId, clientSecret },
    get lies() {
      return lies;
    },
    set lies(next) {
      lies = next;
    },
    get altered() {
      return altered;
    },
    set altered(next) {
      altered = next;
    },
    get page() {
      return page;
    },
    set page(next) {
      page = next;
    },
    get granted() {
      return granted;
    },
    approve(authorizationUrl, user) {
      const { searchParams: query } = new URL(authorizationUrl);
      const code = randomBytes(12).toString("hex");
      const redirectUri = query.get("redirect_uri") ?? "";
      codes.set(code, { user, nonce: query.get("nonce"), challenge: query.get("code_challenge"), redirectUri });
      const back = new URL(redirectUri);
      back.searchParams.set("code", code);
      back.searchParams.set("state", query.get("state") ?? "");
      return back.href;
    },
    idToken(user, claims) {
      const now = Math.floor(Date.now() / 1000);
      const all = { ...user, iss: issuer, aud: clientId, iat: now, exp: now + 300, ...claims };
      return new SignJWT(all).setProtectedHeader({ alg: "RS256", kid: "1" }).sign(keys.privateKey);
    },
    stop: () => void server.stop(true),
  };
}
