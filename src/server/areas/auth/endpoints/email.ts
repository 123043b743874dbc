import { type Static, Type } from "typebox";
import { pause } from "../../../../kernel/clock.ts";
import { optional } from "../../../../kernel/schema/types.ts";
import { Email, emailOf } from "../../../config/shapes/user-fields.ts";
import { RedirectUrl } from "../../../config/shapes/users.ts";
import { type Endpoint, endpoint } from "../../../http/endpoint.ts";
import { OK } from "../../../http/reply.ts";
import { OUTBOX_ANSWER_MS } from "../limits.ts";
import { requestEmailChange, requestVerification, verifyEmail, verifyEmailChange } from "../service/addresses.ts";
import { requestCode, requestMagicLink, verifyCode, verifyMagicLink } from "../service/mail-sign-in.ts";
import { confirmOwner, requestPasswordReset, resetPassword } from "../service/passwords.ts";
import {
  CaptchaToken,
  callerOf,
  chosenPassword,
  clientOf,
  type EndpointDeps,
  Ok,
  ofUsers,
  redirectOf,
  requireEnabled,
  Secret,
  SignedIn,
  Token,
} from "./parts.ts";

const MailToken = Type.String({ ...Token, description: "From the mail; valid once" });
const Accepted = Type.Object(
  { ok: Type.Literal(true) },
  { description: "Accepted, whether or not there is such a user" },
);

const MailRequest = Type.Object({ email: Email, redirectUrl: RedirectUrl, captchaToken: CaptchaToken });

/** Actions that a mail confirms. */
export function emailEndpoints(deps: EndpointDeps): readonly Endpoint[] {
  return [
    ...verification(deps),
    ...passwordReset(deps),
    ...addressChange(deps),
    ...magicLink(deps),
    ...emailCode(deps),
  ];
}

/** Returns what a request for a mail asks for, once its CAPTCHA has been checked. Errors: 400, 413, 415, 503. */
async function mailRequest(
  deps: EndpointDeps,
  context: Parameters<typeof clientOf>[0] & { body(): Promise<Static<typeof MailRequest>> },
): Promise<{ email: string; redirect: URL | null; language: string | null }> {
  const { email, redirectUrl, captchaToken } = await context.body();
  const redirect = redirectOf(deps, redirectUrl);
  const client = clientOf(context);
  await deps.captcha.check(captchaToken, client);
  return { email: deps.addressOf(email), redirect, language: client.language };
}

/**
 * Takes the same time whether or not there is a user to whom something is mailed, and waits for the mail to be in the outbox. With a
 * mail server no answer waits for its mail.
 */
async function inOneTime({ clock, mailer }: EndpointDeps, request: () => Promise<void>): Promise<void> {
  if (mailer.isSent) return request();
  const beganAt = clock.now();
  await request();
  const leftMs = beganAt + OUTBOX_ANSWER_MS - clock.now();
  // A clock that was set back meanwhile does not lengthen it.
  if (leftMs > 0) await pause(clock, Math.min(leftMs, OUTBOX_ANSWER_MS));
}

function verification(deps: EndpointDeps): readonly Endpoint[] {
  const request = endpoint(
    "POST /api/auth/request-email-verification",
    {
      ...ofUsers(deps.authLimit),
      summary: "Mail a link that verifies your email address",
      caller: "user",
      body: Type.Object({ redirectUrl: RedirectUrl }),
      isBodyOptional: true,
      answers: { 200: Ok },
    },
    async ({ principal, body }) => {
      const { redirectUrl } = await body();
      await requestVerification(deps, callerOf(principal), redirectOf(deps, redirectUrl));
      return OK;
    },
  );
  const confirm = endpoint(
    "POST /api/auth/verify-email",
    {
      ...ofUsers(deps.authLimit),
      summary: "Verify an email address",
      caller: "public",
      body: Type.Object({ token: MailToken }),
      answers: { 200: Ok },
      errors: [409],
    },
    async ({ body }) => {
      const { token } = await body();
      await verifyEmail(deps, token);
      return OK;
    },
  );
  return [request, confirm];
}

function passwordReset(deps: EndpointDeps): readonly Endpoint[] {
  const request = endpoint(
    "POST /api/auth/request-password-reset",
    {
      ...ofUsers(deps.authLimit),
      summary: "Mail a link that sets a new password",
      caller: "public",
      body: MailRequest,
      answers: { 200: Accepted },
      errors: [503],
    },
    async (context) => {
      const { email, redirect } = await mailRequest(deps, context);
      await inOneTime(deps, () => requestPasswordReset(deps, email, redirect));
      return OK;
    },
  );
  const reset = endpoint(
    "POST /api/auth/reset-password",
    {
      ...ofUsers(deps.authLimit),
      summary: "Set a new password; every session ends, passkeys and phone number are removed",
      caller: "public",
      body: Type.Object({
        token: MailToken,
        newPassword: chosenPassword(deps),
        keepPasskeys: Type.Optional(Type.Boolean({ default: false, description: "true: the passkeys stay" })),
        keepPhone: Type.Optional(Type.Boolean({ default: false, description: "true: the phone number stays" })),
      }),
      answers: { 200: Ok },
    },
    async (context) => {
      const { token, newPassword, keepPasskeys = false, keepPhone = false } = await context.body();
      await resetPassword(deps, { token, newPassword, keepPasskeys, keepPhone }, clientOf(context));
      return OK;
    },
  );
  return [request, reset];
}

function addressChange(deps: EndpointDeps): readonly Endpoint[] {
  const request = endpoint(
    "POST /api/auth/change-email",
    {
      ...ofUsers(deps.authLimit),
      summary: "Mail a link that changes your email address",
      caller: "user",
      body: Type.Object({ newEmail: Email, password: optional(Secret), redirectUrl: RedirectUrl }),
      description:
        "An address that another account has is mailed nothing; the answer is the same. An account without a password needs none, and a sign-in of the last ten minutes.",
      answers: { 200: Ok },
      errors: [401],
    },
    async (context) => {
      const caller = callerOf(context.principal);
      const { newEmail, password, redirectUrl } = await context.body();
      const redirect = redirectOf(deps, redirectUrl);
      const proved = await confirmOwner(deps, caller, clientOf(context), password ?? null);
      const change = { proved, email: emailOf(newEmail), redirect };
      await inOneTime(deps, () => requestEmailChange(deps, caller, change));
      return OK;
    },
  );
  const confirm = endpoint(
    "POST /api/auth/verify-email-change",
    {
      ...ofUsers(deps.authLimit),
      summary: "Change the email address; every session ends",
      caller: "public",
      body: Type.Object({ token: MailToken }),
      answers: { 200: Ok },
      errors: [409],
    },
    async ({ body }) => {
      const { token } = await body();
      await verifyEmailChange(deps, token);
      return OK;
    },
  );
  return [request, confirm];
}

function magicLink(deps: EndpointDeps): readonly Endpoint[] {
  const requireLinks = () => requireEnabled(deps.config.magicLink === true, "Signing in by magic link");
  const request = endpoint(
    "POST /api/auth/signin/magic-link",
    {
      ...ofUsers(deps.authLimit),
      summary: "Mail a link that signs in",
      caller: "public",
      body: MailRequest,
      answers: { 200: Accepted },
      errors: [404, 503],
    },
    async (context) => {
      requireLinks();
      const request = await mailRequest(deps, context);
      await inOneTime(deps, () => requestMagicLink(deps, request));
      return OK;
    },
  );
  const confirm = endpoint(
    "POST /api/auth/verify-magic-link",
    {
      ...ofUsers(deps.authLimit),
      summary: "Sign in with the token of a magic link",
      caller: "public",
      body: Type.Object({ token: MailToken }),
      answers: { 200: SignedIn },
      errors: [404],
    },
    async (context) => {
      requireLinks();
      const { token } = await context.body();
      return verifyMagicLink(deps, token, clientOf(context));
    },
  );
  return [request, confirm];
}

function emailCode(deps: EndpointDeps): readonly Endpoint[] {
  const requireCodes = () => requireEnabled(deps.config.emailOtp === true, "Signing in by email code");
  const request = endpoint(
    "POST /api/auth/signin/email-otp",
    {
      ...ofUsers(deps.authLimit),
      summary: "Mail a code that signs in",
      caller: "public",
      body: MailRequest,
      answers: { 200: Accepted },
      errors: [404, 503],
    },
    async (context) => {
      requireCodes();
      // The redirect is checked as everywhere, and not used: the mail contains a code and no link.
      const request = await mailRequest(deps, context);
      await inOneTime(deps, () => requestCode(deps, request));
      return OK;
    },
  );
  const confirm = endpoint(
    "POST /api/auth/verify-email-otp",
    {
      ...ofUsers(deps.authLimit),
      summary: "Sign in with a mailed code",
      caller: "public",
      body: Type.Object({ email: Email, code: Token }),
      answers: { 200: SignedIn },
      errors: [404],
    },
    async (context) => {
      requireCodes();
      const { email, code } = await context.body();
      return verifyCode(deps, { email: deps.addressOf(email), code }, clientOf(context));
    },
  );
  return [request, confirm];
}
