import type { Millis } from "../../../../kernel/clock.ts";
import { type AppError, conflict, forbidden, unauthorized, unreachable } from "../../../../kernel/errors.ts";
import type { JsonObject } from "../../../../kernel/json/json.ts";
import { clientNetwork } from "../../../../kernel/network/addresses.ts";
import { SECOND_MS } from "../../../../kernel/time/duration.ts";
import type { Account } from "../../../access/accounts.ts";
import type { MfaRequired, Tokens } from "../../../config/shapes/sign-in.ts";
import type { AuthConfig } from "../../../config/types.ts";
import {
  MFA_TICKET_TTL_MS,
  PAGE_CODE_TTL_MS,
  REFRESH_TOKEN_TTL_SECONDS,
  SECRET_BYTES,
  SESSIONS_ENDED_AT_ONCE_MAX,
  SESSIONS_PER_USER_MAX,
  SIGN_IN_ADDRESS_FACTOR,
  USER_AGENT_MAX_CHARACTERS,
} from "../limits.ts";
import type { GuessKey } from "../means/guesses.ts";
import { factorsOfUser } from "../statements/means.ts";
import { deletePlainInvitations, putSecret } from "../statements/secrets.ts";
import {
  countSessions,
  deleteLeastUsedSessions,
  deleteOldestSessions,
  deleteSession,
  insertSession,
  renewSession,
  sessionById,
  touchSession,
} from "../statements/sessions.ts";
import { markSignedIn } from "../statements/users.ts";
import { type AccountWrite, accountDisabled, type Caller } from "../store/account-file.ts";
import { type AuthDeps, type Client, type CodeFor, ownUser, type SignInAnswer } from "./deps.ts";
import { emailNotVerified, isUnproved, remind } from "./verification.ts";

export interface OpenSession {
  account: Account;
  sessionId: string;
  /** The generation of its refresh token. */
  generation: number;
  /** The version of its access tokens. */
  tokenVersion: number;
}

/** The result of a sign-in, inside the write that decided it. */
export type SignIn =
  | { kind: "session"; session: OpenSession }
  /** The address has to be proved first. */
  | { kind: "unverified"; account: Account }
  | { kind: "mfa"; ticket: string; factors: MfaRequired["factors"] }
  | { kind: "code"; code: string };

export const refreshTtlMsOf = ({ session }: AuthConfig): number =>
  (session?.refreshTokenTtl ?? REFRESH_TOKEN_TTL_SECONDS) * SECOND_MS;

/** The browser of a client, as a session keeps it. */
export const userAgentOf = ({ userAgent }: Client): string | null =>
  userAgent?.slice(0, USER_AGENT_MAX_CHARACTERS) ?? null;

/**
 * Takes the last step of every way of signing in: a session, or a ticket for a user with a verified factor unless the factor was
 * `given`. `by`: a phone that has signed in is no second factor of the same sign-in. `pending` is for `linkPending`, once that factor is
 * given; `invitation`: see `openSession`. Errors: 403 if disabled, or without another factor than the phone.
 */
export function completeSignIn(
  deps: AuthDeps,
  write: AccountWrite,
  {
    account,
    client,
    secondFactor = "required",
    by = "other",
    pending = {},
    invitation = null,
  }: {
    account: Account;
    client: Client;
    secondFactor?: "required" | "given";
    by?: "phone" | "other";
    pending?: JsonObject;
    invitation?: JsonObject | null;
  },
): SignIn {
  if (account.disabled) throw accountDisabled();
  if (isUnproved(deps.config, account)) return { kind: "unverified", account };
  const verified = factorsOfUser.all(write.tx, { userId: account.id }).filter((factor) => factor.verified);
  if (verified.length === 0 || secondFactor === "given") {
    return begin(deps, write, account, client, invitation);
  }
  const factors = by === "phone" ? verified.filter(({ type }) => type !== "phone") : verified;
  if (factors.length === 0) throw forbidden("The phone is the second factor: sign in in another way");
  const ticket = deps.ids.secret(SECRET_BYTES);
  putSecret.run(write.tx, {
    hash: deps.sealing.digest("mfa-ticket", ticket),
    purpose: "mfa-ticket",
    userId: account.id,
    payload: { ...pending, by },
    expiresAt: write.now + MFA_TICKET_TTL_MS,
  });
  return { kind: "mfa", ticket, factors: factors.map(({ id, type }) => ({ id, type })) };
}

/**
 * Begins a session, or, where the pages sign in for an application, makes the code with which it begins one. `invitation`: the data of
 * the one that began it. Errors: those of `openSession`.
 */
export function begin(
  deps: AuthDeps,
  write: AccountWrite,
  account: Account,
  client: Client,
  invitation: JsonObject | null = null,
): SignIn {
  const { codeFor } = client;
  if (codeFor === undefined) {
    return { kind: "session", session: openSession(deps, write, account, client, { invitation }) };
  }
  requireReady(deps, account);
  const kept = { userId: account.id, provedAt: write.now, invitation, ...codeFor };
  return { kind: "code", code: keepPageCode(deps, write, kept) };
}

/** A user who has signed in at the pages. */
export interface PageSignIn extends CodeFor {
  userId: string;
  provedAt: Millis;
  /** The data of the invitation that was accepted; null: none. */
  invitation: JsonObject | null;
  /** Changes that an anonymous user gets when the code is redeemed. */
  link?: { email: string; passwordHash: string };
}

/** Keeps for a minute who has signed in at the pages. Returns the code that begins the session. [AU340] */
export function keepPageCode(deps: AuthDeps, write: AccountWrite, { userId, ...kept }: PageSignIn): string {
  const code = deps.ids.secret(SECRET_BYTES);
  putSecret.run(write.tx, {
    hash: deps.sealing.digest("page-code", code),
    purpose: "page-code",
    userId,
    payload: JSON.parse(JSON.stringify(kept)),
    expiresAt: write.now + PAGE_CODE_TTL_MS,
  });
  return code;
}

/** Errors: 403 if disabled, or if the address has to be proved first. */
function requireReady({ config }: AuthDeps, account: Account): void {
  if (account.disabled) throw accountDisabled();
  if (isUnproved(config, account)) throw emailNotVerified();
}

/**
 * Opens a session: for sign-up, and after the factor. `invitation`: the data of the one that began it. `provedAt`: when the user proved
 * who they are, now by default. Errors: 403 if disabled, or if the address has to be proved first.
 */
export function openSession(
  deps: AuthDeps,
  write: AccountWrite,
  account: Account,
  client: Client,
  { invitation = null, provedAt = write.now }: { invitation?: JsonObject | null; provedAt?: Millis } = {},
): OpenSession {
  requireReady(deps, account);
  makeRoom(deps.config, write, account.id);
  if (!account.hasSignedIn) {
    markSignedIn.run(write.tx, { id: account.id });
    // Who has signed in already must not be signed in by whoever finds the mail days later.
    deletePlainInvitations.run(write.tx, { userId: account.id });
  }
  const sessionId = deps.ids.uuid();
  insertSession.run(write.tx, {
    id: sessionId,
    userId: account.id,
    createdAt: write.now,
    lastUsedAt: write.now,
    expiresAt: write.now + refreshTtlMsOf(deps.config),
    ip: client.address,
    userAgent: userAgentOf(client),
    provedAt,
    invitation,
  });
  write.auditByUser(account.id, "signin");
  return { account, sessionId, generation: 0, tokenVersion: 0 };
}

/** Makes room for one more: the oldest ends where the config says how many, else the one that was used longest ago. */
function makeRoom({ session }: AuthConfig, write: AccountWrite, userId: string): void {
  const maxActive = session?.maxActive ?? 0;
  const isLower = maxActive > 0 && maxActive < SESSIONS_PER_USER_MAX;
  const present = countSessions.get(write.tx, { userId })?.count ?? 0;
  const surplus = present + 1 - (isLower ? maxActive : SESSIONS_PER_USER_MAX);
  if (surplus <= 0) return;
  const limit = Math.min(surplus, SESSIONS_ENDED_AT_ONCE_MAX);
  const removal = isLower ? deleteOldestSessions : deleteLeastUsedSessions;
  write.ended(removal.all(write.tx, { userId, limit }).map(({ id }) => id));
}

/**
 * Gives the caller's session new tokens after a password was set: the earlier refresh token has no grace, and with
 * `accessTokens: "end"` earlier access tokens become invalid. Errors: 401 if the session has ended meanwhile, 403 if the
 * address has to be proved first.
 */
export function renewTokens(
  { config }: AuthDeps,
  write: AccountWrite,
  { account, caller, accessTokens }: { account: Account; caller: Caller; accessTokens: "end" | "stay" },
): OpenSession {
  const session = sessionById.get(write.tx, { id: caller.sessionId });
  if (session === null) throw unauthorized("Invalid token");
  if (isUnproved(config, account)) throw emailNotVerified();
  const generation = session.generation + 1;
  const expiresAt = write.now + refreshTtlMsOf(config);
  touchSession.run(write.tx, { ...session, generation, rotations: [], lastUsedAt: write.now, expiresAt });
  write.extended(session.id, expiresAt);
  const tokenVersion = session.tokenVersion + (accessTokens === "end" ? 1 : 0);
  renewSession.run(write.tx, { id: session.id, provedAt: write.now, tokenVersion });
  if (accessTokens === "end") write.renewed(session.id, tokenVersion);
  return { account, sessionId: session.id, generation, tokenVersion };
}

/** Returns the tokens of a session that goes on. Errors: those of `auth.tokens.claims`. */
export const renewedTokens = async (
  { tokens }: AuthDeps,
  { account, sessionId, generation, tokenVersion }: OpenSession,
): Promise<Tokens> => ({
  user: ownUser(account),
  accessToken: await tokens.access(account, sessionId, tokenVersion),
  refreshToken: tokens.refresh({ sessionId, generation }),
});

/** Returns the tokens of a session that has just begun. Errors: those of `auth.tokens.claims`; the session is over then. */
export async function tokensOf(deps: AuthDeps, session: OpenSession): Promise<Tokens> {
  try {
    return await renewedTokens(deps, session);
  } catch (cause) {
    await deps.file.write((write) => {
      deleteSession.run(write.tx, { id: session.sessionId });
      write.ended([session.sessionId]);
    });
    throw cause;
  }
}

/**
 * Returns the answer to a sign-in. For an account whose address has to be proved first it mails the link again, to `redirect`.
 * Errors: then 403 `Email not verified`, or `Email required` if there is no address.
 */
export async function answerSignIn(deps: AuthDeps, signIn: SignIn, redirect: URL | null = null): Promise<SignInAnswer> {
  switch (signIn.kind) {
    case "session":
      return tokensOf(deps, signIn.session);
    case "mfa":
      return { mfaRequired: true, mfaTicket: signIn.ticket, factors: signIn.factors };
    case "code":
      return { pageCode: signIn.code };
    case "unverified":
      throw await remind(deps, signIn.account, redirect);
    default:
      return unreachable(signIn);
  }
}

/** The secret that is guessed at: `password` and `email-otp` of an address, `phone-otp` of a number, `phone-change` of a user, `confirmation` of a password by a user who is signed in. */
export type GuessUse = "password" | "confirmation" | "email-otp" | "phone-otp" | "phone-change";

/**
 * Returns the keys that a guess counts against: for what it guesses at, so that wrong mailed codes, or passwords that are confirmed
 * with a stolen token, do not keep the owner from signing in; and for the client's network, whatever it guesses at.
 */
export function guessKeys({ signInLimit: limit }: AuthDeps, use: GuessUse, owner: string, client: Client): GuessKey[] {
  if (!client.isLimited) return [];
  const perAddress = { requests: SIGN_IN_ADDRESS_FACTOR * limit.requests, window: limit.window };
  return [
    { key: `${use}:${owner}`, limit },
    { key: `address:${clientNetwork(client.address)}`, limit: perAddress },
  ];
}

export const invalidToken = () => unauthorized("Invalid token");

/** 409 for an email that another account has. */
export function emailTaken(): AppError {
  const message = "This email address already has an account";
  return conflict(message, { email: { code: "not_unique", message } });
}
