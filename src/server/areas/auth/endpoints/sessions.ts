import { Type } from "typebox";
import { forbidden, unauthorized } from "../../../../kernel/errors.ts";
import { optional } from "../../../../kernel/schema/types.ts";
import { requireMetadataSize } from "../../../access/accounts.ts";
import { OwnSession } from "../../../config/shapes/sign-in.ts";
import { OwnUser, ProfileChanges } from "../../../config/shapes/users.ts";
import { type Endpoint, endpoint } from "../../../http/endpoint.ts";
import { OK } from "../../../http/reply.ts";
import { SECRET_TEXT_MAX_CHARACTERS } from "../limits.ts";
import { deleteMe, endSession, me, refresh, sessionsOf, signOut, updateMe } from "../service/sessions.ts";
import { callerOf, clientOf, type EndpointDeps, Ok, ofUsers, Secret, tokensAnswer } from "./parts.ts";

export function sessionEndpoints(deps: EndpointDeps): readonly Endpoint[] {
  return [refreshing(deps), signingOut(deps), ...profile(deps), ...sessions(deps)];
}

const refreshing = (deps: EndpointDeps): Endpoint =>
  endpoint(
    "POST /api/auth/refresh",
    {
      ...ofUsers(deps.authLimit),
      summary: "Exchange a refresh token for new tokens",
      description:
        "The refresh token changes each time. The old one is accepted for another 30 s; used later, it ends the session.",
      caller: "public",
      body: Type.Object({ refreshToken: Secret }),
      answers: { 200: tokensAnswer("New tokens") },
    },
    async (context) => {
      const { refreshToken } = await context.body();
      return refresh(deps, refreshToken, clientOf(context));
    },
  );

const signingOut = (deps: EndpointDeps): Endpoint =>
  endpoint(
    "POST /api/auth/signout",
    {
      ...ofUsers(deps.authLimit),
      summary: "Sign out: end the session of the refresh token, or of the bearer",
      caller: "public",
      body: Type.Object({ refreshToken: optional(Type.String({ maxLength: SECRET_TEXT_MAX_CHARACTERS })) }),
      isBodyOptional: true,
      answers: { 200: Ok },
    },
    async ({ principal, body }) => {
      const { refreshToken } = await body();
      // Whoever acts as a user has no session of theirs, and ends none.
      if (principal.kind !== "serviceKey" && principal.kind !== "server" && principal.actedBy !== undefined) {
        throw forbidden("Acting as a user does not cover what changes their account");
      }
      if (typeof refreshToken === "string") {
        await signOut(deps, refreshToken);
        return OK;
      }
      if (principal.kind !== "user") throw unauthorized();
      const { userId, sessionId } = callerOf(principal);
      await endSession(deps, userId, sessionId);
      return OK;
    },
  );

function profile(deps: EndpointDeps): readonly Endpoint[] {
  const read = endpoint(
    "GET /api/auth/me",
    {
      ...ofUsers(deps.authLimit),
      summary: "Get your profile",
      caller: "user",
      answers: { 200: Type.Object({ user: OwnUser }, { description: "The signed-in user" }) },
    },
    ({ principal, query }) => {
      query();
      return { user: me(deps, callerOf(principal)) };
    },
  );
  const update = endpoint(
    "PATCH /api/auth/me",
    {
      ...ofUsers(deps.authLimit),
      summary: "Change your profile",
      caller: "user",
      body: ProfileChanges,
      answers: { 200: Type.Object({ user: OwnUser }, { description: "The user after the change" }) },
    },
    async ({ principal, body }) => {
      const changes = await body();
      requireMetadataSize({ metadata: changes.metadata });
      return { user: await updateMe(deps, callerOf(principal), changes) };
    },
  );
  const remove = endpoint(
    "DELETE /api/auth/me",
    {
      ...ofUsers(deps.authLimit),
      summary: "Delete your account, after a sign-in of the last 10 minutes",
      caller: "user",
      answers: {
        200: Type.Object({ ok: Type.Literal(true) }, { description: "Deleted, with its sessions and devices" }),
      },
    },
    async ({ principal, query }) => {
      query();
      await deleteMe(deps, callerOf(principal));
      return OK;
    },
  );
  return [read, update, remove];
}

function sessions(deps: EndpointDeps): readonly Endpoint[] {
  const list = endpoint(
    "GET /api/auth/sessions",
    {
      ...ofUsers(deps.authLimit),
      summary: "List your sessions, newest first",
      caller: "user",
      answers: { 200: Type.Object({ sessions: Type.Array(OwnSession) }, { description: "The sessions" }) },
    },
    ({ principal, query }) => {
      query();
      return { sessions: sessionsOf(deps, callerOf(principal)) };
    },
  );
  const end = endpoint(
    "DELETE /api/auth/sessions/:id",
    {
      ...ofUsers(deps.authLimit),
      summary: "End one of your sessions",
      caller: "user",
      path: { id: "The session's id" },
      answers: {
        200: Type.Object({ ok: Type.Literal(true) }, { description: "Ended; its tokens are refused from now on" }),
      },
      errors: [404],
    },
    async ({ principal, params, query }) => {
      query();
      await endSession(deps, callerOf(principal).userId, params.id);
      return OK;
    },
  );
  return [list, end];
}
