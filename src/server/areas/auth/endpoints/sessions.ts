import { Type } from "typebox";
import { forbidden, unauthorized } from "../../../../kernel/errors.ts";
import { optional } from "../../../../kernel/schema/types.ts";
import { requireMetadataSize } from "../../../access/accounts.ts";
import { OwnSession } from "../../../config/shapes/sign-in.ts";
import { OwnUser, ProfileChanges } from "../../../config/shapes/users.ts";
import { type Endpoint, endpoint } from "../../../http/endpoint.ts";
import { OK } from "../../../http/reply.ts";
import { callerOf, clientOf, type EndpointDeps, ofUsers } from "./parts.ts";
import { SECRET_TEXT_MAX_CHARACTERS } from "../limits.ts";
import { Ok, Secret, tokensAnswer } from "./schemas.ts";
import type { SessionService } from "../service/sessions.ts";

export function sessionEndpoints(deps: EndpointDeps, service: SessionService): readonly Endpoint[] {
  return [refresh(deps, service), signOut(deps, service), ...profile(deps, service), ...sessions(deps, service)];
}

const refresh = ({ authLimit }: EndpointDeps, service: SessionService): Endpoint =>
  endpoint(
    "POST /api/auth/refresh",
    {
      ...ofUsers(authLimit),
      summary: "Exchange a refresh token for new tokens",
      description:
        "The refresh token changes each time. The old one is accepted for another 30 s; used later, it ends the session.",
      caller: "public",
      place: "core",
      body: Type.Object({ refreshToken: Secret }),
      answers: { 200: tokensAnswer("New tokens") },
    },
    async (context) => {
      const { refreshToken } = await context.body();
      return service.refresh(refreshToken, clientOf(context));
    },
  );

const signOut = ({ authLimit }: EndpointDeps, service: SessionService): Endpoint =>
  endpoint(
    "POST /api/auth/signout",
    {
      ...ofUsers(authLimit),
      summary: "Sign out: end the session of the refresh token, or of the bearer",
      caller: "public",
      place: "core",
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
        await service.signOut(refreshToken);
        return OK;
      }
      if (principal.kind !== "user") throw unauthorized();
      const { userId, sessionId } = callerOf(principal);
      await service.endSession(userId, sessionId);
      return OK;
    },
  );

function profile({ authLimit }: EndpointDeps, service: SessionService): readonly Endpoint[] {
  const me = endpoint(
    "GET /api/auth/me",
    {
      ...ofUsers(authLimit),
      summary: "Get your profile",
      caller: "user",
      place: "core",
      answers: { 200: Type.Object({ user: OwnUser }, { description: "The signed-in user" }) },
    },
    ({ principal, query }) => {
      query();
      return { user: service.me(callerOf(principal)) };
    },
  );
  const updateMe = endpoint(
    "PATCH /api/auth/me",
    {
      ...ofUsers(authLimit),
      summary: "Change your profile",
      caller: "user",
      place: "core",
      body: ProfileChanges,
      answers: { 200: Type.Object({ user: OwnUser }, { description: "The user after the change" }) },
    },
    async ({ principal, body }) => {
      const changes = await body();
      requireMetadataSize({ metadata: changes.metadata });
      return { user: await service.updateMe(callerOf(principal), changes) };
    },
  );
  const deleteMe = endpoint(
    "DELETE /api/auth/me",
    {
      ...ofUsers(authLimit),
      summary: "Delete your account, after a sign-in of the last 10 minutes",
      caller: "user",
      place: "core",
      answers: {
        200: Type.Object({ ok: Type.Literal(true) }, { description: "Deleted, with its sessions and devices" }),
      },
    },
    async ({ principal, query }) => {
      query();
      await service.deleteMe(callerOf(principal));
      return OK;
    },
  );
  return [me, updateMe, deleteMe];
}

function sessions({ authLimit }: EndpointDeps, service: SessionService): readonly Endpoint[] {
  const list = endpoint(
    "GET /api/auth/sessions",
    {
      ...ofUsers(authLimit),
      summary: "List your sessions, newest first",
      caller: "user",
      place: "core",
      answers: { 200: Type.Object({ sessions: Type.Array(OwnSession) }, { description: "The sessions" }) },
    },
    ({ principal, query }) => {
      query();
      return { sessions: service.sessions(callerOf(principal)) };
    },
  );
  const end = endpoint(
    "DELETE /api/auth/sessions/:id",
    {
      ...ofUsers(authLimit),
      summary: "End one of your sessions",
      caller: "user",
      place: "core",
      path: { id: "The session's id" },
      answers: {
        200: Type.Object({ ok: Type.Literal(true) }, { description: "Ended; its tokens are refused from now on" }),
      },
      errors: [404],
    },
    async ({ principal, params, query }) => {
      query();
      await service.endSession(callerOf(principal).userId, params.id);
      return OK;
    },
  );
  return [list, end];
}
