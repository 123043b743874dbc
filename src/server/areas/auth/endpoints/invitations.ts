import { Type } from "typebox";
import { optional } from "../../../../kernel/schema/types.ts";
import { DisplayName } from "../../../config/shapes/user-fields.ts";
import { type Endpoint, endpoint } from "../../../http/endpoint.ts";
import { chosenPassword, clientOf, type EndpointDeps, ofUsers } from "./parts.ts";
import { SignedIn, Token } from "./schemas.ts";
import type { Invitations } from "../service/invitations.ts";

export function invitationEndpoints(deps: EndpointDeps, invitations: Invitations): readonly Endpoint[] {
  const { config } = deps;
  const password = chosenPassword(deps);
  const accept = endpoint(
    "POST /api/auth/accept-invite",
    {
      ...ofUsers(deps.authLimit),
      summary: "Accept an invitation: set a password, and sign in",
      description: "The address counts as verified. Where users do not sign in with passwords, none is needed.",
      caller: "public",
      place: "core",
      body: Type.Object({
        token: Type.String({ ...Token, description: "From the mail; valid once" }),
        // A schema is either of the two: with passwords, a user must set one.
        password: config.emailPassword === false ? optional(password) : password,
        displayName: DisplayName,
      }),
      answers: { 200: SignedIn },
    },
    async (context) => {
      const { token, password: given, displayName } = await context.body();
      return invitations.accept({ token, password: given ?? null, displayName }, clientOf(context));
    },
  );
  return [accept];
}
