import { type AnyElysia, Elysia } from "elysia";
import { type TSchema, Type } from "typebox";
import { requireServiceKey } from "../access/service-key-right.ts";
import type { Http, RequestContext } from "../http/http.ts";
import { SMALL_BODY_MAX_BYTES } from "../http/limits.ts";
import { operation } from "../http/operation.ts";
import { created, OK } from "../http/reply.ts";
import type { MaybePromise } from "../kernel/maybe-promise.ts";
import { parseListQuery } from "./list-query.ts";
import type { UsersService } from "./service.ts";

const tag = "Administration";
const security = "serviceKey";
const path = { id: "The user's id" };
const nullable = (schema: TSchema): TSchema => Type.Union([schema, Type.Null()]);
const AnyObject = Type.Record(Type.String(), Type.Unknown());
const Time = Type.String({ format: "date-time" });
const ok = { 200: { description: "Done", schema: Type.Object({ ok: Type.Literal(true) }) } };

const entry = {
  ...{ id: Type.String(), email: nullable(Type.String()), displayName: nullable(Type.String()), role: Type.String() },
  ...{ emailVerified: Type.Boolean(), isAnonymous: Type.Boolean(), disabled: Type.Boolean(), createdAt: Time },
};
const ListSchema = Type.Object({ users: Type.Array(Type.Object(entry)), cursor: nullable(Type.String()) });
const user = {
  ...entry,
  avatarUrl: nullable(Type.String()),
  emailVisibility: Type.String(),
  metadata: AnyObject,
  appMetadata: AnyObject,
  customClaims: AnyObject,
};
const UserSchema = Type.Object(user);
const DetailSchema = Type.Object({ ...user, name: nullable(Type.String({ description: "The displayName" })) });
const CreatedSchema = Type.Object({ user: UserSchema });
const ChangesBody = Type.Partial(
  Type.Object({
    displayName: nullable(Type.String()),
    avatarUrl: nullable(Type.String()),
    role: Type.String(),
    emailVisibility: Type.Union([Type.Literal("public"), Type.Literal("private")]),
    disabled: Type.Boolean(),
    metadata: AnyObject,
    appMetadata: AnyObject,
  }),
);
const ImportedUser = Type.Object({
  id: Type.Optional(Type.String()),
  email: Type.String({ format: "email" }),
  password: Type.Optional(Type.String()),
  passwordHash: Type.Optional(
    Type.String({ description: "bcrypt or pbkdf2:sha256:ITERATIONS:BASE64_SALT:BASE64_HASH" }),
  ),
  displayName: Type.Optional(nullable(Type.String())),
  avatarUrl: Type.Optional(nullable(Type.String())),
  role: Type.Optional(Type.String()),
  verified: Type.Optional(Type.Boolean()),
  metadata: Type.Optional(AnyObject),
  appMetadata: Type.Optional(AnyObject),
});

/** Every one of them wants the service key. Spec: Administration endpoints. */
export function userRoutes(http: Http, users: UsersService, limit: (address: string) => void): AnyElysia {
  const guarded = (
    action: "read" | "write",
    handler: (context: RequestContext, id: string) => MaybePromise<unknown>,
    bodyMaxBytes: number = SMALL_BODY_MAX_BYTES,
  ) =>
    http.route(
      (context) => {
        requireServiceKey(context.principal, ["auth", "admin", "*", action]);
        return handler(context, context.params["id"] ?? "");
      },
      { limit, bodyMaxBytes },
    );
  const list = guarded("read", ({ query }) => users.list(parseListQuery(query())));
  const create = guarded("write", async ({ jsonObject }) => created(await users.create(await jsonObject())));
  const update = guarded("write", async ({ jsonObject }, id) => users.update(id, await jsonObject()));
  const claims = guarded("write", async ({ jsonObject }, id) => {
    await users.setClaims(id, await jsonObject());
    return OK;
  });
  const acknowledge =
    (work: (id: string) => Promise<void>) =>
    async ({ query }: RequestContext, id: string) => {
      query().refuseUnknown();
      await work(id);
      return OK;
    };

  return new Elysia()
    .get(
      "/api/auth/admin/users",
      list,
      operation({
        ...{ tag, summary: "List users in order of creation, or find some", security, errors: [400, 401, 403] },
        description:
          "With `q`, those whose email begins so come first, by email, then the others, by name; a page may be short, and its cursor leads on.",
        query: [
          { name: "limit", description: "1 to 1000; 20 by default", schema: Type.Integer() },
          { name: "cursor", description: "`0` is the start" },
          { name: "email", description: "Only the user with this address, in letters of either case" },
          { name: "q", description: "Only users whose email or display name begins so, letters A-Z of either case" },
        ],
        answers: { 200: { description: "A page; `cursor` is null on the last one", schema: ListSchema } },
      }),
    )
    .post(
      "/api/auth/admin/users",
      create,
      operation({
        ...{ tag, summary: "Create a user", security, errors: [400, 401, 403, 409] },
        body: {
          schema: Type.Object({
            email: Type.String({ format: "email" }),
            password: Type.String(),
            displayName: Type.Optional(nullable(Type.String())),
            role: Type.Optional(Type.String({ default: "user" })),
          }),
        },
        answers: { 201: { description: "The user; no tokens", schema: CreatedSchema } },
      }),
    )
    .post(
      "/api/admin/auth/users/import",
      guarded("write", async ({ jsonObject }) => users.import(await jsonObject()), Number.POSITIVE_INFINITY),
      operation({
        ...{ tag, summary: "Import up to 1,000 users, all or none", security, errors: [400, 401, 403, 409] },
        body: { schema: Type.Object({ users: Type.Array(ImportedUser, { maxItems: 1_000 }) }) },
        answers: {
          200: {
            description: "In the order given",
            schema: Type.Object({
              results: Type.Array(Type.Object({ id: Type.String(), success: Type.Literal(true) })),
            }),
          },
        },
      }),
    )
    .use(oneUserRoutes({ guarded, update, claims, acknowledge }, users));
}

type Route = ReturnType<Http["route"]>;
type UserHandler = (context: RequestContext, id: string) => MaybePromise<unknown>;

interface OneUserHandlers {
  guarded: (action: "read" | "write", handler: UserHandler) => Route;
  update: Route;
  claims: Route;
  acknowledge: (work: (id: string) => Promise<void>) => UserHandler;
}

function oneUserRoutes({ guarded, update, claims, acknowledge }: OneUserHandlers, users: UsersService): AnyElysia {
  const errors = [401, 403, 404];
  return new Elysia()
    .get(
      "/api/auth/admin/users/:id",
      guarded("read", ({ query }, id) => {
        query().refuseUnknown();
        return users.get(id);
      }),
      operation({
        ...{ tag, summary: "Read a user", security, path, errors },
        answers: { 200: { description: "The user", schema: DetailSchema } },
      }),
    )
    .patch(
      "/api/auth/admin/users/:id",
      update,
      operation({
        ...{ tag, summary: "Change a user; `disabled: true` ends every session", security, path },
        errors: [400, ...errors, 413],
        body: { schema: ChangesBody },
        answers: { 200: { description: "The user as it is now", schema: UserSchema } },
      }),
    )
    .delete(
      "/api/auth/admin/users/:id",
      guarded("write", acknowledge(users.remove)),
      operation({ ...{ tag, summary: "Delete a user", security, path, errors }, answers: ok }),
    )
    .put(
      "/api/auth/admin/users/:id/claims",
      claims,
      operation({
        ...{ tag, summary: "Replace the custom claims; they come with the next token", security, path },
        errors: [400, ...errors, 413],
        body: { schema: AnyObject },
        answers: ok,
      }),
    )
    .post(
      "/api/auth/admin/users/:id/revoke",
      guarded("write", acknowledge(users.revoke)),
      operation({ ...{ tag, summary: "End every session of a user", security, path, errors }, answers: ok }),
    )
    .delete(
      "/api/auth/admin/users/:id/mfa",
      guarded("write", acknowledge(users.removeFactors)),
      operation({ ...{ tag, summary: "Remove factors and recovery codes", security, path, errors }, answers: ok }),
    );
}
