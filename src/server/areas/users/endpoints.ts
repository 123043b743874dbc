import { Type } from "typebox";
import type { JsonObject } from "../../../kernel/json/json.ts";
import { AnyObject, nullable } from "../../../kernel/schema/types.ts";
import type { AccountMail, Accounts, RemovableMeans } from "../../access/accounts.ts";
import { actorOf, type Principal } from "../../access/principal.ts";
import { requireServiceKey } from "../../access/service-key-right.ts";
import { SignInMeans } from "../../config/shapes/sign-in.ts";
import {
  createdUser,
  RedirectUrl,
  User,
  UserEntry,
  UserInvitation,
  userChanges,
  userImport,
} from "../../config/shapes/users.ts";
import type { Actor } from "../../db/index.ts";
import { type Endpoint, endpoint } from "../../http/endpoint.ts";
import { SMALL_BODY_MAX_BYTES } from "../../http/limits.ts";
import { created, OK } from "../../http/reply.ts";
import { LIST_QUERY, readListQuery } from "./list-query.ts";
import {
  createUser,
  getUser,
  importUsers,
  inviteUser,
  listUsers,
  setClaims,
  UserDetail,
  updateUser,
} from "./service.ts";

interface EndpointDeps {
  accounts: Accounts;
  /** The names of `auth.oauth`. */
  providers: ReadonlySet<string>;
  passwordMinLength: number;
  /** Counts one request of this network in the rate limit group `auth`. */
  limit: (network: string) => void;
}

const USER_ID_MAX_CHARACTERS = 256;
const OF_USER = { id: "The user's id" };
const DONE = { 200: Type.Object({ ok: Type.Literal(true) }, { description: "Done" }) };

const UserList = Type.Object(
  { users: Type.Array(UserEntry), cursor: nullable(Type.String()) },
  { description: "A page; `cursor` is null on the last one" },
);
const NewAnswer = Type.Object({ user: User }, { description: "The user; no tokens" });
const InvitedAnswer = Type.Object(
  { user: User, link: Type.Optional(Type.String({ description: "Only with `sendMail: false`" })) },
  { description: "The user; no tokens" },
);
const Deleted = Type.Object(
  {
    ok: Type.Literal(true),
    report: Type.Object({
      records: Type.Record(Type.String(), Type.Integer(), {
        description: "Records that were changed or deleted because they referred to the user, by namespace/table",
      }),
      sessions: Type.Integer(),
      factors: Type.Integer(),
      identities: Type.Integer(),
      passkeys: Type.Integer(),
    }),
  },
  { description: "Done, with the numbers of what has ended" },
);
const Imported = Type.Object(
  { results: Type.Array(Type.Object({ id: Type.String(), success: Type.Literal(true) })) },
  { description: "In the order of the request" },
);

/** The administration of users, with a service key. */
export function userEndpoints(deps: EndpointDeps): readonly Endpoint[] {
  return [list(deps), create(deps), invite(deps), imports(deps), ...oneUser(deps), ...actions(deps), ...means(deps)];
}

const ofAdministration = (limit: EndpointDeps["limit"]) =>
  ({ tag: "Administration", caller: "serviceKey", place: "core", bodyMaxBytes: SMALL_BODY_MAX_BYTES, limit }) as const;

function requireRight(principal: Principal, action: "read" | "write"): void {
  requireServiceKey(principal, ["auth", "admin", "*", action]);
}

/** The scope for what can take an account over. */
const CREDENTIALS = ["auth", "credentials", "*", "write"] as const;

const WITHOUT_READ = "A key without `auth:admin:*:read` gets the id and the fields that it has sent.";

/** The user as a key may see it: with a right to write alone, its id and what was sent. [US205] */
function shownTo<User extends { id: string }>(principal: Principal, user: User, sent: object): Partial<User> {
  if (principal.kind !== "serviceKey" || principal.scopes.allows("auth", "admin", "*", "read")) return user;
  const isSent = ([name]: [string, unknown]): boolean => name === "id" || Object.hasOwn(sent, name);
  // Some of its own members.
  return Object.fromEntries(Object.entries(user).filter(isSent)) as Partial<User>;
}

const list = ({ accounts, limit }: EndpointDeps): Endpoint =>
  endpoint(
    "GET /api/auth/admin/users",
    {
      ...ofAdministration(limit),
      summary: "List users in order of creation, or search for some",
      description:
        "With `q`, users whose email begins so come first, by email, then the others, by name. A page may be short; its cursor leads to the next one.",
      query: LIST_QUERY,
      answers: { 200: UserList },
      errors: [400],
    },
    ({ principal, query }) => {
      requireRight(principal, "read");
      return listUsers(accounts, readListQuery(query()));
    },
  );

const create = ({ accounts, passwordMinLength, limit }: EndpointDeps): Endpoint =>
  endpoint(
    "POST /api/auth/admin/users",
    {
      ...ofAdministration(limit),
      summary: "Create a user",
      body: createdUser(passwordMinLength),
      answers: { 201: NewAnswer },
      errors: [409],
    },
    async ({ principal, body }) => {
      requireRight(principal, "write");
      return created({ user: await createUser(accounts, await body(), actorOf(principal)) });
    },
  );

const invite = ({ accounts, limit }: EndpointDeps): Endpoint =>
  endpoint(
    "POST /api/auth/admin/users/invite",
    {
      ...ofAdministration(limit),
      summary: "Invite a user: mail a link, valid for 7 days, at which a password is set",
      description: `Repeated for the same address, it mails a new link, and the earlier one becomes invalid, unless both have \`data\`. A user who has signed in is 409 without \`data\`. \`sendMail: false\` needs \`auth:credentials:*:write\`. ${WITHOUT_READ}`,
      body: UserInvitation,
      answers: { 201: InvitedAnswer },
      errors: [409],
    },
    async ({ principal, body }) => {
      requireRight(principal, "write");
      const invitation = await body();
      // Who has the link, and not the owner of the address, sets the password.
      if (invitation.sendMail === false) requireServiceKey(principal, CREDENTIALS);
      const { user, link } = await inviteUser(accounts, invitation, actorOf(principal));
      const shown = shownTo(principal, user, invitation);
      return created(invitation.sendMail === false ? { user: shown, link } : { user: shown });
    },
  );

const imports = ({ accounts, providers, passwordMinLength, limit }: EndpointDeps): Endpoint =>
  endpoint(
    "POST /api/admin/auth/users/import",
    {
      tag: "Administration",
      caller: "serviceKey",
      place: "core",
      summary: "Import up to 1,000 users, all or none",
      description:
        "An account without `password` and `passwordHash` signs in by link, code or provider, or sets a password by mail. `identities` are accounts at providers of `auth.oauth`.",
      limit,
      body: userImport(passwordMinLength),
      answers: { 200: Imported },
      errors: [409],
    },
    async ({ principal, body }) => {
      requireRight(principal, "write");
      const { users } = await body();
      return importUsers(accounts, { users, providers }, actorOf(principal));
    },
  );

/** An endpoint that takes nothing but the user's id. */
const action = (
  { limit }: EndpointDeps,
  route: `${"POST" | "DELETE"} /api/auth/admin/users/:id/${string}`,
  summary: string,
  perform: (id: string, by: Actor) => Promise<void>,
): Endpoint =>
  endpoint(
    // Each of these paths has this one parameter, which the type of the parts cannot say.
    route as "POST /api/auth/admin/users/:id",
    { ...ofAdministration(limit), summary, path: OF_USER, answers: DONE, errors: [404] },
    async ({ principal, params, query }) => {
      requireRight(principal, "write");
      query();
      await perform(params.id, actorOf(principal));
      return OK;
    },
  );

function oneUser(deps: EndpointDeps): readonly Endpoint[] {
  const { accounts, limit } = deps;
  const read = endpoint(
    "GET /api/auth/admin/users/:id",
    {
      ...ofAdministration(limit),
      summary: "Get a user",
      path: OF_USER,
      answers: { 200: UserDetail },
      errors: [404],
    },
    ({ principal, params, query }) => {
      requireRight(principal, "read");
      query();
      return getUser(accounts, params.id);
    },
  );
  const update = endpoint(
    "PATCH /api/auth/admin/users/:id",
    {
      ...ofAdministration(limit),
      summary: "Change a user; `disabled: true` ends every session",
      description: `\`email\`, \`emailVerified\`, \`phone\` and \`password\` need the scope \`auth:credentials:*:write\` too. Another address ends every session and is unverified unless said otherwise; a password ends every session and removes the passkeys unless \`keepPasskeys\` is true. Links that were mailed before become invalid. ${WITHOUT_READ}`,
      path: OF_USER,
      body: userChanges(deps.passwordMinLength),
      answers: { 200: Type.Object(User.properties, { description: "The user after the change" }) },
      errors: [404, 409],
    },
    async ({ principal, params, body }) => {
      requireRight(principal, "write");
      const changes = await body();
      // Whoever sets them can take the account over.
      const credentials = [changes.email, changes.emailVerified, changes.phone, changes.password];
      if (credentials.some((value) => value !== undefined)) {
        requireServiceKey(principal, CREDENTIALS);
      }
      return shownTo(principal, await updateUser(accounts, params.id, changes, actorOf(principal)), changes);
    },
  );
  const remove = endpoint(
    "DELETE /api/auth/admin/users/:id",
    {
      ...ofAdministration(limit),
      summary: "Delete a user",
      path: OF_USER,
      answers: { 200: Deleted },
      errors: [404, 409],
    },
    async ({ principal, params, query }) => {
      requireRight(principal, "write");
      query();
      return { ...OK, report: await accounts.remove(params.id, actorOf(principal)) };
    },
  );
  return [read, update, remove];
}

const MAILS: readonly { path: string; mail: AccountMail; summary: string }[] = [
  { path: "send-reset", mail: "reset", summary: "Mail a user a link that sets a new password" },
  { path: "send-verification", mail: "verification", summary: "Mail a user a link that verifies the email address" },
];

const mails = ({ accounts, limit }: EndpointDeps): readonly Endpoint[] =>
  MAILS.map(({ path, mail, summary }) =>
    endpoint(
      `POST /api/auth/admin/users/:id/${path}`,
      {
        ...ofAdministration(limit),
        summary,
        description: "400 for a user without an address, 409 for one who is disabled or whose address is verified.",
        path: OF_USER,
        body: Type.Object({ redirectUrl: RedirectUrl }),
        isBodyOptional: true,
        answers: DONE,
        errors: [404, 409],
      },
      async ({ principal, params, body }) => {
        requireRight(principal, "write");
        const { redirectUrl } = await body();
        await accounts.sendMail(params.id, mail, redirectUrl ?? null, actorOf(principal));
        return OK;
      },
    ),
  );

const Merged = Type.Object(
  {
    records: Type.Record(Type.String(), Type.Integer(), { description: "Moved records, by namespace/table" }),
    files: Type.Integer(),
    identities: Type.Integer(),
  },
  { description: "What has moved, or would move" },
);

const merge = ({ accounts, limit }: EndpointDeps): Endpoint =>
  endpoint(
    "POST /api/auth/admin/users/:id/merge",
    {
      ...ofAdministration(limit),
      summary: "Make another account part of this one, with its records, files and ways to sign in",
      description:
        "References to the table of users, files, identities, passkeys and devices of `from` become those of this user, who keeps role, claims, address and password. Password, factors, sessions and the account of `from` go. Both are told by mail. With `preview` nothing changes. 409, and nothing has moved, where both have the value of a unique field, and for too much at once. Needs `auth:credentials:*:write` too.",
      path: OF_USER,
      body: Type.Object({
        from: Type.String({
          minLength: 1,
          maxLength: USER_ID_MAX_CHARACTERS,
          description: "The id of the account that goes",
        }),
        preview: Type.Optional(Type.Boolean({ default: false })),
      }),
      answers: { 200: Merged },
      errors: [404, 409],
    },
    async ({ principal, params, body }) => {
      requireRight(principal, "write");
      requireServiceKey(principal, CREDENTIALS);
      const { from, preview = false } = await body();
      return accounts.merge({ into: params.id, from, isPreview: preview }, actorOf(principal));
    },
  );

function actions(deps: EndpointDeps): readonly Endpoint[] {
  const { accounts, limit } = deps;
  const claims = endpoint(
    "PUT /api/auth/admin/users/:id/claims",
    {
      ...ofAdministration(limit),
      summary: "Replace a user's custom claims, which the next token contains",
      path: OF_USER,
      body: AnyObject,
      answers: DONE,
      errors: [404],
    },
    async ({ principal, params, body }) => {
      requireRight(principal, "write");
      // A parsed body is JSON.
      await setClaims(accounts, params.id, (await body()) as JsonObject, actorOf(principal));
      return OK;
    },
  );
  const revoke = action(deps, "POST /api/auth/admin/users/:id/revoke", "End every session of a user", accounts.revoke);
  const removeFactors = action(
    deps,
    "DELETE /api/auth/admin/users/:id/mfa",
    "Remove a user's MFA factors and recovery codes",
    accounts.removeFactors,
  );
  return [claims, revoke, removeFactors, merge(deps), ...mails(deps)];
}

const REMOVALS: readonly { kind: RemovableMeans; path: string; summary: string }[] = [
  { kind: "session", path: "sessions", summary: "End a session of a user" },
  { kind: "identity", path: "identities", summary: "Remove an OAuth identity of a user" },
  { kind: "passkey", path: "passkeys", summary: "Remove a passkey of a user" },
];

/** Sessions of a user, and ways of signing in. */
function means({ accounts, limit }: EndpointDeps): readonly Endpoint[] {
  const common = { tag: "Administration", limit, caller: "serviceKey", place: "core" } as const;
  const read = endpoint(
    "GET /api/auth/admin/users/:id/means",
    {
      ...common,
      summary: "List a user's sessions, second factors, OAuth identities and passkeys",
      path: OF_USER,
      answers: { 200: SignInMeans },
      errors: [404],
    },
    ({ principal, params, query }) => {
      requireRight(principal, "read");
      query();
      return accounts.means(params.id);
    },
  );
  const sessions = endpoint(
    "GET /api/auth/admin/users/:id/sessions",
    {
      ...common,
      summary: "List a user's live sessions, newest first, at most 100",
      path: OF_USER,
      answers: { 200: Type.Pick(SignInMeans, ["sessions"]) },
      errors: [404],
    },
    ({ principal, params, query }) => {
      requireRight(principal, "read");
      query();
      return { sessions: accounts.means(params.id).sessions };
    },
  );
  const removals = REMOVALS.map(({ kind, path, summary }) =>
    endpoint(
      `DELETE /api/auth/admin/users/:id/${path}/:means`,
      {
        ...common,
        summary,
        description: "Also the last way to sign in.",
        path: { ...OF_USER, means: "The id, as listed" },
        answers: DONE,
        errors: [404],
      },
      async ({ principal, params, query }) => {
        requireRight(principal, "write");
        query();
        await accounts.removeMeans(params.id, { kind, id: params.means }, actorOf(principal));
        return OK;
      },
    ),
  );
  return [read, sessions, ...removals];
}
