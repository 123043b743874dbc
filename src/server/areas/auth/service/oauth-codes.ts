import { badField, conflict, unauthorized } from "../../../../kernel/errors.ts";
import type { JsonObject } from "../../../../kernel/json/json.ts";
import { SECOND_MS } from "../../../../kernel/time/duration.ts";
import { OAUTH_CODE_TTL_MS, SECRET_BYTES } from "../limits.ts";
import type { Profile } from "../providers/profile.ts";
import type { AuthDeps, Client, SignInAnswer } from "../sessions/deps.ts";
import { invalidToken } from "../sessions/sign-in.ts";
import { requireRecentProof } from "../sessions/ways-in.ts";
import { identityBySubject, touchIdentity } from "../statements/means.ts";
import { deleteSecret, findSecret, putSecret, type SecretPurpose } from "../statements/secrets.ts";
import type { AccountWrite, Caller } from "../store/account-file.ts";
import { equalsConstantTime } from "../store/sealing.ts";
import { isOfAddress, linkIdentity } from "./credentials.ts";
import type { OAuthProviders } from "./oauth-providers.ts";
import { keepTokensOf, newIdentity, signInVisit } from "./oauth-visits.ts";

// Codes that an app redeems, and ID tokens that an app on a device has got by itself.

type CodePurpose = Extract<SecretPurpose, "oauth-code" | "oauth-link">;

interface Kept {
  provider: string;
  profile: Profile;
  /** SHA-256 of the verifier that redeems the code of a sign-in. */
  challenge?: string;
  /** Session that began the linking of an account. */
  userId?: string;
  sessionId?: string;
}

/** Keeps who has come back from the provider for the app that began, and that knows what the challenge is the hash of. Returns the code. */
export const keepSignInCode = (deps: AuthDeps, kept: Kept & { challenge: string }): Promise<string> =>
  keepCode(deps, "oauth-code", kept);

/** Keeps who has come back from the provider for the session that began to link it. Returns the code. */
export const keepLinkCode = (deps: AuthDeps, kept: Kept & { userId: string; sessionId: string }): Promise<string> =>
  keepCode(deps, "oauth-link", kept);

async function keepCode(deps: AuthDeps, purpose: CodePurpose, kept: Kept): Promise<string> {
  const code = deps.ids.secret(SECRET_BYTES);
  await deps.file.write((write) => {
    putSecret.run(write.tx, {
      hash: deps.sealing.digest(purpose, code),
      purpose,
      userId: null,
      expiresAt: write.now + OAUTH_CODE_TTL_MS,
      payload: { sealed: deps.sealing.seal(JSON.stringify(kept)) },
    });
  });
  return code;
}

/** Returns what a code stands for, which is valid once, whether or not what follows succeeds. Errors: 400. */
async function takeCode(deps: AuthDeps, purpose: CodePurpose, code: string): Promise<Kept> {
  const sealed = await deps.file.write((write) => {
    const hash = deps.sealing.digest(purpose, code);
    const found = findSecret.get(write.tx, { hash, purpose, now: write.now });
    deleteSecret.run(write.tx, { hash });
    return found?.payload["sealed"];
  });
  const text = typeof sealed === "string" ? deps.sealing.unseal(sealed) : null;
  if (text === null) throw badField("code", "invalid_value", "code is wrong, used or expired");
  return JSON.parse(text) as Kept; // Written by `keepCode`.
}

/** Signs in with a code. Errors: 400 for a wrong, used or expired one, or another verifier, which ends it; those of `signInVisit`. */
export async function redeemCode(
  deps: AuthDeps,
  { code, codeVerifier, client }: { code: string; codeVerifier: string; client: Client },
): Promise<SignInAnswer> {
  const { provider, profile, challenge = "" } = await takeCode(deps, "oauth-code", code);
  const given = new Bun.CryptoHasher("sha256").update(codeVerifier).digest("base64url");
  if (!equalsConstantTime(Buffer.from(given), Buffer.from(challenge))) {
    throw badField("codeVerifier", "invalid_value", "codeVerifier is not that of the sign-in");
  }
  return signInVisit(deps, { provider, profile, client });
}

/**
 * Links the identity of a code to the caller's account. Errors: 400 for a wrong, used or expired code, or one of another session;
 * 401 `Sign in again`; 409 if another account has the identity.
 */
export async function redeemLink(
  deps: AuthDeps,
  caller: Caller,
  { provider, code }: { provider: string; code: string },
): Promise<void> {
  const kept = await takeCode(deps, "oauth-link", code);
  const isOwn = kept.userId === caller.userId && kept.sessionId === caller.sessionId;
  if (!isOwn || kept.provider !== provider) {
    throw badField("code", "invalid_value", "code is of another session or provider");
  }
  await deps.file.write((write) => link(deps, write, caller, kept));
}

function link(deps: AuthDeps, write: AccountWrite, caller: Caller, { provider, profile }: Kept): void {
  const account = requireRecentProof(write.tx, caller, deps.config, write.now);
  const present = identityBySubject.get(write.tx, { provider, subject: profile.subject });
  if (present === null) {
    linkIdentity(write, caller.userId, newIdentity(deps, provider, profile));
    return;
  }
  if (present.userId !== caller.userId) throw conflict("Another account signs in with this identity");
  const emailVerified = present.emailVerified || isOfAddress(profile, account);
  touchIdentity.run(write.tx, { id: present.id, email: profile.email, lastSignInAt: write.now, emailVerified });
  keepTokensOf(deps, write, present.id, profile);
}

interface GivenToken {
  provider: string;
  idToken: string;
  nonce: string | null;
  displayName: string | null;
  metadata: JsonObject;
  client: Client;
}

/**
 * Signs in with an ID token, which is valid once. Its nonce is the given one, or its SHA-256 in hex, as Apple's devices send it.
 * Errors: 404 for an undeclared provider, 401 for a token that is refused, those of `signInVisit`.
 */
export async function signInByToken(
  deps: AuthDeps,
  providers: OAuthProviders,
  { provider, idToken, nonce, displayName, metadata, client }: GivenToken,
): Promise<SignInAnswer> {
  const { tokenProfile } = await providers.named(provider);
  if (tokenProfile === null) throw unauthorized(`The provider "${provider}" has no ID tokens`);
  const found = await tokenProfile(idToken).catch((cause: unknown) => {
    const reason = cause instanceof Error ? cause.message : "no error was given";
    deps.logger.warn("An ID token was refused", { provider, reason });
    throw invalidToken();
  });
  if (!isSameNonce(found.nonce, nonce)) throw invalidToken();
  await deps.file.write((write) => {
    // Without the signature, which can be written in several ways.
    const hash = deps.sealing.digest("oauth-id-token", idToken.slice(0, idToken.lastIndexOf(".")));
    if (findSecret.get(write.tx, { hash, purpose: "oauth-id-token", now: write.now }) !== null) throw invalidToken();
    const expiresAt = found.expiresAt * SECOND_MS + ID_TOKEN_TOLERANCE_MS;
    putSecret.run(write.tx, { hash, purpose: "oauth-id-token", userId: null, expiresAt, payload: {} });
  });
  const profile = { ...found.profile, name: displayName ?? found.profile.name };
  return signInVisit(deps, { provider, profile, client, metadata });
}

/** Time for which a token is remembered after its end: longer than clocks differ. */
const ID_TOKEN_TOLERANCE_MS = 60 * SECOND_MS;

function isSameNonce(claimed: string | null, given: string | null): boolean {
  if (claimed === null || given === null) return claimed === given;
  const hashed = new Bun.CryptoHasher("sha256").update(given).digest("hex");
  return claimed === given || claimed === hashed;
}
