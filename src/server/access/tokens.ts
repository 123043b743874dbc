import { errors, type JWTHeaderParameters, type JWTPayload, jwtVerify } from "jose";
import { BoundedMap } from "../../kernel/bounded-map.ts";
import type { Clock } from "../../kernel/clock.ts";
import { unauthorized } from "../../kernel/errors.ts";
import { frozenJson } from "../../kernel/json/frozen.ts";
import { isJsonObject, type JsonObject } from "../../kernel/json/json.ts";
import type { MaybePromise } from "../../kernel/maybe-promise.ts";
import { SECOND_MS } from "../../kernel/time/duration.ts";
import { CLOCK_SKEW_MS, TOKEN_LENGTH_MAX, VERIFIED_TOKENS_MAX } from "./limits.ts";

/** Disables the checks of times in `jwtVerify`: they run at every use, with the injected clock. */
const ANY_AGE_SECONDS = Number.MAX_SAFE_INTEGER;

/** The claims of an access token. */
export interface AccessClaims {
  userId: string;
  sessionId: string;
  role: string;
  email: string | null;
  isAnonymous: boolean;
  custom: JsonObject;
  /** The version of the session's access tokens; 0 until a password is set in it. */
  version: number;
  expiresAtMs: number;
  /** The time from which the token is valid: the later of `nbf` and `iat` less CLOCK_SKEW_MS. */
  validFromMs: number;
}

/** The public keys of ES256 tokens. */
export interface TokenPublicKeys {
  /** Returns the key of that id; null: there is none. */
  publicKey(kid: string): CryptoKey | null;
}

/** The issuers whose tokens are taken as this server's own. */
export interface TokenIssuers {
  /** Returns the claims of a token with the session that it stands for here; null: no known issuer. Errors: 401, 403, 503. */
  verify(token: string): Promise<AccessClaims> | null;
}

export type TokenVerifier = ReturnType<typeof createTokenVerifier>;

/**
 * Creates the verifier. The UTF-8 bytes of `secret` are the HS256 key; with `keys` ES256 is accepted too. No other algorithm is, and
 * a key fits one algorithm alone. [AC7]
 */
export function createTokenVerifier(deps: {
  secret: string;
  keys: TokenPublicKeys | null;
  /** null: no tokens of others are taken. */
  issuers: TokenIssuers | null;
  clock: Clock;
}) {
  const { keys } = deps;
  const secretKey = new TextEncoder().encode(deps.secret);
  const algorithms = keys === null ? ["HS256"] : ["HS256", "ES256"];
  const keyOf = ({ alg, kid }: JWTHeaderParameters): Uint8Array | CryptoKey => {
    if (alg === "HS256") return secretKey;
    const key = kid === undefined ? null : (keys?.publicKey(kid) ?? null);
    if (key === null) throw new errors.JWKSNoMatchingKey();
    return key;
  };
  const verified = new BoundedMap<string, AccessClaims>(VERIFIED_TOKENS_MAX);

  const unexpired = (claims: AccessClaims): AccessClaims => {
    const now = deps.clock.now();
    if (claims.expiresAtMs <= now) throw unauthorized("Token expired");
    if (claims.validFromMs > now) throw unauthorized("Invalid token");
    return claims;
  };

  const own = (token: string): Promise<AccessClaims | null> =>
    jwtVerify(token, keyOf, { algorithms, clockTolerance: ANY_AGE_SECONDS })
      .then((result) => readClaims(result.payload))
      .catch((cause: unknown) => {
        if (cause instanceof errors.JOSEError) return null;
        throw cause;
      });
  const check = async (token: string): Promise<AccessClaims> => {
    const claims = await (deps.issuers?.verify(token) ?? own(token));
    if (claims === null) throw unauthorized("Invalid token");
    verified.set(token, claims);
    return unexpired(claims);
  };

  return {
    /** Verifies a token. Errors: 401 `Invalid token` (signature, form, claims), then 401 `Token expired`. */
    verify(token: string): MaybePromise<AccessClaims> {
      if (token.length > TOKEN_LENGTH_MAX) throw unauthorized("Invalid token");
      const known = verified.get(token);
      return known === undefined ? check(token) : unexpired(known);
    },
  };
}

function readClaims(payload: JWTPayload): AccessClaims | null {
  const { sub, exp, nbf = 0, iat = 0 } = payload;
  const sessionId = payload["sid"];
  if (typeof sub !== "string" || typeof exp !== "number" || typeof sessionId !== "string") return null;
  const { role, email, anon, custom, ver } = payload;
  return {
    userId: sub,
    sessionId,
    role: typeof role === "string" ? role : "user",
    email: typeof email === "string" ? email : null,
    isAnonymous: anon === true,
    // Frozen: all requests of the token share it, and so do rules, hooks and handlers. [AC111]
    custom: frozenJson(isJsonObject(custom) ? custom : {}),
    version: typeof ver === "number" ? ver : 0,
    expiresAtMs: exp * SECOND_MS,
    validFromMs: Math.max(nbf * SECOND_MS, iat * SECOND_MS - CLOCK_SKEW_MS),
  };
}
