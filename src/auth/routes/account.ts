import { type AnyElysia, Elysia } from "elysia";
import { Type } from "typebox";
import {
  avatarUrlField,
  displayNameField,
  emailField,
  emailVisibilityField,
  metadataField,
  newPasswordField,
} from "../../access/account-fields.ts";
import { PASSWORD_MIN_CHARACTERS } from "../../access/limits.ts";
import type { AuthConfig } from "../../config/types.ts";
import type { Http } from "../../http/http.ts";
import { operation, optional } from "../../http/operation.ts";
import { created, OK } from "../../http/reply.ts";
import { Fields } from "../../kernel/fields.ts";
import type { AuthService } from "../service.ts";
import { callerOf, clientOf, optionalBody, requireEnabled } from "./context.ts";
import { OkSchema, ProfileBody, SessionsSchema, SignInSchema, TokenSchema, UserAnswerSchema } from "./schemas.ts";

/** Longer than any token or password that may be right: what is longer is not looked at. */
const SECRET_MAX_CHARACTERS = 4096;

export interface RouteDeps {
  http: Http;
  config: AuthConfig;
  /** Counts one request of this address in the group `auth`. */
  authLimit: (address: string) => void;
  /** The same, and in the group `signup`. */
  signUpLimit: (address: string) => void;
}

const tag = "Auth";

export function passwordRoutes({ http, config, authLimit, signUpLimit }: RouteDeps, auth: AuthService): AnyElysia {
  const minLength = config.password?.minLength ?? PASSWORD_MIN_CHARACTERS;
  const isEnabled = config.emailPassword !== false;

  const signUp = http.route(
    async (context) => {
      requireEnabled(isEnabled, "Signing up with email and password");
      const fields = new Fields(await context.jsonObject());
      const email = emailField(fields);
      const password = newPasswordField(fields, minLength);
      const displayName = displayNameField(fields);
      const metadata = metadataField(fields, "metadata");
      fields.finish();
      return created(await auth.signUp({ email, password, displayName, metadata }, clientOf(context)));
    },
    { limit: signUpLimit },
  );
  const signIn = http.route(
    async (context) => {
      requireEnabled(isEnabled, "Signing in with email and password");
      const fields = new Fields(await context.jsonObject());
      const email = emailField(fields);
      const password = fields.requiredText("password", SECRET_MAX_CHARACTERS);
      fields.finish();
      return auth.signIn({ email, password }, clientOf(context));
    },
    { limit: authLimit },
  );
  const anonymous = http.route(
    async (context) => {
      requireEnabled(config.anonymous === true, "Signing in anonymously");
      new Fields(await optionalBody(context)).finish();
      return created(await auth.signInAnonymously(clientOf(context)));
    },
    { limit: signUpLimit },
  );
  const changePassword = http.route(
    async (context) => {
      const caller = callerOf(context);
      const fields = new Fields(await context.jsonObject());
      const current = fields.requiredText("currentPassword", SECRET_MAX_CHARACTERS);
      const next = newPasswordField(fields, minLength, "newPassword");
      fields.finish();
      return auth.changePassword(caller, clientOf(context), current, next);
    },
    { limit: authLimit },
  );
  const linkEmail = http.route(
    async (context) => {
      const caller = callerOf(context);
      requireEnabled(isEnabled, "Signing in with email and password");
      const fields = new Fields(await context.jsonObject());
      const email = emailField(fields);
      const password = newPasswordField(fields, minLength);
      fields.finish();
      return auth.linkEmail(caller, email, password);
    },
    { limit: authLimit },
  );
  return describePasswordRoutes({ signUp, signIn, anonymous, changePassword, linkEmail }, minLength);
}

type Route = ReturnType<Http["route"]>;

function describePasswordRoutes(
  routes: Record<"signUp" | "signIn" | "anonymous" | "changePassword" | "linkEmail", Route>,
  minLength: number,
): AnyElysia {
  const email = Type.String({ format: "email", description: "Trimmed and lower-cased" });
  const password = Type.String({ minLength, description: "At most 1024 bytes" });
  const { displayName, metadata } = ProfileBody;
  const SignUpBody = Type.Object({ email, password, displayName, metadata });
  return new Elysia()
    .post(
      "/api/auth/signup",
      routes.signUp,
      operation({
        ...{ tag, summary: "Sign up with email and password", security: "public", errors: [400, 404, 409, 413] },
        body: { schema: SignUpBody },
        answers: { 201: { description: "The new user, signed in", schema: TokenSchema } },
      }),
    )
    .post(
      "/api/auth/signin",
      routes.signIn,
      operation({
        ...{ tag, summary: "Sign in with email and password", security: "public", errors: [400, 401, 403, 404] },
        body: { schema: Type.Object({ email, password: Type.String() }) },
        answers: { 200: { description: "Tokens, or a ticket for the second factor", schema: SignInSchema } },
      }),
    )
    .post(
      "/api/auth/signin/anonymous",
      routes.anonymous,
      operation({
        ...{ tag, summary: "Sign in as a new user without an address", security: "public", errors: [404] },
        answers: { 201: { description: "The new user, signed in", schema: TokenSchema } },
      }),
    )
    .post(
      "/api/auth/change-password",
      routes.changePassword,
      operation({
        ...{ tag, summary: "Change the password; every other session ends", security: "user", errors: [400, 401] },
        body: { schema: Type.Object({ currentPassword: Type.String(), newPassword: password }) },
        answers: { 200: { description: "New tokens of this session", schema: TokenSchema } },
      }),
    )
    .post(
      "/api/auth/link/email",
      routes.linkEmail,
      operation({
        ...{ tag, summary: "Give an anonymous user an email and a password", security: "user" },
        errors: [400, 401, 404, 409],
        body: { schema: Type.Object({ email, password }) },
        answers: { 200: { description: "The same user, with new tokens", schema: TokenSchema } },
      }),
    );
}

export function sessionRoutes({ http, authLimit }: RouteDeps, auth: AuthService): AnyElysia {
  const limited = { limit: authLimit };
  const refresh = http.route(async (context) => {
    const fields = new Fields(await context.jsonObject());
    const refreshToken = fields.requiredText("refreshToken", SECRET_MAX_CHARACTERS);
    fields.finish();
    return auth.refresh(refreshToken, clientOf(context));
  }, limited);
  const signOut = http.route(async (context) => {
    const fields = new Fields(await optionalBody(context));
    const refreshToken = fields.text("refreshToken", { maxLength: SECRET_MAX_CHARACTERS });
    fields.finish();
    if (refreshToken !== undefined) await auth.signOut(refreshToken);
    else {
      const { userId, sessionId } = callerOf(context);
      await auth.endSession(userId, sessionId);
    }
    return OK;
  }, limited);
  const me = http.route((context) => ({ user: auth.me(callerOf(context)) }), limited);
  const updateMe = http.route(async (context) => {
    const caller = callerOf(context);
    const fields = new Fields(await context.jsonObject());
    const changes = {
      displayName: displayNameField(fields),
      avatarUrl: avatarUrlField(fields),
      emailVisibility: emailVisibilityField(fields),
      metadata: metadataField(fields, "metadata"),
    };
    fields.finish();
    return { user: await auth.updateMe(caller, changes) };
  }, limited);
  const list = http.route((context) => ({ sessions: auth.sessions(callerOf(context)) }), limited);
  const end = http.route(async (context) => {
    await auth.endSession(callerOf(context).userId, context.params["id"] ?? "");
    return OK;
  }, limited);
  return describeSessionRoutes({ refresh, signOut, me, updateMe, list, end });
}

function describeSessionRoutes(
  routes: Record<"refresh" | "signOut" | "me" | "updateMe" | "list" | "end", Route>,
): AnyElysia {
  return new Elysia()
    .post(
      "/api/auth/refresh",
      routes.refresh,
      operation({
        ...{ tag, summary: "New tokens for a refresh token", security: "public", errors: [400, 401] },
        description:
          "The refresh token changes each time. The old one stays good for 30 s; used later, it ends the session.",
        body: { schema: Type.Object({ refreshToken: Type.String() }) },
        answers: { 200: { description: "New tokens", schema: TokenSchema } },
      }),
    )
    .post(
      "/api/auth/signout",
      routes.signOut,
      operation({
        ...{ tag, summary: "End the session of the refresh token, or of the bearer", security: "public" },
        errors: [400, 401],
        body: { schema: Type.Object({ refreshToken: optional(Type.String()) }), isOptional: true },
        answers: { 200: { description: "Signed out", schema: OkSchema } },
      }),
    )
    .get(
      "/api/auth/me",
      routes.me,
      operation({
        ...{ tag, summary: "The signed-in user", security: "user", errors: [401] },
        answers: { 200: { description: "The user", schema: UserAnswerSchema } },
      }),
    )
    .patch(
      "/api/auth/me",
      routes.updateMe,
      operation({
        ...{ tag, summary: "Change the own profile", security: "user", errors: [400, 401, 413] },
        body: { schema: Type.Object(ProfileBody) },
        answers: { 200: { description: "The user as it is now", schema: UserAnswerSchema } },
      }),
    )
    .get(
      "/api/auth/sessions",
      routes.list,
      operation({
        ...{ tag, summary: "The own sessions, newest first", security: "user", errors: [401] },
        answers: { 200: { description: "Sessions", schema: SessionsSchema } },
      }),
    )
    .delete(
      "/api/auth/sessions/:id",
      routes.end,
      operation({
        ...{ tag, summary: "End one of the own sessions", security: "user", errors: [401, 404] },
        path: { id: "The session's id" },
        answers: { 200: { description: "Ended; its tokens are refused from now on", schema: OkSchema } },
      }),
    );
}
