import { type JWTPayload, SignJWT } from "jose";
import { JWT_SECRET } from "./platform.ts";

export interface TokenOptions {
  secret?: string;
  /** Lifetime in seconds; negative for an expired token. Default: 900. */
  expiresInSeconds?: number;
}

/** Signs a token as the server does (HS256), for forged, expired and foreign tokens. */
export function signToken(claims: JWTPayload, options: TokenOptions = {}): Promise<string> {
  const nowSeconds = Math.floor(Date.now() / 1000);
  return new SignJWT({ role: "user", email: null, custom: {}, anon: false, ...claims })
    .setProtectedHeader({ alg: "HS256", typ: "JWT" })
    .setIssuedAt(nowSeconds)
    .setExpirationTime(nowSeconds + (options.expiresInSeconds ?? 900))
    .sign(new TextEncoder().encode(options.secret ?? JWT_SECRET));
}
