import { type AnyElysia, Elysia } from "elysia";
import { type TSchema, Type } from "typebox";
import { emailField, newPasswordField } from "../../access/account-fields.ts";
import { PASSWORD_MIN_CHARACTERS } from "../../access/limits.ts";
import type { RequestContext } from "../../http/http.ts";
import { operation, optional } from "../../http/operation.ts";
import { OK } from "../../http/reply.ts";
import { Fields } from "../../kernel/fields.ts";
import type { EmailFlows } from "../email-flows.ts";
import { redirectField } from "../redirect.ts";
import type { AuthService } from "../service.ts";
import type { RouteDeps } from "./account.ts";
import { callerOf, clientOf, optionalBody, requireEnabled } from "./context.ts";
import { OkSchema, SignInSchema } from "./schemas.ts";

const URL_MAX_CHARACTERS = 2_048;
const TOKEN_MAX_CHARACTERS = 256;
const SECRET_MAX_CHARACTERS = 4_096;

const tag = "Auth";
const Email = Type.String({ format: "email" });
const redirectUrl = optional(Type.String({ description: "Must match `auth.redirectUrls`" }));
const keepPasskeys = Type.Optional(Type.Boolean({ description: "true: passkeys stay; they go by default" }));
const token = Type.String({ description: "From the mail; good once" });
const done = { 200: { description: "Done", schema: OkSchema } };
const accepted = { 200: { description: "Accepted, whether or not there is such a user", schema: OkSchema } };
const signedIn = { 200: { description: "Tokens, or a ticket for the second factor", schema: SignInSchema } };

interface Endpoint {
  path: string;
  summary: string;
  security: "public" | "user";
  body: Record<string, TSchema>;
  bodyIsOptional?: boolean;
  answers: typeof done | typeof signedIn;
  errors: readonly number[];
  handler: (context: RequestContext) => Promise<unknown>;
}

/** What is asked for by mail and confirmed with what it brings. Decisions 6. */
export function emailRoutes(deps: RouteDeps, flows: EmailFlows, auth: AuthService): AnyElysia {
  const endpoints = [...addressEndpoints(deps, flows, auth), ...signInEndpoints(deps, flows)];
  let routes: AnyElysia = new Elysia();
  for (const { path, handler, summary, security, answers, errors, ...one } of endpoints) {
    const address: string = `/api/auth/${path}`;
    const route = deps.http.route(handler, { limit: deps.authLimit });
    const body = { schema: Type.Object(one.body), isOptional: one.bodyIsOptional === true };
    const description = operation({ tag, summary, security, body, answers, errors });
    routes = routes.use(new Elysia().post(address, route, description));
  }
  return routes;
}

const redirectText = (fields: Fields) => fields.text("redirectUrl", { maxLength: URL_MAX_CHARACTERS });

function addressEndpoints({ config }: RouteDeps, flows: EmailFlows, auth: AuthService): Endpoint[] {
  const redirectUrls = config.redirectUrls ?? [];
  const minLength = config.password?.minLength ?? PASSWORD_MIN_CHARACTERS;
  const tokenOf = async (context: RequestContext): Promise<string> => {
    const fields = new Fields(await context.jsonObject());
    const text = fields.requiredText("token", TOKEN_MAX_CHARACTERS);
    fields.finish();
    return text;
  };
  return [
    {
      ...{ path: "request-email-verification", summary: "Mail a link that confirms the address", security: "user" },
      ...{ body: { redirectUrl }, bodyIsOptional: true, answers: done, errors: [400, 401] },
      async handler(context) {
        const caller = callerOf(context);
        const fields = new Fields(await optionalBody(context));
        const redirect = redirectText(fields);
        fields.finish();
        await flows.requestVerification(caller, redirectField(redirect, redirectUrls));
        return OK;
      },
    },
    {
      ...{ path: "verify-email", summary: "Confirm the address", security: "public" },
      ...{ body: { token }, answers: done, errors: [400, 403] },
      async handler(context) {
        await flows.verifyEmail(await tokenOf(context));
        return OK;
      },
    },
    {
      ...{ path: "request-password-reset", summary: "Mail a link that sets a new password", security: "public" },
      ...{ body: { email: Email, redirectUrl }, answers: accepted, errors: [400] },
      async handler(context) {
        const fields = new Fields(await context.jsonObject());
        const email = emailField(fields);
        const redirect = redirectText(fields);
        fields.finish();
        await flows.requestPasswordReset(email, redirectField(redirect, redirectUrls));
        return OK;
      },
    },
    {
      ...{ path: "reset-password", summary: "Set a new password; every session and passkey ends", security: "public" },
      body: { token, newPassword: Type.String({ minLength }), keepPasskeys },
      ...{ answers: done, errors: [400, 403] },
      async handler(context) {
        const fields = new Fields(await context.jsonObject());
        const text = fields.requiredText("token", TOKEN_MAX_CHARACTERS);
        const password = newPasswordField(fields, minLength, "newPassword");
        const keepsPasskeys = fields.flag("keepPasskeys") ?? false;
        fields.finish();
        await flows.resetPassword(text, password, { keepPasskeys: keepsPasskeys, client: clientOf(context) });
        return OK;
      },
    },
    {
      ...{ path: "change-email", summary: "Mail a link that changes the address", security: "user" },
      body: { newEmail: Email, password: Type.String(), redirectUrl },
      ...{ answers: done, errors: [400, 401, 409] },
      async handler(context) {
        const caller = callerOf(context);
        const fields = new Fields(await context.jsonObject());
        const newEmail = emailField(fields, "newEmail");
        const password = fields.requiredText("password", SECRET_MAX_CHARACTERS);
        const redirect = redirectText(fields);
        fields.finish();
        const url = redirectField(redirect, redirectUrls);
        await auth.confirmPassword(caller, clientOf(context), password);
        await flows.requestEmailChange(caller, newEmail, url);
        return OK;
      },
    },
    {
      ...{ path: "verify-email-change", summary: "Change the address; every session ends", security: "public" },
      ...{ body: { token }, answers: done, errors: [400, 403, 409] },
      async handler(context) {
        await flows.verifyEmailChange(await tokenOf(context));
        return OK;
      },
    },
  ];
}

function signInEndpoints({ config }: RouteDeps, flows: EmailFlows): Endpoint[] {
  const linkEnabled = () => requireEnabled(config.magicLink === true, "Signing in by magic link");
  const redirectUrls = config.redirectUrls ?? [];
  const codeEnabled = () => requireEnabled(config.emailOtp === true, "Signing in by email code");
  return [
    {
      ...{ path: "signin/magic-link", summary: "Mail a link that signs in", security: "public" },
      ...{ body: { email: Email, redirectUrl }, answers: accepted, errors: [400, 404] },
      async handler(context) {
        linkEnabled();
        const fields = new Fields(await context.jsonObject());
        const email = emailField(fields);
        const redirect = redirectText(fields);
        fields.finish();
        await flows.requestMagicLink(email, redirectField(redirect, redirectUrls));
        return OK;
      },
    },
    {
      ...{ path: "verify-magic-link", summary: "Sign in with the token of a magic link", security: "public" },
      ...{ body: { token }, answers: signedIn, errors: [400, 403, 404] },
      async handler(context) {
        linkEnabled();
        const fields = new Fields(await context.jsonObject());
        const text = fields.requiredText("token", TOKEN_MAX_CHARACTERS);
        fields.finish();
        return flows.verifyMagicLink(text, clientOf(context));
      },
    },
    {
      ...{ path: "signin/email-otp", summary: "Mail a code that signs in", security: "public" },
      ...{ body: { email: Email, redirectUrl }, answers: accepted, errors: [400, 404] },
      async handler(context) {
        codeEnabled();
        const fields = new Fields(await context.jsonObject());
        const email = emailField(fields);
        const redirect = redirectText(fields);
        fields.finish();
        // Checked as everywhere, and used for nothing: the mail has a code and no link.
        redirectField(redirect, redirectUrls);
        await flows.requestCode(email);
        return OK;
      },
    },
    {
      ...{ path: "verify-email-otp", summary: "Sign in with a mailed code", security: "public" },
      ...{ body: { email: Email, code: Type.String() }, answers: signedIn, errors: [400, 403, 404] },
      async handler(context) {
        codeEnabled();
        const fields = new Fields(await context.jsonObject());
        const email = emailField(fields);
        const code = fields.requiredText("code", TOKEN_MAX_CHARACTERS);
        fields.finish();
        return flows.verifyCode(email, code, clientOf(context));
      },
    },
  ];
}
