import { SignJWT } from "jose";
import type { Clock, Millis } from "../../../../kernel/clock.ts";
import { SECOND_MS } from "../../../../kernel/time/duration.ts";
import type { Account } from "../../../access/accounts.ts";
import { REFRESH_GRACE_MS, REFRESH_ROTATIONS_KEPT } from "../limits.ts";
import type { SessionRow } from "../statements/sessions.ts";
import { equalsConstantTime, type Sealing } from "../store/sealing.ts";

interface RefreshToken {
  sessionId: string;
  generation: number;
}

const REFRESH_TOKEN = /^([\w-]{1,64})\.(\d{1,12})\.([\w-]{43})$/;

/** Access and refresh tokens. */
export class TokenSigner {
  readonly #key: CryptoKey;
  readonly #sealing: Sealing;
  readonly #clock: Clock;
  readonly #accessTtlSeconds: number;

  private constructor(key: CryptoKey, deps: { sealing: Sealing; clock: Clock; accessTtlSeconds: number }) {
    this.#key = key;
    this.#sealing = deps.sealing;
    this.#clock = deps.clock;
    this.#accessTtlSeconds = deps.accessTtlSeconds;
  }

  static async of(
    secret: string,
    deps: { sealing: Sealing; clock: Clock; accessTtlSeconds: number },
  ): Promise<TokenSigner> {
    const bytes = new TextEncoder().encode(secret);
    const key = await crypto.subtle.importKey("raw", bytes, { name: "HMAC", hash: "SHA-256" }, false, ["sign"]);
    return new TokenSigner(key, deps);
  }

  /** Returns a JWT with the claims of the account. [AU15] */
  access(account: Account, sessionId: string, version: number): Promise<string> {
    const issuedAtSeconds = Math.floor(this.#clock.now() / SECOND_MS);
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
      exp: issuedAtSeconds + this.#accessTtlSeconds,
    })
      .setProtectedHeader({ alg: "HS256", typ: "JWT" })
      .sign(this.#key);
  }

  /**
   * Returns `SESSION.GENERATION.MAC`: nothing of it needs to be stored, and the MAC distinguishes a replaced token of a session, which
   * ends the session, from a forged one, which must not.
   */
  refresh(token: RefreshToken): string {
    return `${token.sessionId}.${token.generation}.${this.#mac(token).toString("base64url")}`;
  }

  /** Returns null for what this server has not issued. */
  readRefresh(text: string): RefreshToken | null {
    const [, sessionId, generation, given] = REFRESH_TOKEN.exec(text) ?? [];
    if (sessionId === undefined || generation === undefined || given === undefined) return null;
    const token = { sessionId, generation: Number(generation) };
    return equalsConstantTime(this.#mac(token), Buffer.from(given, "base64url")) ? token : null;
  }

  #mac(token: RefreshToken): Buffer {
    return this.#sealing.digest("refresh-token", `${token.sessionId}.${token.generation}`);
  }
}

type Generations = Pick<SessionRow, "generation" | "rotations">;

type Rotation =
  /** The present token: a new generation begins. */
  | ({ kind: "rotated" } & Generations)
  /** Replaced within the grace, by another tab for instance: the present token is given again. */
  | ({ kind: "grace" } & Generations)
  /** An old token: it has been copied, and the session ends. */
  | { kind: "reused" };

/**
 * Decides what a refresh token of this generation does to its session. A future generation (the data is an older copy than
 * the token) counts as reused. [AU7]
 */
export function rotate(session: Generations, generation: number, now: Millis): Rotation {
  const recent = session.rotations.filter((replacedAt) => now - replacedAt <= REFRESH_GRACE_MS);
  if (generation === session.generation) {
    const rotations = [now, ...recent].slice(0, REFRESH_ROTATIONS_KEPT);
    return { kind: "rotated", generation: generation + 1, rotations };
  }
  // The first entry of `rotations` says when the generation just before the present one was replaced.
  const age = session.generation - generation;
  if (age > 0 && age <= recent.length) return { kind: "grace", generation: session.generation, rotations: recent };
  return { kind: "reused" };
}
