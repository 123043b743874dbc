import { decodeJwt, errors, type JWTPayload, jwtVerify } from "jose";
import { AppError } from "../../../../kernel/errors.ts";
import { frozenJson } from "../../../../kernel/json/frozen.ts";
import { createSparingWarnings } from "../../../../kernel/observing/sparing-warnings.ts";
import { SECOND_MS } from "../../../../kernel/time/duration.ts";
import { CLOCK_SKEW_MS } from "../../../access/limits.ts";
import type { AccessClaims, TokenIssuers } from "../../../access/tokens.ts";
import type { IssuerConfig } from "../../../config/types.ts";
import { ISSUER_KEYS_PAUSE_MS, ISSUER_SKEW_SECONDS, ISSUER_WARNING_PAUSE_MS } from "../limits.ts";
import { createIssuerKeys } from "../providers/issuer-keys.ts";
import { isSet, type Profile, profileOf } from "../providers/profile.ts";
import type { AuthDeps } from "../sessions/deps.ts";
import { invalidToken } from "../sessions/sign-in.ts";
import { emailNotVerified, isUnproved, requireSignUp } from "../sessions/verification.ts";
import { factorsOfUser, type Identity, identityBySubject, touchIdentity } from "../statements/means.ts";
import { insertSession, sessionById, touchSession } from "../statements/sessions.ts";
import { type SecretAccount, userByEmail, userById } from "../statements/users.ts";
import type { AccountWrite } from "../store/account-file.ts";
import { isOfAddress, linkIdentity } from "./credentials.ts";
import { shownOf } from "./oauth-visits.ts";

// Tokens of others as access tokens. A user of an issuer is an identity here, like one of a provider. Its session has its id, and ends
// with the last of its tokens; when it ends earlier, the tokens that were issued before are refused.

/** Algorithms with a public key: a shared secret could sign for everybody who verifies. */
const ALGORITHMS = ["RS256", "ES256", "EdDSA", "Ed25519"];

interface Issued {
  name: string;
  link: boolean;
  profile: Profile;
  issuedAtMs: number;
  expiresAtMs: number;
  validFromMs: number;
}

/** Returns the part that verifies tokens of these issuers. */
export function createIssuers(deps: AuthDeps, configs: readonly IssuerConfig[]): TokenIssuers {
  const byIssuer = new Map(configs.map((config) => [config.issuer, verifierOf(deps, config)]));
  return {
    verify(token) {
      const read = byIssuer.get(issuerOf(token));
      return read === undefined ? null : read(token).then((issued) => claimsOf(deps, issued));
    },
  };
}

/** Returns the issuer that a token names, which nothing has verified yet; empty for none. */
function issuerOf(token: string): string {
  try {
    return decodeJwt(token).iss ?? "";
  } catch {
    return "";
  }
}

/** Returns what verifies a token of one issuer. Errors: 401; 503 where its keys cannot be read. */
function verifierOf(deps: AuthDeps, config: IssuerConfig): (token: string) => Promise<Issued> {
  const { clock } = deps;
  const { name, issuer, audience, authorizedParties, link = false } = config;
  const keys = createIssuerKeys(config, clock);
  // Anybody can send tokens, as many as they like.
  const warnOfKeys = createSparingWarnings(deps, "auth: the keys of an issuer cannot be read", ISSUER_WARNING_PAUSE_MS);
  const warnOfToken = createSparingWarnings(deps, "auth: a token of an issuer was refused", ISSUER_WARNING_PAUSE_MS);
  const unavailable = (cause: unknown): AppError => {
    warnOfKeys({ issuer: name, cause });
    const seconds = Math.ceil(ISSUER_KEYS_PAUSE_MS / SECOND_MS);
    const message = `The keys of the issuer "${name}" cannot be read`;
    return new AppError(503, message, { headers: { "retry-after": String(seconds) } });
  };
  const refused = (cause: unknown): AppError => {
    // Without the error's other members, which have what the token says of its user.
    warnOfToken({ issuer: name, reason: cause instanceof Error ? cause.message : String(cause) });
    return invalidToken();
  };
  return async (token) => {
    const getKey = await keys().catch((cause: unknown) => {
      throw unavailable(cause);
    });
    const { payload } = await jwtVerify(token, getKey, {
      issuer,
      ...(audience === undefined ? {} : { audience: [audience].flat() }),
      algorithms: ALGORITHMS,
      requiredClaims: ["sub", "iat", "exp"],
      clockTolerance: ISSUER_SKEW_SECONDS,
      currentDate: new Date(clock.now()),
    }).catch((cause: unknown) => {
      throw isOfToken(cause) ? refused(cause) : unavailable(cause);
    });
    const { azp } = payload;
    if (authorizedParties !== undefined && (typeof azp !== "string" || !authorizedParties.includes(azp))) {
      throw refused("azp is none of authorizedParties");
    }
    try {
      return { name, link, ...timesOf(payload), profile: profileFrom(config, payload) };
    } catch (cause) {
      throw refused(cause);
    }
  };
}

/** Whether a token is at fault, and not the answer of its issuer. */
const isOfToken = (cause: unknown): boolean =>
  cause instanceof errors.JWTClaimValidationFailed ||
  cause instanceof errors.JWTExpired ||
  cause instanceof errors.JWTInvalid ||
  cause instanceof errors.JWSInvalid ||
  cause instanceof errors.JWSSignatureVerificationFailed ||
  cause instanceof errors.JWKSNoMatchingKey ||
  cause instanceof errors.JWKSMultipleMatchingKeys ||
  cause instanceof errors.JOSEAlgNotAllowed ||
  cause instanceof errors.JOSENotSupported;

function timesOf({
  iat = 0,
  exp = 0,
  nbf = 0,
}: JWTPayload): Pick<Issued, "issuedAtMs" | "expiresAtMs" | "validFromMs"> {
  const validFromMs = Math.max(nbf * SECOND_MS - CLOCK_SKEW_MS, iat * SECOND_MS - CLOCK_SKEW_MS);
  return { issuedAtMs: iat * SECOND_MS, expiresAtMs: exp * SECOND_MS, validFromMs };
}

/** Reads who the user is. Errors: those of `profileOf` and of the config's `profile`. */
function profileFrom({ profile }: IssuerConfig, payload: JWTPayload): Profile {
  const { sub: id } = payload;
  if (profile === undefined) {
    const { email, email_verified: emailVerified, name, picture } = payload;
    return profileOf({ id, email, emailVerified: isSet(emailVerified), name, picture });
  }
  const { email, emailVerified, name, avatarUrl } = profile(structuredClone(payload));
  return profileOf({ id, email, emailVerified: emailVerified === true, name, picture: avatarUrl });
}

/** Returns the claims of a token that is verified. Errors: 401; 403 `Sign-up is closed` or `Email not verified`. */
async function claimsOf(deps: AuthDeps, issued: Issued): Promise<AccessClaims> {
  return (await deps.file.write((write) => entered(deps, write, issued))) ?? (await become(deps, issued));
}

/** Enters the user of a token. Returns null if nobody has the identity or its address. */
function entered(deps: AuthDeps, write: AccountWrite, issued: Issued): AccessClaims | null {
  const provider = providerOf(issued);
  const { subject, email, emailVerified } = issued.profile;
  const known = identityBySubject.get(write.tx, { provider, subject });
  if (known === null) {
    const owner = email === null ? null : userByEmail.get(write.tx, { email });
    if (owner === null) return null;
    // The address alone does not enter an account: the issuer and this server must have proved it, and the config must say so.
    const mayJoin = issued.link && emailVerified && owner.emailVerified;
    if (!mayJoin) throw invalidToken();
    requireEnterable(deps, write, owner);
    return joined(deps, write, owner, issued);
  }
  // Tokens have seconds: one of the second in which they were revoked was issued before.
  if (issued.issuedAtMs <= known.validFrom) throw invalidToken();
  const account = userById.get(write.tx, { id: known.userId });
  if (account === null) throw new Error(`identity ${known.id} has no user`);
  requireEnterable(deps, write, account);
  const isVerified = known.emailVerified || isOfAddress(issued.profile, account);
  touchIdentity.run(write.tx, { id: known.id, email, lastSignInAt: write.now, emailVerified: isVerified });
  return opened(write, account, known, issued);
}

const providerOf = ({ name }: Issued): string => `issuer:${name}`;

/** Errors: 401 for a disabled account, and one with a second factor, which the token does not prove; 403 `Email not verified`. */
function requireEnterable({ config }: AuthDeps, write: AccountWrite, account: SecretAccount): void {
  if (account.disabled) throw invalidToken();
  if (factorsOfUser.all(write.tx, { userId: account.id }).some(({ verified }) => verified)) throw invalidToken();
  if (isUnproved(config, account)) throw emailNotVerified();
}

function joined(deps: AuthDeps, write: AccountWrite, account: SecretAccount, issued: Issued): AccessClaims {
  const provider = providerOf(issued);
  const { subject, email, emailVerified } = issued.profile;
  linkIdentity(write, account.id, { id: deps.ids.uuid(), provider, subject, email, emailVerified });
  const identity = identityBySubject.get(write.tx, { provider, subject });
  if (identity === null) throw new Error("an identity that was linked is not there");
  return opened(write, account, identity, issued);
}

/** Opens the session of an identity, or lets it last as long as this token. */
function opened(
  write: AccountWrite,
  account: SecretAccount,
  { id }: Identity,
  { expiresAtMs, validFromMs }: Issued,
): AccessClaims {
  const { id: userId, role, email, isAnonymous, customClaims } = account;
  const present = sessionById.get(write.tx, { id });
  if (present === null) {
    // Nothing has been proved here, now: what asks for a recent sign-in is refused.
    const times = { createdAt: write.now, lastUsedAt: write.now, expiresAt: expiresAtMs, provedAt: 0 };
    insertSession.run(write.tx, { id, userId, ...times, ip: null, userAgent: null, invitation: null });
    write.auditByUser(userId, "signin");
  } else {
    const expiresAt = Math.max(present.expiresAt, expiresAtMs);
    touchSession.run(write.tx, { ...present, lastUsedAt: write.now, expiresAt });
    write.extended(id, expiresAt);
  }
  const version = present?.tokenVersion ?? 0;
  const custom = frozenJson(structuredClone(customClaims));
  return { userId, sessionId: id, role, email, isAnonymous, custom, version, expiresAtMs, validFromMs };
}

/** Makes an account for the user of a token. Errors: 403 `Sign-up is closed`, or `Email not verified`. */
async function become(deps: AuthDeps, issued: Issued): Promise<AccessClaims> {
  const { email, emailVerified } = issued.profile;
  const { displayName, avatarUrl } = shownOf(issued.profile);
  const facts = { method: "issuer", provider: issued.name, email, emailVerified, displayName, metadata: {} } as const;
  await requireSignUp(deps, facts);
  return deps.file.write((write) => {
    // Another request with a token of the user may have been faster.
    const present = entered(deps, write, issued);
    if (present !== null) return present;
    const values = { id: deps.ids.uuid(), email, emailVerified, displayName, avatarUrl, hasSignedIn: true };
    const account = write.insert(values);
    requireEnterable(deps, write, account);
    return joined(deps, write, account, issued);
  });
}
