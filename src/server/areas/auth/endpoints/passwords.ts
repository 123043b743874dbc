import { Type } from "typebox";
import { Email } from "../../../config/shapes/user-fields.ts";
import { RedirectUrl } from "../../../config/shapes/users.ts";
import { type Endpoint, endpoint } from "../../../http/endpoint.ts";
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
import { Secret, SignedIn, tokensAnswer } from "./schemas.ts";
import type { PasswordService } from "../service/passwords.ts";

export function passwordEndpoints(deps: EndpointDeps, service: PasswordService): readonly Endpoint[] {
  return [signIn(deps, service), changePassword(deps, service)];
}

const signIn = (deps: EndpointDeps, service: PasswordService): Endpoint =>
  endpoint(
    "POST /api/auth/signin",
    {
      ...ofUsers(deps.authLimit),
      summary: "Sign in with email and password",
      caller: "public",
      place: "core",
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
      return service.signIn({ email: deps.addressOf(email), password, redirect }, clientOf(context));
    },
  );

const changePassword = (deps: EndpointDeps, service: PasswordService): Endpoint =>
  endpoint(
    "POST /api/auth/change-password",
    {
      ...ofUsers(deps.authLimit),
      summary: "Change your password; every other session ends",
      caller: "user",
      place: "core",
      body: Type.Object({ currentPassword: Secret, newPassword: chosenPassword(deps) }),
      answers: { 200: tokensAnswer("New tokens of this session") },
    },
    async (context) => {
      const caller = callerOf(context.principal);
      const { currentPassword, newPassword: next } = await context.body();
      return service.changePassword(caller, clientOf(context), currentPassword, next);
    },
  );
