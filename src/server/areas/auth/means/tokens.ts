import { SignJWT } from "jose";
import type { Clock, Millis } from "../../../../kernel/clock.ts";
import { isJsonObject, type JsonObject } from "../../../../kernel/json/json.ts";
import { within } from "../../../../kernel/time/deadline.ts";
import { SECOND_MS } from "../../../../kernel/time/duration.ts";
import type { Account } from "../../../access/accounts.ts";
import { RULE_TIMEOUT_MS, TOKEN_LENGTH_MAX } from "../../../access/limits.ts";
import type { User } from "../../../config/app/index.ts";
import type { TokensConfig } from "../../../config/types.ts";
import { REFRESH_GRACE_MS, REFRESH_ROTATIONS_KEPT } from "../limits.ts";
import type { SessionRow } from "../statements/sessions.ts";
import { equalsConstantTime, type Sealing } from "../store/sealing.ts";
import type { TokenKeys } from "./token-keys.ts";

interface RefreshToken {
  sessionId: string;
  generation: number;
}

const REFRESH_TOKEN = /^([\w-]{1,64})\.(\d{1,12})\.([\w-]{43})$/;

/** The claims that the server sets, and those of the standard, which it keeps for itself. */
const RESERVED = new Set([
  "sub",
  "sid",
  "ver",
  "role",
  "email",
  "custom",
  "anon",
  "iss",
  "aud",
  "iat",
  "nbf",
  "exp",
  "jti",
]);

/** The parts of access tokens for others beside the account. */
export interface TokensForOthers {
  readonly keys: TokenKeys;
  readonly config: TokensConfig;
  /** The issuer where the config names none. */
  readonly issuer: () => string;
  readonly userOf: (account: Account) => User;
}

interface SignerDeps {
  sealing: Sealing;
  clock: Clock;
  accessTtlSeconds: number;
  /** null: only this server verifies its tokens. */
  forOthers: TokensForOthers | null;
}

/** Access and refresh tokens. */
export class TokenSigner {
  readonly #key: CryptoKey;
  readonly #forOthers: TokensForOthers | null;
  readonly #sealing: Sealing;
  readonly #clock: Clock;
  readonly #accessTtlSeconds: number;

  private constructor(key: CryptoKey, deps: SignerDeps) {
    this.#key = key;
    this.#forOthers = deps.forOthers;
    this.#sealing = deps.sealing;
    this.#clock = deps.clock;
    this.#accessTtlSeconds = deps.accessTtlSeconds;
  }

  static async of(secret: string, deps: SignerDeps): Promise<TokenSigner> {
    const bytes = new TextEncoder().encode(secret);
    const key = await crypto.subtle.importKey("raw", bytes, { name: "HMAC", hash: "SHA-256" }, false, ["sign"]);
    return new TokenSigner(key, deps);
  }

  /** Returns a JWT with the claims of the account. Errors: those of `auth.tokens.claims`. [AU15] [AU320] */
  async access(account: Account, sessionId: string, version: number): Promise<string> {
    const forOthers = this.#forOthers;
    const added = forOthers === null ? null : await this.#claims(account, forOthers);
    const issuedAtSeconds = Math.floor(this.#clock.now() / SECOND_MS);
    const claims = {
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
    };
    if (forOthers === null) {
      return new SignJWT(claims).setProtectedHeader({ alg: "HS256", typ: "JWT" }).sign(this.#key);
    }
    const { config, issuer, keys } = forOthers;
    const { kid, key } = keys.signing;
    const token = await new SignJWT({
      ...added,
      ...claims,
      iss: config.issuer ?? issuer(),
      aud: [config.audience].flat(),
    })
      .setProtectedHeader({ alg: "ES256", typ: "JWT", kid })
      .sign(key);
    if (token.length > TOKEN_LENGTH_MAX)
      throw new Error(`auth.tokens.claims makes a token of ${token.length} characters`);
    return token;
  }

  /** Asks the config for further claims. Errors: it throws, takes too long, or returns no object or a reserved claim. */
  async #claims(account: Account, { config, userOf }: TokensForOthers): Promise<JsonObject> {
    const { claims } = config;
    if (claims === undefined) return {};
    const user = structuredClone(userOf(account));
    const asked = async () => JSON.parse(JSON.stringify(await claims(user)) ?? "null");
    const added: unknown = await within(this.#clock, RULE_TIMEOUT_MS, asked()).catch((cause: unknown) => {
      throw new Error("auth.tokens.claims threw, or took too long", { cause });
    });
    if (!isJsonObject(added)) throw new Error("auth.tokens.claims must return an object");
    const reserved = Object.keys(added).find((name) => RESERVED.has(name));
    if (reserved !== undefined) throw new Error(`auth.tokens.claims must not set "${reserved}"`);
    return added;
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
