import { notFound } from "../../../../kernel/errors.ts";
import { newPassword, PASSWORD_MIN_CHARACTERS } from "../../../config/shapes/user-fields.ts";
import type { Principal } from "../../../access/principal.ts";
import type { AuthConfig } from "../../../config/types.ts";
import type { RequestBasics } from "../../../http/exchange/request-context.ts";
import { SMALL_BODY_MAX_BYTES } from "../../../http/limits.ts";
import type { AddressOf } from "../store/address-forms.ts";
import type { Captcha } from "../means/captcha.ts";
import { redirectField } from "../means/redirect.ts";
import type { Caller } from "../store/caller.ts";
import type { Client } from "../sessions/deps.ts";

/** What the endpoints of every topic need. */
export interface EndpointDeps {
  config: AuthConfig;
  captcha: Captcha;
  addressOf: AddressOf;
  /** Counts one request of this network in the rate limit group `auth`. */
  authLimit: (network: string) => void;
  /** The same, and in the group `signup`. */
  signUpLimit: (network: string) => void;
}

/** What the declarations of these endpoints have in common. No scope covers them [AU44], and their bodies are small. */
export const ofUsers = (limit: (network: string) => void) =>
  ({ tag: "Auth", refusesScopedKeys: true, bodyMaxBytes: SMALL_BODY_MAX_BYTES, limit }) as const;

/** The session of a signed-in user. */
export function callerOf({ auth, sessionId, tokenVersion = 0 }: Extract<Principal, { kind: "user" }>): Caller {
  return { userId: auth.id, sessionId, tokenVersion };
}

export function clientOf({ address, request, principal }: RequestBasics & { principal: Principal }): Client {
  return {
    address: address(),
    userAgent: request.headers.get("user-agent"),
    isLimited: principal.kind !== "serviceKey" && principal.kind !== "server",
  };
}

/** The address of a request that a mailed link leads to; null for the server's own. Errors: 400. */
export const redirectOf = ({ config }: EndpointDeps, text: string | null | undefined): URL | null =>
  redirectField(text ?? undefined, config.redirectUrls ?? []);

/** Whether the config has email and password as a way to sign up and in. */
export const hasPasswords = ({ config }: EndpointDeps): boolean => config.emailPassword !== false;

/** Errors: 404 for a way of signing in that the config does not enable. */
export function requireEnabled(isEnabled: boolean, what: string): void {
  if (!isEnabled) throw notFound(`${what} is not enabled`);
}

/** A password that a user chooses, of the length that the config asks for. */
export const chosenPassword = ({ config }: EndpointDeps) =>
  newPassword(config.password?.minLength ?? PASSWORD_MIN_CHARACTERS);
