import { Type } from "typebox";
import { optional } from "../../../../kernel/schema/types.ts";
import { requireMetadataSize } from "../../../access/accounts.ts";
import { MfaRequired, Tokens } from "../../../config/shapes/sign-in.ts";
import { DisplayName, Email, emailOf, Language, Metadata } from "../../../config/shapes/user-fields.ts";
import { OwnUser, RedirectUrl } from "../../../config/shapes/users.ts";
import { type Endpoint, endpoint } from "../../../http/endpoint.ts";
import { created } from "../../../http/reply.ts";
import { acceptInvitation } from "../service/invitations.ts";
import { changePassword, signInWithPassword } from "../service/passwords.ts";
import { linkEmail, signInAnonymously, signUp } from "../service/sign-up.ts";
import {
  CaptchaToken,
  callerOf,
  chosenPassword,
  clientOf,
  type EndpointDeps,
  hasPasswords,
  ofUsers,
  redirectOf,
  requireEnabled,
  Secret,
  SignedIn,
  Token,
  tokensAnswer,
  tokensOrPending,
} from "./parts.ts";

/** Becoming a user, and signing in with a password. */
export function signUpEndpoints(deps: EndpointDeps): readonly Endpoint[] {
  return [withPassword(deps), anonymously(deps), linking(deps), signIn(deps), change(deps), acceptance(deps)];
}

const withPassword = (deps: EndpointDeps): Endpoint =>
  endpoint(
    "POST /api/auth/signup",
    {
      ...ofUsers(deps.signUpLimit),
      summary: "Sign up with email and password",
      caller: "public",
      body: Type.Object({
        email: Email,
        password: chosenPassword(deps),
        displayName: DisplayName,
        metadata: Metadata,
        language: Language,
        redirectUrl: RedirectUrl,
        captchaToken: CaptchaToken,
      }),
      answers: { 201: tokensOrPending("The new user, signed in or yet to verify the address") },
      errors: [404, 409, 503],
    },
    async (context) => {
      requireEnabled(hasPasswords(deps), "Signing up with email and password");
      const { email, password, displayName, metadata, language, redirectUrl, captchaToken } = await context.body();
      requireMetadataSize({ metadata });
      const redirect = redirectOf(deps, redirectUrl);
      const client = clientOf(context);
      await deps.captcha.check(captchaToken, client);
      const fields = {
        email: emailOf(email),
        password,
        displayName,
        metadata,
        language: language ?? client.language,
        redirect,
      };
      return created(await signUp(deps, fields, client));
    },
  );

const anonymously = (deps: EndpointDeps): Endpoint =>
  endpoint(
    "POST /api/auth/signin/anonymous",
    {
      ...ofUsers(deps.signUpLimit),
      summary: "Sign in as a new anonymous user",
      caller: "public",
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
      return created(await signInAnonymously(deps, client));
    },
  );

const linking = (deps: EndpointDeps): Endpoint =>
  endpoint(
    "POST /api/auth/link/email",
    {
      // Where it mails an address that the caller types in, it is bounded as sign-ups are.
      ...ofUsers(deps.config.requireVerifiedEmail === true ? deps.signUpLimit : deps.authLimit),
      summary: "Turn your anonymous user into an account with an email address and a password",
      caller: "user",
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
      return linkEmail(deps, caller, { email: emailOf(email), password, redirect }, clientOf(context));
    },
  );

const signIn = (deps: EndpointDeps): Endpoint =>
  endpoint(
    "POST /api/auth/signin",
    {
      ...ofUsers(deps.authLimit),
      summary: "Sign in with email and password",
      caller: "public",
      description:
        "With `auth.requireVerifiedEmail`, 403 `Email not verified` for an address that is not; the link is mailed again.",
      body: Type.Object({ email: Email, password: Secret, redirectUrl: RedirectUrl }),
      answers: { 200: SignedIn },
      errors: [404],
    },
    async (context) => {
      requireEnabled(hasPasswords(deps), "Signing in with email and password");
      const { email, password, redirectUrl } = await context.body();
      const redirect = redirectOf(deps, redirectUrl);
      return signInWithPassword(deps, { email: deps.addressOf(email), password, redirect }, clientOf(context));
    },
  );

const change = (deps: EndpointDeps): Endpoint =>
  endpoint(
    "POST /api/auth/change-password",
    {
      ...ofUsers(deps.authLimit),
      summary: "Change your password; every other session ends",
      caller: "user",
      body: Type.Object({ currentPassword: Secret, newPassword: chosenPassword(deps) }),
      answers: { 200: tokensAnswer("New tokens of this session") },
    },
    async (context) => {
      const caller = callerOf(context.principal);
      const { currentPassword, newPassword: next } = await context.body();
      return changePassword(deps, caller, clientOf(context), { current: currentPassword, next });
    },
  );

const Accepted = Type.Union([Tokens, MfaRequired, Type.Object({ user: OwnUser })], {
  description: "As a sign-in, or the user who had an account already",
});

const acceptance = (deps: EndpointDeps): Endpoint => {
  return endpoint(
    "POST /api/auth/accept-invite",
    {
      ...ofUsers(deps.authLimit),
      summary: "Accept an invitation: set a password, and sign in",
      description:
        "The address counts as verified. Where users do not sign in with passwords, none is needed. An invitation with data of a user who has an account is accepted with the user's own token, and answered with the user.",
      caller: "public",
      body: Type.Object({
        token: Type.String({ ...Token, description: "From the mail; valid once" }),
        password: optional(chosenPassword(deps)),
        displayName: DisplayName,
        language: Language,
      }),
      answers: { 200: Accepted },
    },
    async (context) => {
      const { token, password, displayName, language } = await context.body();
      const { principal } = context;
      // Whoever acts as a user does not accept in their place.
      const caller = principal.kind === "user" && principal.actedBy === undefined ? callerOf(principal) : null;
      const accepted = { token, password: password ?? null, displayName, language };
      return acceptInvitation(deps, accepted, clientOf(context), caller);
    },
  );
};
