import { Type } from "typebox";
import { requireMetadataSize } from "../../../access/accounts.ts";
import { DisplayName, Email, emailOf, Metadata } from "../../../config/shapes/user-fields.ts";
import { RedirectUrl } from "../../../config/shapes/users.ts";
import { type Endpoint, endpoint } from "../../../http/endpoint.ts";
import { created } from "../../../http/reply.ts";
import {
  callerOf,
  chosenPassword,
  clientOf,
  type EndpointDeps,
  hasPasswords,
  ofUsers,
  redirectOf,
  requireEnabled,
} from "./parts.ts";
import { CaptchaToken, tokensAnswer, tokensOrPending } from "./schemas.ts";
import type { SignUps } from "../service/sign-up.ts";

export function signUpEndpoints(deps: EndpointDeps, service: SignUps): readonly Endpoint[] {
  return [signUp(deps, service), signInAnonymously(deps, service), linkEmail(deps, service)];
}

const signUp = (deps: EndpointDeps, service: SignUps): Endpoint =>
  endpoint(
    "POST /api/auth/signup",
    {
      ...ofUsers(deps.signUpLimit),
      summary: "Sign up with email and password",
      caller: "public",
      place: "core",
      body: Type.Object({
        email: Email,
        password: chosenPassword(deps),
        displayName: DisplayName,
        metadata: Metadata,
        redirectUrl: RedirectUrl,
        captchaToken: CaptchaToken,
      }),
      answers: { 201: tokensOrPending("The new user, signed in or yet to verify the address") },
      errors: [404, 409, 503],
    },
    async (context) => {
      requireEnabled(hasPasswords(deps), "Signing up with email and password");
      const { email, password, displayName, metadata, redirectUrl, captchaToken } = await context.body();
      requireMetadataSize({ metadata });
      const redirect = redirectOf(deps, redirectUrl);
      const client = clientOf(context);
      await deps.captcha.check(captchaToken, client);
      const fields = { email: emailOf(email), password, displayName, metadata, redirect };
      return created(await service.signUp(fields, client));
    },
  );

const signInAnonymously = (deps: EndpointDeps, service: SignUps): Endpoint =>
  endpoint(
    "POST /api/auth/signin/anonymous",
    {
      ...ofUsers(deps.signUpLimit),
      summary: "Sign in as a new anonymous user",
      caller: "public",
      place: "core",
      body: Type.Object({ captchaToken: CaptchaToken }),
      isBodyOptional: true,
      answers: { 201: tokensAnswer("The new user, signed in") },
      errors: [404, 503],
    },
    async (context) => {
      requireEnabled(deps.config.anonymous === true, "Signing in anonymously");
      const { captchaToken } = await context.body();
      const client = clientOf(context);
      await deps.captcha.check(captchaToken, client);
      return created(await service.signInAnonymously(client));
    },
  );

const linkEmail = (deps: EndpointDeps, service: SignUps): Endpoint =>
  endpoint(
    "POST /api/auth/link/email",
    {
      // Where it mails an address that the caller types in, it is bounded as sign-ups are.
      ...ofUsers(deps.config.requireVerifiedEmail === true ? deps.signUpLimit : deps.authLimit),
      summary: "Turn your anonymous user into an account with an email address and a password",
      caller: "user",
      place: "core",
      description: "With `auth.requireVerifiedEmail` the user stays anonymous until the address is verified.",
      body: Type.Object({ email: Email, password: chosenPassword(deps), redirectUrl: RedirectUrl }),
      answers: { 200: tokensOrPending("The same user, with new tokens or yet to verify the address") },
      errors: [404, 409],
    },
    async (context) => {
      const caller = callerOf(context.principal);
      context.query();
      requireEnabled(hasPasswords(deps), "Signing in with email and password");
      const { email, password, redirectUrl } = await context.body();
      const redirect = redirectOf(deps, redirectUrl);
      return service.linkEmail(caller, { email: emailOf(email), password, redirect });
    },
  );
