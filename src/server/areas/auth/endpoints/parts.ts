import { type Static, Type } from "typebox";
import { badField, notFound } from "../../../../kernel/errors.ts";
import { optional } from "../../../../kernel/schema/types.ts";
import type { Principal } from "../../../access/principal.ts";
import { MfaRequired, Pending, Tokens } from "../../../config/shapes/sign-in.ts";
import { languageOf, newPassword, PASSWORD_MIN_CHARACTERS } from "../../../config/shapes/user-fields.ts";
import type { RequestBasics } from "../../../http/exchange/request-context.ts";
import { SMALL_BODY_MAX_BYTES } from "../../../http/limits.ts";
import {
  CAPTCHA_TOKEN_MAX_CHARACTERS,
  RECOVERY_CODE_COUNT,
  SECRET_TEXT_MAX_CHARACTERS,
  TOKEN_TEXT_MAX_CHARACTERS,
} from "../limits.ts";
import type { Captcha } from "../means/captcha.ts";
import { redirectField } from "../means/redirect.ts";
import type { OAuthProviders } from "../service/oauth-providers.ts";
import { confirmPassword } from "../service/passwords.ts";
import type { AuthDeps, Client, CodeFor } from "../sessions/deps.ts";
import type { Caller } from "../store/account-file.ts";

const ACCEPT_LANGUAGE_MAX_CHARACTERS = 512;
const LANGUAGES_READ_MAX = 10;

// What several endpoints need, take or answer.

/** The parts that all endpoints need. */
export interface EndpointDeps extends AuthDeps {
  captcha: Captcha;
  providers: OAuthProviders;
  /** Counts one request of this network in the rate limit group `auth`. */
  authLimit: (network: string) => void;
  /** Counts it in the groups `auth` and `signup`. */
  signUpLimit: (network: string) => void;
}

/** Members that the declarations of these endpoints have in common. No scope covers them [AU44], and their bodies are small. */
export const ofUsers = (limit: (network: string) => void) =>
  ({ tag: "Auth", place: "core", refusesScopedKeys: true, bodyMaxBytes: SMALL_BODY_MAX_BYTES, limit }) as const;

/** Returns the session of a signed-in user. */
export function callerOf({ auth, sessionId, tokenVersion = 0 }: Extract<Principal, { kind: "user" }>): Caller {
  return { userId: auth.id, sessionId, tokenVersion };
}

export function clientOf({ address, request, principal }: RequestBasics & { principal: Principal }): Client {
  const codeFor = codesFor.get(request);
  return {
    address: address(),
    userAgent: request.headers.get("user-agent"),
    language: acceptedLanguage(request.headers.get("accept-language")),
    isLimited: principal.kind !== "serviceKey" && principal.kind !== "server",
    ...(codeFor === undefined ? {} : { codeFor }),
  };
}

/** Returns the language that a client likes most, of the first ten; null: none. */
export function acceptedLanguage(header: string | null): string | null {
  let best: { tag: string; quality: number } | null = null;
  for (const part of (header ?? "").slice(0, ACCEPT_LANGUAGE_MAX_CHARACTERS).split(",", LANGUAGES_READ_MAX)) {
    const [tag = "", weight = "q=1"] = part.split(";").map((text) => text.trim());
    const quality = Number(/^q=([01](?:\.\d{0,3})?)$/i.exec(weight)?.[1] ?? 0);
    const language = tag === "*" ? null : languageOf(tag);
    if (language !== null && quality > (best?.quality ?? 0)) best = { tag: language, quality };
  }
  return best?.tag ?? null;
}

/** Requests of the pages that sign in for an application. No header says so: nobody else can ask for a code. */
export const codesFor = new WeakMap<Request, CodeFor>();

/** Returns the address of a request that a mailed link leads to; null for the server's own. Errors: 400. */
export const redirectOf = ({ config }: EndpointDeps, text: string | null | undefined): URL | null =>
  redirectField(text, config);

/** Whether the config has email and password as a way to sign up and in. */
export const hasPasswords = ({ config }: EndpointDeps): boolean => config.emailPassword !== false;

/** Errors: 404 for a way of signing in that the config does not enable. */
export function requireEnabled(isEnabled: boolean, what: string): void {
  if (!isEnabled) throw notFound(`${what} is not enabled`);
}

/** A password that a user chooses, of the length that the config asks for. */
export const chosenPassword = ({ config }: EndpointDeps) =>
  newPassword(config.password?.minLength ?? PASSWORD_MIN_CHARACTERS);

export const Ok = Type.Object({ ok: Type.Literal(true) }, { description: "Done" });

/** Recovery codes of a new factor. */
export const RecoveryCodes = Type.Array(Type.String(), {
  minItems: RECOVERY_CODE_COUNT,
  maxItems: RECOVERY_CODE_COUNT,
});

/** The proof that removes a factor. */
export const FactorProof = Type.Object({
  code: optional(Type.String({ maxLength: TOKEN_TEXT_MAX_CHARACTERS })),
  password: optional(Type.String({ maxLength: SECRET_TEXT_MAX_CHARACTERS })),
});

/** Returns the code, or that the password is right. Errors: 400 without either, 401 for a wrong password, 429. */
export async function proofOf(
  deps: EndpointDeps,
  caller: Caller,
  client: Client,
  { code, password }: Static<typeof FactorProof>,
): Promise<{ code: string } | "confirmed"> {
  if (typeof code === "string") return { code };
  if (typeof password !== "string") throw badField("code", "required", "code or password is required");
  await confirmPassword(deps, caller, client, password);
  return "confirmed";
}

export const tokensAnswer = (description: string) => Type.Object(Tokens.properties, { description });

/** Tokens, or what there is instead of them until the address is verified. */
export const tokensOrPending = (description: string) => Type.Union([Tokens, Pending], { description });

export const SignedIn = Type.Union([Tokens, MfaRequired], {
  description: "Tokens, or a ticket for the second factor",
});

/** A password or token to be checked: longer ones are refused without a look at them. */
export const Secret = Type.String({ minLength: 1, maxLength: SECRET_TEXT_MAX_CHARACTERS });
/** A mailed token or code, a ticket, or an id. */
export const Token = Type.String({ minLength: 1, maxLength: TOKEN_TEXT_MAX_CHARACTERS });
/** The token of the CAPTCHA that `auth.captcha` declares; ignored without one. */
export const CaptchaToken = optional(
  Type.String({ maxLength: CAPTCHA_TOKEN_MAX_CHARACTERS, description: "Required if `auth.captcha` is declared" }),
);
