import { SignJWT } from "jose";
import type { Clock } from "../../../../kernel/clock.ts";
import { SECOND_MS } from "../../../../kernel/time/duration.ts";
import type { Account } from "../../../access/accounts.ts";
import { equalsConstantTime, type Sealing } from "../store/sealing.ts";

export interface RefreshToken {
  sessionId: string;
  generation: number;
}

export interface TokenSigner {
  /** A JWT with the claims that `access` below writes. [AU15] */
  access(account: Account, sessionId: string, version: number): Promise<string>;
  /**
   * `SESSION.GENERATION.MAC`: nothing of it needs to be stored, and the MAC distinguishes a replaced token of a session, which
   * ends the session, from a forged one, which must not.
   */
  refresh(token: RefreshToken): string;
  /** null for what this server has not issued. */
  readRefresh(text: string): RefreshToken | null;
}

const REFRESH_TOKEN = /^([\w-]{1,64})\.(\d{1,12})\.([\w-]{43})$/;

export async function createTokens(deps: {
  secret: string;
  sealing: Sealing;
  clock: Clock;
  accessTtlSeconds: number;
}): Promise<TokenSigner> {
  const bytes = new TextEncoder().encode(deps.secret);
  const key = await crypto.subtle.importKey("raw", bytes, { name: "HMAC", hash: "SHA-256" }, false, ["sign"]);
  const mac = (token: RefreshToken) => deps.sealing.digest("refresh-token", `${token.sessionId}.${token.generation}`);

  return {
    access(account, sessionId, version) {
      const issuedAtSeconds = Math.floor(deps.clock.now() / SECOND_MS);
      return new SignJWT({
        sub: account.id,
        sid: sessionId,
        role: account.role,
        email: account.email,
        custom: account.customClaims,
        anon: account.isAnonymous,
        // Where no password was set in the session, the claims are those that clients know.
        ...(version === 0 ? {} : { ver: version }),
        iat: issuedAtSeconds,
        exp: issuedAtSeconds + deps.accessTtlSeconds,
      })
        .setProtectedHeader({ alg: "HS256", typ: "JWT" })
        .sign(key);
    },
    refresh: (token) => `${token.sessionId}.${token.generation}.${mac(token).toString("base64url")}`,
    readRefresh(text) {
      const [, sessionId, generation, given] = REFRESH_TOKEN.exec(text) ?? [];
      if (sessionId === undefined || generation === undefined || given === undefined) return null;
      const token = { sessionId, generation: Number(generation) };
      return equalsConstantTime(mac(token), Buffer.from(given, "base64url")) ? token : null;
    },
  };
}
