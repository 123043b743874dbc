import { type AnyElysia, Elysia } from "elysia";
import type { AccountEvents, Accounts } from "../access/accounts.ts";
import { refuseScopedKey } from "../access/service-key-right.ts";
import type { SessionEvents, SessionLookup, UserEvents } from "../access/sessions.ts";
import type { AuthConfig, PlatformConfig } from "../config/types.ts";
import type { DatabaseFile } from "../db/types.ts";
import type { Http } from "../http/http.ts";
import { SMALL_BODY_MAX_BYTES } from "../http/limits.ts";
import { createRateLimiter, RATE_LIMITS } from "../http/rate-limit.ts";
import type { Clock } from "../kernel/clock.ts";
import type { Ids } from "../kernel/ids.ts";
import type { Logger } from "../kernel/logger.ts";
import { createAccountFile } from "./account-file.ts";
import { createAccounts } from "./accounts.ts";
import { startCleanup } from "./cleanup.ts";
import { createEmailFlows } from "./email-flows.ts";
import { createGuesses } from "./guesses.ts";
import { ACCESS_TOKEN_TTL_SECONDS, MAILS_PER_ADDRESS } from "./limits.ts";
import { createMailer } from "./mail/mailer.ts";
import { createMfaService } from "./mfa.ts";
import { createOAuthService } from "./oauth/service.ts";
import { createPasskeyService } from "./passkeys.ts";
import { createPasswords } from "./passwords.ts";
import { passwordRoutes, type RouteDeps, sessionRoutes } from "./routes/account.ts";
import { emailRoutes } from "./routes/email.ts";
import { mfaRoutes } from "./routes/mfa.ts";
import { oauthRoutes } from "./routes/oauth.ts";
import { passkeyRoutes } from "./routes/passkeys.ts";
import { createSealing } from "./sealing.ts";
import { createAuthService } from "./service.ts";
import { createSessionCache } from "./sessions.ts";
import { createSignIns } from "./sign-in.ts";
import { createTokens } from "./tokens.ts";
import type { AuthDeps } from "./types.ts";

export interface AuthAreaDeps {
  config: AuthConfig;
  rateLimits: PlatformConfig["rateLimits"];
  /** The system database, migrated. */
  file: DatabaseFile;
  /** Signs access tokens; what is kept encrypted or hashed depends on it too. */
  secret: string;
  /** true: mails wait in the outbox. */
  isDrill: boolean;
  dataDirectory: string;
  /** What links in mail begin with, without a slash at the end. */
  publicUrl: () => string;
  clock: Clock;
  ids: Ids;
  logger: Logger;
}

export interface AuthArea {
  routes(http: Http): AnyElysia;
  /** For the principal of every request, and for WebSockets. */
  readonly sessions: SessionLookup & SessionEvents & UserEvents;
  /** For the administration of users. */
  readonly accounts: Accounts;
  readonly accountEvents: AccountEvents;
  /** Counts one request of this address in the group `auth`. Errors: 429. */
  readonly limit: (address: string) => void;
  stop(): Promise<void>;
}

/** Sign-up, sign-in, sessions, and everything that proves who somebody is. Spec: Authentication; decisions 6. */
export async function createAuthArea(deps: AuthAreaDeps): Promise<AuthArea> {
  const { config, clock, ids, logger } = deps;
  const sessions = createSessionCache({ sql: deps.file, clock, logger });
  const file = createAccountFile({ file: deps.file, sessions, clock, logger });
  const sealing = createSealing(deps.secret);
  const accessTtlSeconds = config.session?.accessTokenTtl ?? ACCESS_TOKEN_TTL_SECONDS;
  const auth: AuthDeps = {
    ...{ file, sessions, sealing, clock, ids, logger, config },
    tokens: await createTokens({ secret: deps.secret, sealing, clock, accessTtlSeconds }),
    passwords: createPasswords(clock),
    guesses: createGuesses(clock),
    signInLimit: deps.rateLimits?.signin ?? RATE_LIMITS.signin,
  };
  const signIns = createSignIns(auth);
  const service = createAuthService(auth, signIns);
  const mailer = createMailer({
    ...{ config: config.mail ?? {}, isDrill: deps.isDrill, dataDirectory: deps.dataDirectory, clock, ids, logger },
  });
  const mailLimit = createRateLimiter(MAILS_PER_ADDRESS, clock);
  const emails = createEmailFlows({ ...auth, mailer, mailLimit, publicUrl: deps.publicUrl }, signIns);
  const mfa = createMfaService(auth, signIns, () => issuerName(config, deps.publicUrl()));
  const oauth = createOAuthService({ ...auth, publicUrl: deps.publicUrl }, signIns);
  const passkeys = config.passkeys === undefined ? null : createPasskeyService(auth, signIns, config.passkeys);
  const stopCleanup = startCleanup({ file, clock, logger });
  const authLimiter = createRateLimiter(deps.rateLimits?.auth ?? RATE_LIMITS.auth, clock);
  const signUpLimiter = createRateLimiter(deps.rateLimits?.signup ?? RATE_LIMITS.signup, clock);

  return {
    sessions,
    accounts: createAccounts(auth),
    accountEvents: file,
    limit: authLimiter.hit,
    routes(http) {
      const routeDeps: RouteDeps = {
        ...{ http: ownEndpoints(http), config, authLimit: authLimiter.hit },
        signUpLimit(address) {
          authLimiter.hit(address);
          signUpLimiter.hit(address);
        },
      };
      return new Elysia()
        .use(passwordRoutes(routeDeps, service))
        .use(sessionRoutes(routeDeps, service))
        .use(emailRoutes(routeDeps, emails, service))
        .use(mfaRoutes(routeDeps, mfa, service))
        .use(oauthRoutes({ ...routeDeps, publicUrl: deps.publicUrl }, oauth))
        .use(passkeyRoutes(routeDeps, passkeys));
    },
    async stop() {
      mailer.stop();
      await stopCleanup();
    },
  };
}

/** No scope is about the endpoints of users: a key that has scopes comes to none of them. Their bodies are small. */
function ownEndpoints(http: Http): Http {
  return {
    ...http,
    route: (handler, options) =>
      http.route(
        (context) => {
          refuseScopedKey(context.principal);
          return handler(context);
        },
        { bodyMaxBytes: SMALL_BODY_MAX_BYTES, ...options },
      ),
  };
}

/** What authenticator apps show beside the account. */
function issuerName(config: AuthConfig, publicUrl: string): string {
  return config.passkeys?.rpName ?? (URL.canParse(publicUrl) ? new URL(publicUrl).hostname : "Platform");
}
