import type { KeyObject } from "node:crypto";
import { SignJWT } from "jose";
import type { Clock } from "../../../../kernel/clock.ts";
import { isJsonObject } from "../../../../kernel/json/json.ts";
import { SECOND_MS } from "../../../../kernel/time/duration.ts";
import { outgoingCall } from "../../../http/outgoing/call.ts";
import { ACCESS_TOKEN_MARGIN_MS, ANSWER_MAX_BYTES, CALL_TIMEOUT_MS } from "../limits.ts";

const SCOPE = "https://www.googleapis.com/auth/firebase.messaging";
const GRANT_TYPE = "urn:ietf:params:oauth:grant-type:jwt-bearer";
/** The maximum of Google. */
const ASSERTION_SECONDS = 3600;

export interface ServiceAccount {
  email: string;
  key: KeyObject;
  /** The id of the account's key; null if the account has none. */
  keyId: string | null;
}

/** Access tokens of a service account, reused until shortly before they expire. Concurrent callers share one request. [PU19] */
export interface AccessTokens {
  /** Errors: `TokenRefused`, or those of `outgoingCall`. */
  get(): Promise<string>;
  /** Forgets `token`, which has been refused, if it is still the current one. */
  forget(token: string): void;
}

/** The token endpoint answered without a token. */
export class TokenRefused extends Error {
  readonly status: number;
  readonly headers: Headers;

  constructor(status: number, headers: Headers, reason: string) {
    super(`The token endpoint answered ${status}${reason === "" ? "" : `: ${reason}`}`);
    this.name = "TokenRefused";
    this.status = status;
    this.headers = headers;
  }
}

export function createAccessTokens(deps: { account: ServiceAccount; endpoint: string; clock: Clock }): AccessTokens {
  const { account, endpoint, clock } = deps;
  let kept: { token: string; freshUntil: number } | null = null;
  let asking: Promise<string> | null = null;

  const assertion = (nowSeconds: number): Promise<string> =>
    new SignJWT({ scope: SCOPE })
      .setProtectedHeader({ alg: "RS256", typ: "JWT", ...(account.keyId === null ? {} : { kid: account.keyId }) })
      .setIssuer(account.email)
      .setAudience(endpoint)
      .setIssuedAt(nowSeconds)
      .setExpirationTime(nowSeconds + ASSERTION_SECONDS)
      .sign(account.key);

  const ask = async (): Promise<string> => {
    const timeout = new AbortController();
    const cancelTimeout = clock.after(CALL_TIMEOUT_MS, () =>
      timeout.abort(new Error("The token endpoint did not answer")),
    );
    try {
      const askedAt = clock.now();
      const head = await outgoingCall(endpoint, {
        method: "POST",
        body: new URLSearchParams({
          grant_type: GRANT_TYPE,
          assertion: await assertion(Math.floor(askedAt / SECOND_MS)),
        }),
        signal: timeout.signal,
      });
      const whole = await head.whole({ maxBytes: ANSWER_MAX_BYTES }).catch(() => null);
      const answer: unknown = await whole?.json().catch(() => null);
      const members = isJsonObject(answer) ? answer : {};
      const { access_token: token, expires_in: lifeSeconds } = members;
      if (!head.ok || typeof token !== "string") {
        const reason = members["error_description"] ?? members["error"];
        throw new TokenRefused(head.status, head.headers, typeof reason === "string" ? reason : "");
      }
      const lifeMs = (typeof lifeSeconds === "number" ? lifeSeconds : 0) * SECOND_MS;
      // A token with a short life is reused for half of it.
      kept = { token, freshUntil: askedAt + Math.max(lifeMs - ACCESS_TOKEN_MARGIN_MS, lifeMs / 2) };
      return token;
    } finally {
      cancelTimeout();
    }
  };

  return {
    get() {
      if (kept !== null && clock.now() < kept.freshUntil) return Promise.resolve(kept.token);
      asking ??= ask().finally(() => {
        asking = null;
      });
      return asking;
    },
    forget(token) {
      if (kept?.token === token) kept = null;
    },
  };
}
