import { type JWTPayload, SignJWT } from "jose";
import { JWT_SECRET } from "./platform.ts";

export interface TokenOptions {
  secret?: string;
  /** Seconds from now; negative for a token that has expired. 900 by default. */
  expiresInSeconds?: number;
}

/** A token signed as the server signs its own (HS256); for forged, expired and foreign tokens. */
export function signToken(claims: JWTPayload, options: TokenOptions = {}): Promise<string> {
  const nowSeconds = Math.floor(Date.now() / 1000);
  return new SignJWT({ role: "user", email: null, custom: {}, anon: false, ...claims })
    .setProtectedHeader({ alg: "HS256", typ: "JWT" })
    .setIssuedAt(nowSeconds)
    .setExpirationTime(nowSeconds + (options.expiresInSeconds ?? 900))
    .sign(new TextEncoder().encode(options.secret ?? JWT_SECRET));
}
