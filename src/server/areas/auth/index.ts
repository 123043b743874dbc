import type { Clock } from "../../../kernel/clock.ts";
import type { Ids } from "../../../kernel/ids.ts";
import type { Logger } from "../../../kernel/logger.ts";
import { DAY_MS, SECOND_MS } from "../../../kernel/time/duration.ts";
import type { AccountMarks } from "../../access/account-records.ts";
import type { Account, AccountNotes, UserHoldings } from "../../access/accounts.ts";
import type { Lookups } from "../../access/lookups/lookups.ts";
import type { AppAccess, User } from "../../config/app/index.ts";
import type { AuthConfig, PlatformConfig } from "../../config/types.ts";
import type { DatabaseFile } from "../../db/types.ts";
import type { Endpoint } from "../../http/endpoint.ts";
import { createRateLimiter, RATE_LIMITS } from "../../http/rate-limit.ts";
import type { Queue } from "../../jobs/index.ts";
import { emailEndpoints } from "./endpoints/email.ts";
import { mailTemplateEndpoints } from "./endpoints/mail-templates.ts";
import { mfaEndpoints } from "./endpoints/mfa.ts";
import { oauthEndpoints } from "./endpoints/oauth.ts";
import { outboxEndpoints } from "./endpoints/outbox.ts";
import { pageCodeEndpoints } from "./endpoints/pages.ts";
import type { EndpointDeps } from "./endpoints/parts.ts";
import { passkeyEndpoints } from "./endpoints/passkeys.ts";
import { phoneFactorEndpoints } from "./endpoints/phone-factors.ts";
import { phoneEndpoints } from "./endpoints/phones.ts";
import { sessionEndpoints } from "./endpoints/sessions.ts";
import { signUpEndpoints } from "./endpoints/sign-up.ts";
import { tokenKeyEndpoints } from "./endpoints/token-keys.ts";
import {
  ACCESS_TOKEN_TTL_SECONDS,
  ADDRESS_CHANGES_PER_USER,
  MAILS_PER_ADDRESS,
  PHONE_CHANGES_PER_USER,
  TOKEN_KEYS_DAYS_DEFAULT,
} from "./limits.ts";
import { createMailAccessor, Mailer } from "./mail/mailer.ts";
import { Captcha } from "./means/captcha.ts";
import { type GuessAbout, Guesses } from "./means/guesses.ts";
import { Passwords } from "./means/passwords.ts";
import { Texts } from "./means/texts.ts";
import { TokenKeys } from "./means/token-keys.ts";
import { TokenSigner } from "./means/tokens.ts";
import { type OwnServer, pagesEndpoints } from "./pages/index.ts";
import { createAccounts } from "./service/accounts.ts";
import { createIssuers } from "./service/issuers.ts";
import { OAuthProviders } from "./service/oauth-providers.ts";
import type { AuthDeps } from "./sessions/deps.ts";
import { AccountFile } from "./store/account-file.ts";
import { settleAddressForms } from "./store/address-forms.ts";
import { startCleanup } from "./store/cleanup.ts";
import { Sealing } from "./store/sealing.ts";
import { SessionCache } from "./store/session-cache.ts";

export interface AuthAreaDeps {
  config: AuthConfig;
  rateLimits: PlatformConfig["rateLimits"];
  /** The system database, migrated. */
  file: DatabaseFile;
  notes: AccountNotes;
  /** Notes accounts for the table of users. */
  records: AccountMarks;
  holdings: UserHoldings;
  /** Writes a wrong guess at a password or code down; resolves when that is on disk. */
  onWrongGuess: (about: GuessAbout) => Promise<void>;
  /** Signs access tokens; what is kept encrypted or hashed depends on it too. */
  secret: string;
  /** true: mails wait in the outbox. */
  isDrill: boolean;
  /** Mails are jobs. */
  queue: Queue;
  dataDirectory: string;
  /** Returns the lookups of the rule of sign-ups. Called at the first visitor, not before. */
  lookups: () => Lookups;
  /** Returns `app` for `auth.phones.send`. Called at the first text, not before. */
  app: () => AppAccess;
  /** Returns the user as the config's code gets it. */
  userOf: (account: Account) => User;
  /** Base address of links in mail, without a slash at the end. */
  publicUrl: () => string;
  clock: Clock;
  ids: Ids;
  logger: Logger;
}

export type AuthArea = Awaited<ReturnType<typeof createAuthArea>>;

/** Sign-up, sign-in, sessions, second factors, OAuth and passkeys. */
export async function createAuthArea(deps: AuthAreaDeps) {
  const { config, rateLimits, clock, logger } = deps;
  const sessions = new SessionCache({ sql: deps.file, clock, logger });
  const tokenKeys = await openTokenKeys(deps);
  const auth = await createDeps(deps, { sessions, tokenKeys });
  const { file, mailer } = auth;
  const stopCleanup = startCleanup({ file, clock, logger });
  const authLimiter = createRateLimiter(rateLimits?.auth ?? RATE_LIMITS.auth, clock);
  const signUpLimiter = createRateLimiter(rateLimits?.signup ?? RATE_LIMITS.signup, clock);
  const { phones } = config;
  const texts = phones === undefined ? null : new Texts({ ...deps, config: phones, appName: auth.appName });
  const providers = new OAuthProviders(config.oauth ?? {}, clock.now);
  const endpointDeps: EndpointDeps = {
    ...auth,
    providers,
    captcha: new Captcha({ config: config.captcha, isDrill: deps.isDrill, clock, logger }),
    authLimit: authLimiter.hit,
    signUpLimit(network) {
      authLimiter.hit(network);
      signUpLimiter.hit(network);
    },
  };

  const textLimit = createRateLimiter(rateLimits?.phone ?? RATE_LIMITS.phone, clock).hit;
  const phoneDeps = { ...endpointDeps, texts, textLimit };

  return {
    /** Live sessions, for the principals of requests and for WebSockets. */
    sessions,
    /** Operations on accounts, for the administration of users. */
    accounts: createAccounts(auth, providers),
    /** The keys of access tokens that others verify; null: nobody else does. */
    tokenKeys,
    /** Verifies tokens of others; null: none are taken. */
    issuers: config.issuers === undefined ? null : createIssuers(auth, config.issuers),
    /** `app.mail`. */
    mail: createMailAccessor(mailer),
    /** Counts one request of this address in the group `auth`. Errors: 429. */
    limit: authLimiter.hit,
    /** Returns the endpoints of the pages for signing in, once there is a server. */
    pages: (server: OwnServer): readonly Endpoint[] =>
      pagesEndpoints(auth, server, () => appNameOf(config, deps.publicUrl())),
    endpoints: [
      ...signUpEndpoints(endpointDeps),
      ...sessionEndpoints(endpointDeps),
      ...emailEndpoints(endpointDeps),
      ...outboxEndpoints(deps.dataDirectory),
      ...mailTemplateEndpoints(endpointDeps),
      ...mfaEndpoints(endpointDeps),
      ...oauthEndpoints(endpointDeps),
      ...passkeyEndpoints(endpointDeps),
      ...phoneEndpoints(phoneDeps),
      ...phoneFactorEndpoints(phoneDeps),
      ...pageCodeEndpoints(endpointDeps),
      ...(tokenKeys === null ? [] : tokenKeyEndpoints(endpointDeps, tokenKeys)),
    ],
    async stop(): Promise<void> {
      mailer.stop();
      await tokenKeys?.stop();
      await stopCleanup();
      await auth.passwords.stop();
    },
  };
}

/** Opens the keys of access tokens for others; null where the config declares none. */
async function openTokenKeys(deps: AuthAreaDeps): Promise<TokenKeys | null> {
  const { config } = deps;
  if (config.tokens === undefined) return null;
  const { rotateDays = TOKEN_KEYS_DAYS_DEFAULT } = config.tokens;
  const tokenTtlMs = accessTtlSecondsOf(config) * SECOND_MS;
  return TokenKeys.open({ ...deps, sealing: new Sealing(deps.secret), tokenTtlMs, rotateMs: rotateDays * DAY_MS });
}

const accessTtlSecondsOf = ({ session }: AuthConfig): number => session?.accessTokenTtl ?? ACCESS_TOKEN_TTL_SECONDS;

async function createDeps(
  deps: AuthAreaDeps,
  { sessions, tokenKeys }: { sessions: SessionCache; tokenKeys: TokenKeys | null },
): Promise<AuthDeps> {
  const { config, isDrill, dataDirectory, lookups, publicUrl, queue, clock, ids, logger } = deps;
  const sealing = new Sealing(deps.secret);
  const file = new AccountFile({ file: deps.file, sessions, clock, notes: deps.notes, records: deps.records });
  const accessTtlSeconds = accessTtlSecondsOf(config);
  const { tokens } = config;
  const forOthers =
    tokenKeys === null || tokens === undefined
      ? null
      : { keys: tokenKeys, config: tokens, issuer: publicUrl, userOf: deps.userOf };
  const appName = () => appNameOf(config, publicUrl());
  return {
    file,
    sealing,
    tokens: await TokenSigner.of(deps.secret, { sealing, clock, accessTtlSeconds, forOthers }),
    passwords: new Passwords(clock),
    guesses: new Guesses(clock, deps.onWrongGuess),
    appName,
    mailer: new Mailer({ config: config.mail ?? {}, isDrill, dataDirectory, clock, ids, logger, queue, appName }),
    mailLimit: createRateLimiter(MAILS_PER_ADDRESS, clock),
    addressLimit: createRateLimiter(ADDRESS_CHANGES_PER_USER, clock),
    phoneLimit: createRateLimiter(PHONE_CHANGES_PER_USER, clock),
    signInLimit: deps.rateLimits?.signin ?? RATE_LIMITS.signin,
    holdings: deps.holdings,
    addressOf: await settleAddressForms({ file, logger }),
    publicUrl,
    lookups,
    clock,
    ids,
    logger,
    config,
  };
}

/** Returns what mails call the product; empty where only an address of this machine is known. */
function appNameOf(config: AuthConfig, publicUrl: string): string {
  const named = config.appName ?? config.passkeys?.rpName;
  if (named !== undefined) return named;
  const host = URL.parse(publicUrl)?.hostname ?? "";
  return host === "localhost" || /^[\d.]+$|:/.test(host) ? "" : host;
}
