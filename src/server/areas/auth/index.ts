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
import { createAccountFile } from "./account-file.ts";
import { type AddressOf, settleAddressForms } from "./address-forms.ts";
import { createAccounts } from "./administration/accounts.ts";
import { createCaptcha } from "./captcha/captcha.ts";
import { startCleanup } from "./cleanup.ts";
import { createAddressService } from "./email/address-service.ts";
import { createMailAccessor } from "./email/app-mail.ts";
import { emailEndpoints } from "./email/endpoints.ts";
import { createMailTokens, type MailDeps } from "./email/mail-tokens.ts";
import { createMailer } from "./email/mailer.ts";
import { outboxEndpoints } from "./email/outbox-endpoints.ts";
import { createOutboxReader } from "./email/outbox-reader.ts";
import { createResetService } from "./email/reset-service.ts";
import { createMailSignInService } from "./email/sign-in-service.ts";
import type { EndpointDeps } from "./endpoint-parts.ts";
import { invitationEndpoints } from "./invitations/endpoints.ts";
import { createInvitations } from "./invitations/service.ts";
import { ACCESS_TOKEN_TTL_SECONDS, ADDRESS_CHANGES_PER_USER, MAILS_PER_ADDRESS, OUTBOX_ANSWER_MS } from "./limits.ts";
import { mfaEndpoints } from "./mfa/endpoints.ts";
import { createMfaService } from "./mfa/service.ts";
import { oauthEndpoints } from "./oauth/endpoints.ts";
import { createOAuthService } from "./oauth/service.ts";
import { passkeyEndpoints } from "./passkeys/endpoints.ts";
import { createPasskeyService } from "./passkeys/service.ts";
import { passwordEndpoints } from "./password/endpoints.ts";
import { createGuesses, type GuessAbout } from "./password/guesses.ts";
import { createPasswords } from "./password/passwords.ts";
import { createPasswordService } from "./password/service.ts";
import { createSealing } from "./sealing.ts";
import { createSessionCache } from "./session/cache.ts";
import { sessionEndpoints } from "./session/endpoints.ts";
import { createSessionService } from "./session/service.ts";
import { createSignIns } from "./session/sign-in.ts";
import { createTokens } from "./session/tokens.ts";
import { signUpEndpoints } from "./sign-up/endpoints.ts";
import { createSignUpRule } from "./sign-up/rule.ts";
import { createSignUps } from "./sign-up/service.ts";
import { createVerification } from "./sign-up/verification.ts";
import type { AuthDeps } from "./types.ts";

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
