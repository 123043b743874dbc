import type { KeyObject } from "node:crypto";
import { readFileSync } from "node:fs";
import { SignJWT } from "jose";
import type { Clock } from "../../../../kernel/clock.ts";
import { reasonOf } from "../../../../kernel/errors.ts";
import { isJsonObject, type JsonObject } from "../../../../kernel/json/json.ts";
import { SECOND_MS } from "../../../../kernel/time/duration.ts";
import { ConfigError } from "../../../config/problems.ts";
import { rsaKey } from "../../../config/sections/push.ts";
import type { PushConfig } from "../../../config/types.ts";
import { type OutgoingAnswer, outgoingCall } from "../../../http/outgoing/call.ts";
import { ACCESS_TOKEN_MARGIN_MS, ANSWER_MAX_BYTES, CALL_TIMEOUT_MS } from "../limits.ts";
import type { CallResult, Provider } from "../message.ts";
import { createFcmBodies } from "./fcm-message.ts";
import { isBusy, retryAfterMs } from "./provider-answer.ts";

const UNAUTHENTICATED = 401;
/** Site of all FCM targets, as FCM is one service. No host name contains a slash. */
const SITE = "fcm/";

/** Creates the provider for Firebase Cloud Messaging, HTTP v1. `endpoint` is the part before `/v1/projects/…/messages:send`. */
export function createFcm(deps: {
  projectId: string;
  account: ServiceAccount;
  endpoint: string;
  tokenEndpoint: string;
  clock: Clock;
}): Provider {
  const { clock } = deps;
  const url = `${deps.endpoint.replace(/\/+$/, "")}/v1/projects/${encodeURIComponent(deps.projectId)}/messages:send`;
  const tokens = new AccessTokens({ account: deps.account, endpoint: deps.tokenEndpoint, clock });

  const post = async (body: string, signal: AbortSignal): Promise<OutgoingAnswer> => {
    const token = await tokens.get();
    const headers = { authorization: `Bearer ${token}`, "content-type": "application/json" };
    const response = await outgoingCall(url, { method: "POST", headers, body, signal });
    if (response.status === UNAUTHENTICATED) tokens.forget(token);
    return response;
  };

  const bodyOf = createFcmBodies();

  return {
    siteOf: () => SITE,
    async send(target, message, signal) {
      const body = bodyOf(target, message, clock.now());
      try {
        let response = await post(body, signal);
        // The token may have been revoked: try once with a new one.
        if (response.status === UNAUTHENTICATED) {
          response.drop();
          response = await post(body, signal);
        }
        return await resultOf(response, clock.now());
      } catch (cause) {
        if (!(cause instanceof TokenRefused)) throw cause;
        const { status, headers, message: error } = cause;
        return isBusy(status)
          ? { kind: "busy", error, retryAfterMs: retryAfterMs(headers, clock.now()) }
          : { kind: "failed", error };
      }
    },
  };
}

async function resultOf(response: OutgoingAnswer, nowMs: number): Promise<CallResult> {
  if (response.ok) {
    // The body is not needed, but reading it lets the connection be reused.
    await response.read({ maxBytes: ANSWER_MAX_BYTES });
    return { kind: "sent" };
  }
  const whole = await response.whole({ maxBytes: ANSWER_MAX_BYTES }).catch(() => null);
  const answer: unknown = await whole?.json().catch(() => null);
  const problem = isJsonObject(answer) && isJsonObject(answer["error"]) ? answer["error"] : {};
  const code = errorCode(problem);
  const text = typeof problem["message"] === "string" ? problem["message"] : "";
  const error = `FCM answered ${[response.status, code, text].filter((part) => part !== null && part !== "").join(" ")}`;
  // Any other 404 concerns the project or the URL, not the device.
  if (response.status === 404 && code === "UNREGISTERED") return { kind: "unregistered", error };
  if (isBusy(response.status)) return { kind: "busy", error, retryAfterMs: retryAfterMs(response.headers, nowMs) };
  return { kind: "failed", error };
}

/** Returns the FCM error code in the details of the error; null without one. */
function errorCode(problem: JsonObject): string | null {
  const details = Array.isArray(problem["details"]) ? problem["details"] : [];
  for (const detail of details) {
    if (isJsonObject(detail) && typeof detail["errorCode"] === "string") return detail["errorCode"];
  }
  return null;
}

const SCOPE = "https://www.googleapis.com/auth/firebase.messaging";
const GRANT_TYPE = "urn:ietf:params:oauth:grant-type:jwt-bearer";
/** Lifetime of an assertion: the maximum that Google accepts. */
const ASSERTION_SECONDS = 3600;

interface ServiceAccount {
  email: string;
  key: KeyObject;
  /** Id of the account's key; null if the account has none. */
  keyId: string | null;
}

/** Access tokens of a service account, reused until shortly before they expire. Concurrent callers share one request. [PU19] */
class AccessTokens {
  readonly #account: ServiceAccount;
  readonly #endpoint: string;
  readonly #clock: Clock;
  #kept: { token: string; freshUntil: number } | null = null;
  #asking: Promise<string> | null = null;

  constructor(deps: { account: ServiceAccount; endpoint: string; clock: Clock }) {
    this.#account = deps.account;
    this.#endpoint = deps.endpoint;
    this.#clock = deps.clock;
  }

  /** Returns a valid access token. Errors: `TokenRefused`, or those of `outgoingCall`. */
  get(): Promise<string> {
    if (this.#kept !== null && this.#clock.now() < this.#kept.freshUntil) return Promise.resolve(this.#kept.token);
    this.#asking ??= this.#ask().finally(() => {
      this.#asking = null;
    });
    return this.#asking;
  }

  /** Forgets `token`, which has been refused, if it is still the current one. */
  forget(token: string): void {
    if (this.#kept?.token === token) this.#kept = null;
  }

  #assertion(nowSeconds: number): Promise<string> {
    const { email, key, keyId } = this.#account;
    return new SignJWT({ scope: SCOPE })
      .setProtectedHeader({ alg: "RS256", typ: "JWT", ...(keyId === null ? {} : { kid: keyId }) })
      .setIssuer(email)
      .setAudience(this.#endpoint)
      .setIssuedAt(nowSeconds)
      .setExpirationTime(nowSeconds + ASSERTION_SECONDS)
      .sign(key);
  }

  async #ask(): Promise<string> {
    const timeout = new AbortController();
    const cancelTimeout = this.#clock.after(CALL_TIMEOUT_MS, () =>
      timeout.abort(new Error("The token endpoint did not answer")),
    );
    try {
      const askedAt = this.#clock.now();
      const assertion = await this.#assertion(Math.floor(askedAt / SECOND_MS));
      const head = await outgoingCall(this.#endpoint, {
        method: "POST",
        body: new URLSearchParams({ grant_type: GRANT_TYPE, assertion }),
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
      this.#kept = { token, freshUntil: askedAt + Math.max(lifeMs - ACCESS_TOKEN_MARGIN_MS, lifeMs / 2) };
      return token;
    } finally {
      cancelTimeout();
    }
  }
}

/** Error of a token endpoint that answered without a token. */
class TokenRefused extends Error {
  readonly status: number;
  readonly headers: Headers;

  constructor(status: number, headers: Headers, reason: string) {
    super(`The token endpoint answered ${status}${reason === "" ? "" : `: ${reason}`}`);
    this.name = "TokenRefused";
    this.status = status;
    this.headers = headers;
  }
}

const PATH = "push.fcm.serviceAccount";

/**
 * Loads the service account for FCM from the config, or from the file that it names (relative to the working directory). Errors:
 * `ConfigError` if the file cannot be read or is not a service account; no message contains the key. [PU33]
 */
export function loadServiceAccount({ serviceAccount }: NonNullable<PushConfig["fcm"]>): ServiceAccount {
  const account: unknown = typeof serviceAccount === "string" ? readAccount(serviceAccount) : serviceAccount;
  const { client_email: email, private_key: pem, private_key_id: keyId } = isJsonObject(account) ? account : {};
  if (typeof email !== "string" || typeof pem !== "string") {
    throw wrong("must have client_email and private_key, like the file from Google");
  }
  const key = rsaKey(pem);
  if (key === null) throw wrong("must have an RSA key in PEM as its private_key");
  return { email, key, keyId: typeof keyId === "string" ? keyId : null };
}

function readAccount(file: string): unknown {
  let text: string;
  try {
    text = readFileSync(file, "utf8");
  } catch (cause) {
    throw wrong(`cannot be read: ${reasonOf(cause)}`, cause);
  }
  try {
    return JSON.parse(text);
  } catch {
    throw wrong(`is not JSON: ${file}`);
  }
}

const wrong = (message: string, cause?: unknown): ConfigError =>
  new ConfigError("The push credentials cannot be used", [{ path: PATH, message }], cause);
