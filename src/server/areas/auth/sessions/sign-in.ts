import { type AppError, conflict, unauthorized } from "../../../../kernel/errors.ts";
import type { JsonObject } from "../../../../kernel/json/json.ts";
import { clientNetwork } from "../../../../kernel/network/client-network.ts";
import { SECOND_MS } from "../../../../kernel/time/duration.ts";
import type { Account } from "../../../access/accounts.ts";
import type { MfaRequired, Tokens } from "../../../config/shapes/sign-in.ts";
import type { RateLimit } from "../../../config/types.ts";
import { type AccountWrite, accountDisabled } from "../store/account-file.ts";
import {
  MFA_TICKET_TTL_MS,
  REFRESH_TOKEN_TTL_SECONDS,
  SECRET_BYTES,
  SESSIONS_ENDED_AT_ONCE_MAX,
  SESSIONS_PER_USER_MAX,
  SIGN_IN_ADDRESS_FACTOR,
  USER_AGENT_MAX_CHARACTERS,
} from "../limits.ts";
import type { GuessKey } from "../means/guesses.ts";
import { emailNotVerified, type Verification } from "./verification.ts";
import { factorsOfUser } from "../statements/factors.ts";
import { deleteSecretsFor, putSecret } from "../statements/secrets.ts";
import {
  countSessions,
  deleteLeastUsedSessions,
  deleteOldestSessions,
  insertSession,
  renewSession,
  sessionById,
  touchSession,
} from "../statements/sessions.ts";
import { markSignedIn } from "../statements/users.ts";
import { type AuthDeps, type Client, ownUser, type SignInAnswer } from "./deps.ts";
import type { Caller } from "../store/caller.ts";

export interface OpenSession {
  account: Account;
  sessionId: string;
  /** Of its refresh token. */
  generation: number;
  /** Of its access tokens. */
  tokenVersion: number;
}

/** What a sign-in has led to, inside the write that decided it. */
export type SignIn =
  | { kind: "session"; session: OpenSession }
  /** The address has to be proved first. */
  | { kind: "unverified"; account: Account }
  | { kind: "mfa"; ticket: string; factors: MfaRequired["factors"] };

/** What is guessed at: `password` and `email-otp` of an address, `confirmation` of a password by a user who is signed in. */
export type GuessUse = "password" | "confirmation" | "email-otp";

export interface SignIns {
  /**
   * The last step of every way of signing in: a session, or a ticket for a user with a verified factor unless the factor was
   * `given`. `pending` is for `linkPending`, once that factor is given. Errors: 403 if disabled.
   */
  complete(
    write: AccountWrite,
    account: Account,
    client: Client,
    options?: { secondFactor?: "required" | "given"; pending?: JsonObject },
  ): SignIn;
  /** For sign-up, and after the factor. Errors: 403 if disabled, or if the address has to be proved first. */
  open(write: AccountWrite, account: Account, client: Client): OpenSession;
  /**
   * Gives the caller's session new tokens after a password was set: the earlier refresh token has no grace, and with
   * `accessTokens: "end"` earlier access tokens become invalid. Errors: 401 if the session has ended meanwhile, 403 if the
   * address has to be proved first.
   */
  renew(write: AccountWrite, account: Account, caller: Caller, options: { accessTokens: "end" | "stay" }): OpenSession;
  /**
   * For an account whose address has to be proved first, mails the link again, to `redirect`. Errors: then 403 `Email not
   * verified`, or `Email required` if there is no address.
   */
  answer(signIn: SignIn, redirect?: URL | null): Promise<SignInAnswer>;
  tokens(session: OpenSession): Promise<Tokens>;
  /**
   * The keys that a guess counts against: for what it guesses at, so that wrong mailed codes, or passwords that are confirmed
   * with a stolen token, do not keep the owner from signing in; and for the client's network, whatever it guesses at.
   */
  guessKeys(use: GuessUse, owner: string, client: Client): GuessKey[];
  refreshTtlMs: number;
}

export function createSignIns(deps: AuthDeps, verification: Verification): SignIns {
  const refreshTtlMs = (deps.config.session?.refreshTokenTtl ?? REFRESH_TOKEN_TTL_SECONDS) * SECOND_MS;
  const maxActive = deps.config.session?.maxActive ?? 0;

  /** For one more: the oldest where the config says how many, else the one that was used longest ago. */
  const makeRoom = (write: AccountWrite, userId: string): void => {
    const isLower = maxActive > 0 && maxActive < SESSIONS_PER_USER_MAX;
    const present = countSessions.get(write.tx, { userId })?.count ?? 0;
    const surplus = present + 1 - (isLower ? maxActive : SESSIONS_PER_USER_MAX);
    if (surplus <= 0) return;
    const limit = Math.min(surplus, SESSIONS_ENDED_AT_ONCE_MAX);
    const removal = isLower ? deleteOldestSessions : deleteLeastUsedSessions;
    write.ended(removal.all(write.tx, { userId, limit }).map(({ id }) => id));
  };

  const open: SignIns["open"] = (write, account, client) => {
    if (account.disabled) throw accountDisabled();
    if (verification.isMissing(account)) throw emailNotVerified();
    makeRoom(write, account.id);
    if (!account.hasSignedIn) {
      markSignedIn.run(write.tx, { id: account.id });
      // Who has signed in already must not be signed in by whoever finds the mail days later.
      deleteSecretsFor.run(write.tx, { userId: account.id, purpose: "invite" });
    }
    const sessionId = deps.ids.uuid();
    insertSession.run(write.tx, {
      id: sessionId,
      userId: account.id,
      createdAt: write.now,
      lastUsedAt: write.now,
      expiresAt: write.now + refreshTtlMs,
      ip: client.address,
      userAgent: client.userAgent?.slice(0, USER_AGENT_MAX_CHARACTERS) ?? null,
    });
    const actor = { kind: "user" as const, name: account.id };
    write.tx.auditBy(actor, { action: "signin", target: `users/${account.id}` });
    return { account, sessionId, generation: 0, tokenVersion: 0 };
  };

  const tokens: SignIns["tokens"] = async ({ account, sessionId, generation, tokenVersion }) => ({
    user: ownUser(account),
    accessToken: await deps.tokens.access(account, sessionId, tokenVersion),
    refreshToken: deps.tokens.refresh({ sessionId, generation }),
  });

  return {
    refreshTtlMs,
    open,
    tokens,
    complete(write, account, client, { secondFactor = "required", pending = {} } = {}) {
      if (account.disabled) throw accountDisabled();
      if (verification.isMissing(account)) return { kind: "unverified", account };
      const verified = factorsOfUser.all(write.tx, { userId: account.id }).filter((factor) => factor.verified);
      if (verified.length === 0 || secondFactor === "given")
        return { kind: "session", session: open(write, account, client) };
      const ticket = deps.ids.secret(SECRET_BYTES);
      putSecret.run(write.tx, {
        hash: deps.sealing.digest("mfa-ticket", ticket),
        purpose: "mfa-ticket",
        userId: account.id,
        payload: pending,
        expiresAt: write.now + MFA_TICKET_TTL_MS,
      });
      return { kind: "mfa", ticket, factors: verified.map(({ id, type }) => ({ id, type })) };
    },
    renew(write, account, caller, { accessTokens }) {
      const session = sessionById.get(write.tx, { id: caller.sessionId });
      if (session === null) throw unauthorized("Invalid token");
      if (verification.isMissing(account)) throw emailNotVerified();
      const generation = session.generation + 1;
      const expiresAt = write.now + refreshTtlMs;
      touchSession.run(write.tx, { ...session, generation, rotations: [], lastUsedAt: write.now, expiresAt });
      write.extended(session.id, expiresAt);
      const tokenVersion = session.tokenVersion + (accessTokens === "end" ? 1 : 0);
      renewSession.run(write.tx, { id: session.id, provedAt: write.now, tokenVersion });
      if (accessTokens === "end") write.renewed(session.id, tokenVersion);
      return { account, sessionId: session.id, generation, tokenVersion };
    },
    async answer(signIn, redirect = null) {
      if (signIn.kind === "session") return tokens(signIn.session);
      if (signIn.kind === "unverified") throw await verification.remind(signIn.account, redirect);
      return { mfaRequired: true, mfaTicket: signIn.ticket, factors: signIn.factors };
    },
    guessKeys: (use, owner, client) => guessKeys(deps.signInLimit, `${use}:${owner}`, client),
  };
}

function guessKeys(limit: RateLimit, key: string, client: Client): GuessKey[] {
  if (!client.isLimited) return [];
  const perAddress = { requests: SIGN_IN_ADDRESS_FACTOR * limit.requests, window: limit.window };
  return [
    { key, limit },
    { key: `address:${clientNetwork(client.address)}`, limit: perAddress },
  ];
}

/** 409 for an email that another account has. */
export function emailTaken(field = "email"): AppError {
  const message = "This email address already has an account";
  return conflict(message, { [field]: { code: "not_unique", message } });
}
