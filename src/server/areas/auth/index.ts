import type { Clock } from "../../../kernel/clock.ts";
import type { Ids } from "../../../kernel/ids.ts";
import type { Logger } from "../../../kernel/logger.ts";
import type { AccountNotes, Accounts } from "../../access/accounts.ts";
import type { Lookups } from "../../access/lookups/lookups.ts";
import type { SessionEvents, SessionLookup, UserEvents } from "../../access/sessions.ts";
import type { MailAccessor } from "../../config/app/index.ts";
import type { AuthConfig, PlatformConfig } from "../../config/types.ts";
import type { DatabaseFile } from "../../db/types.ts";
import type { Endpoint } from "../../http/endpoint.ts";
import { createRateLimiter, RATE_LIMITS } from "../../http/rate-limit.ts";
import type { Queue } from "../../jobs/index.ts";
import { createAccountFile } from "./store/account-file.ts";
import { type AddressOf, settleAddressForms } from "./store/address-forms.ts";
import { createAccounts } from "./service/accounts.ts";
import { createCaptcha } from "./means/captcha.ts";
import { startCleanup } from "./store/cleanup.ts";
import { createAddressService } from "./service/addresses.ts";
import { createMailAccessor } from "./mail/app-mail.ts";
import { emailEndpoints } from "./endpoints/email.ts";
import { createMailTokens, type MailDeps } from "./sessions/mail-tokens.ts";
import { createMailer } from "./mail/mailer.ts";
import { outboxEndpoints } from "./endpoints/outbox.ts";
import { createOutboxReader } from "./mail/outbox-reader.ts";
import { createResetService } from "./service/resets.ts";
import { createMailSignInService } from "./service/mail-sign-in.ts";
import type { EndpointDeps } from "./endpoints/parts.ts";
import { invitationEndpoints } from "./endpoints/invitations.ts";
import { createInvitations } from "./service/invitations.ts";
import { ACCESS_TOKEN_TTL_SECONDS, ADDRESS_CHANGES_PER_USER, MAILS_PER_ADDRESS, OUTBOX_ANSWER_MS } from "./limits.ts";
import { mfaEndpoints } from "./endpoints/mfa.ts";
import { createMfaService } from "./service/mfa.ts";
import { oauthEndpoints } from "./endpoints/oauth.ts";
import { createOAuthService } from "./service/oauth.ts";
import { passkeyEndpoints } from "./endpoints/passkeys.ts";
import { createPasskeyService } from "./service/passkeys.ts";
import { passwordEndpoints } from "./endpoints/passwords.ts";
import { createGuesses, type GuessAbout } from "./means/guesses.ts";
import { createPasswords } from "./means/passwords.ts";
import { createPasswordService } from "./service/passwords.ts";
import { createSealing } from "./store/sealing.ts";
import { createSessionCache } from "./store/session-cache.ts";
import { sessionEndpoints } from "./endpoints/sessions.ts";
import { createSessionService } from "./service/sessions.ts";
import { createSignIns } from "./sessions/sign-in.ts";
import { createTokens } from "./means/tokens.ts";
import { signUpEndpoints } from "./endpoints/sign-up.ts";
import { createSignUpRule } from "./sessions/sign-up-rule.ts";
import { createSignUps } from "./service/sign-up.ts";
import { createVerification } from "./sessions/verification.ts";
import type { AuthDeps } from "./sessions/deps.ts";

export interface AuthAreaDeps {
  config: AuthConfig;
  rateLimits: PlatformConfig["rateLimits"];
  /** The system database, migrated. */
  file: DatabaseFile;
  notes: AccountNotes;
  /** Called for each wrong guess at a password or code. */
  onWrongGuess: (about: GuessAbout) => void;
  /** Signs access tokens; what is kept encrypted or hashed depends on it too. */
  secret: string;
  /** true: mails wait in the outbox. */
  isDrill: boolean;
  /** Mails are jobs. */
  queue: Queue;
  dataDirectory: string;
  /** For the rule of sign-ups; called when a visitor comes, and not before. */
  lookups: () => Lookups;
  /** What links in mail begin with, without a slash at the end. */
  publicUrl: () => string;
  clock: Clock;
  ids: Ids;
  logger: Logger;
}

export interface AuthArea {
  readonly endpoints: readonly Endpoint[];
  /** For the principal of every request, and for WebSockets. */
  readonly sessions: SessionLookup & SessionEvents & UserEvents;
  /** For the administration of users. */
  readonly accounts: Accounts;
  /** `app.mail`. */
  readonly mail: MailAccessor;
  /** Counts one request of this address in the group `auth`. Errors: 429. */
  readonly limit: (address: string) => void;
  stop(): Promise<void>;
}

/** Sign-up, sign-in, sessions, second factors, OAuth and passkeys. */
export async function createAuthArea(deps: AuthAreaDeps): Promise<AuthArea> {
  const { config, clock, logger } = deps;
  const auth = await createAuthDeps(deps);
  const { file, sessions } = auth;
  const addressOf = await settleAddressForms({ file, logger });
  const mailDeps = createMailDeps(deps, auth, addressOf);
  const mailTokens = createMailTokens(mailDeps);
  const verification = createVerification(mailDeps, mailTokens);
  const rule = createSignUpRule({ rule: config.signup, lookups: deps.lookups, clock, logger });
  const signIns = createSignIns(auth, verification);
  const passwords = createPasswordService(auth, signIns);
  const mfa = createMfaService(auth, signIns, () => issuerName(config, deps.publicUrl()));
  const oauth = createOAuthService({ ...auth, rule, verification, publicUrl: deps.publicUrl }, signIns);
  const passkeys = config.passkeys === undefined ? null : createPasskeyService(auth, signIns, config.passkeys);
  const invitations = createInvitations(mailDeps, mailTokens, signIns);
  const stopCleanup = startCleanup({ file, clock, logger });
  const authLimiter = createRateLimiter(deps.rateLimits?.auth ?? RATE_LIMITS.auth, clock);
  const signUpLimiter = createRateLimiter(deps.rateLimits?.signup ?? RATE_LIMITS.signup, clock);
  const endpointDeps: EndpointDeps = {
    config,
    addressOf,
    captcha: createCaptcha({ config: config.captcha, isDrill: deps.isDrill, clock, logger }),
    authLimit: authLimiter.hit,
    signUpLimit(network) {
      authLimiter.hit(network);
      signUpLimiter.hit(network);
    },
  };

  return {
    sessions,
    accounts: createAccounts({ ...mailDeps, mailTokens, invite: invitations.invite }),
    mail: createMailAccessor(mailDeps.mailer),
    limit: authLimiter.hit,
    endpoints: [
      ...signUpEndpoints(endpointDeps, createSignUps({ ...mailDeps, rule, verification, mailTokens }, signIns)),
      ...passwordEndpoints(endpointDeps, passwords),
      ...sessionEndpoints(endpointDeps, createSessionService(auth, signIns, verification)),
      ...emailEndpoints({
        ...endpointDeps,
        passwords,
        clock,
        mailAnswerMs: mailDeps.mailer.isSent ? 0 : OUTBOX_ANSWER_MS,
        addresses: createAddressService(mailDeps, mailTokens, createRateLimiter(ADDRESS_CHANGES_PER_USER, clock)),
        resets: createResetService(mailDeps, mailTokens),
        signIns: createMailSignInService({ ...mailDeps, rule }, mailTokens, signIns),
      }),
      ...outboxEndpoints(createOutboxReader(deps.dataDirectory)),
      ...invitationEndpoints(endpointDeps, invitations),
      ...mfaEndpoints({ ...endpointDeps, mfa, passwords }),
      ...oauthEndpoints({ ...endpointDeps, oauth, publicUrl: deps.publicUrl }),
      ...passkeyEndpoints({ ...endpointDeps, passkeys }),
    ],
    async stop() {
      mailDeps.mailer.stop();
      await stopCleanup();
      await auth.passwords.stop();
    },
  };
}

async function createAuthDeps(deps: AuthAreaDeps): Promise<AuthDeps> {
  const { config, clock, ids, logger } = deps;
  const sessions = createSessionCache({ sql: deps.file, clock, logger });
  const sealing = createSealing(deps.secret);
  const accessTtlSeconds = config.session?.accessTokenTtl ?? ACCESS_TOKEN_TTL_SECONDS;
  return {
    file: createAccountFile({ file: deps.file, sessions, clock, notes: deps.notes }),
    sessions,
    sealing,
    clock,
    ids,
    logger,
    config,
    tokens: await createTokens({ secret: deps.secret, sealing, clock, accessTtlSeconds }),
    passwords: createPasswords(clock),
    guesses: createGuesses(clock, deps.onWrongGuess),
    signInLimit: deps.rateLimits?.signin ?? RATE_LIMITS.signin,
  };
}

function createMailDeps(deps: AuthAreaDeps, auth: AuthDeps, addressOf: AddressOf): MailDeps {
  const { config, isDrill, dataDirectory, clock, ids, logger, queue } = deps;
  return {
    ...auth,
    mailer: createMailer({
      config: config.mail ?? {},
      isDrill,
      dataDirectory,
      clock,
      ids,
      logger,
      queue,
      product: () => productName(config, deps.publicUrl()),
    }),
    mailLimit: createRateLimiter(MAILS_PER_ADDRESS, clock),
    publicUrl: deps.publicUrl,
    addressOf,
  };
}

/** What authenticator apps show beside the account. */
/** What mails call the product; empty where only an address of this machine is known. */
function productName(config: AuthConfig, publicUrl: string): string {
  const named = config.mail?.product ?? config.passkeys?.rpName;
  if (named !== undefined) return named;
  const host = URL.canParse(publicUrl) ? new URL(publicUrl).hostname : "";
  return host === "localhost" || /^[\d.]+$|:/.test(host) ? "" : host;
}

function issuerName(config: AuthConfig, publicUrl: string): string {
  return config.passkeys?.rpName ?? (URL.canParse(publicUrl) ? new URL(publicUrl).hostname : "Platform");
}
