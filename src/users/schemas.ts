import { Type } from "typebox";
import {
  AvatarUrl,
  DisplayName,
  Email,
  EmailVisibility,
  Metadata,
  newPassword,
  Role,
} from "../access/account-fields.ts";
import { AnyObject, nullable, optional, refine } from "../kernel/schema/types.ts";
import {
  ID_MAX_CHARACTERS,
  IMPORT_USERS_MAX,
  PASSWORD_HASH_MAX_CHARACTERS,
  REDIRECT_URL_MAX_CHARACTERS,
} from "./limits.ts";

// What the administration takes and answers.

const Time = Type.String({ format: "date-time" });

const entry = {
  id: Type.String(),
  email: nullable(Type.String()),
  displayName: nullable(Type.String()),
  role: Type.String(),
  emailVerified: Type.Boolean(),
  isAnonymous: Type.Boolean(),
  disabled: Type.Boolean(),
  createdAt: Time,
};
const user = {
  ...entry,
  avatarUrl: nullable(Type.String()),
  emailVisibility: Type.String(),
  metadata: AnyObject,
  appMetadata: AnyObject,
  customClaims: AnyObject,
};

export const UserList = Type.Object(
  { users: Type.Array(Type.Object(entry)), cursor: nullable(Type.String()) },
  { description: "A page; `cursor` is null on the last one" },
);
export const User = Type.Object(user, { description: "The user after the change" });
export const UserDetail = Type.Object(
  { ...user, name: nullable(Type.String({ description: "The displayName" })) },
  { description: "The user" },
);
export const SignInMeans = Type.Object(
  {
    sessions: Type.Array(
      Type.Object({
        id: Type.String(),
        createdAt: Time,
        lastUsedAt: Time,
        expiresAt: Time,
        ip: nullable(Type.String()),
        userAgent: nullable(Type.String()),
      }),
      { description: "Live ones, newest first, at most 100" },
    ),
    factors: Type.Array(
      Type.Object({ id: Type.String(), type: Type.Literal("totp"), verified: Type.Boolean(), createdAt: Time }),
    ),
    identities: Type.Array(
      Type.Object({
        id: Type.String(),
        provider: Type.String(),
        email: nullable(Type.String()),
        createdAt: Time,
        lastSignInAt: Time,
      }),
    ),
    passkeys: Type.Array(
      Type.Object({
        id: Type.String(),
        name: nullable(Type.String()),
        deviceType: Type.String(),
        createdAt: Time,
        lastUsedAt: nullable(Time),
      }),
    ),
  },
  { description: "Without secrets" },
);
export const CreatedUser = Type.Object({ user: Type.Object(user) }, { description: "The user; no tokens" });
export const Imported = Type.Object(
  { results: Type.Array(Type.Object({ id: Type.String(), success: Type.Literal(true) })) },
  { description: "In the order of the request" },
);

export const newUser = (passwordMinLength: number) =>
  Type.Object({ email: Email, password: newPassword(passwordMinLength), displayName: DisplayName, role: Role });

/** The address that the link leads to is checked with `auth.redirectUrls`. */
export const NewInvitation = Type.Object({
  email: Email,
  role: Role,
  metadata: Metadata,
  redirectUrl: optional(
    Type.String({ maxLength: REDIRECT_URL_MAX_CHARACTERS, description: "Must match `auth.redirectUrls`" }),
  ),
});

export const UserChanges = Type.Object({
  displayName: DisplayName,
  avatarUrl: AvatarUrl,
  role: Role,
  emailVisibility: EmailVisibility,
  disabled: Type.Optional(Type.Boolean()),
  metadata: Metadata,
  appMetadata: Metadata,
});

/** As ids of records: no control characters, no `/`. */
const ID = /^[^\p{Cc}/]+$/u;
const RESERVED_IDS = new Set(["count", "search", "aggregate", "batch", "batch-by-filter"]);
/** No URL can name them. */
const DOTS = new Set([".", ".."]);

const Id = refine(
  refine(
    Type.String({ minLength: 1, maxLength: ID_MAX_CHARACTERS }),
    (id) => ID.test(id) && !RESERVED_IDS.has(id),
    (name) => ({
      code: "invalid_value",
      message: `${name} must not contain control characters or /, nor be a reserved word`,
    }),
  ),
  (id) => !DOTS.has(id),
  (name) => ({ code: "invalid_value", message: `${name} must not be "." or "..", which no URL can name` }),
);

/** Of `password` and `passwordHash` exactly one; the service checks that, the hash, and the size of the metadata. */
const importedUser = (passwordMinLength: number) =>
  Type.Object({
    id: optional(Id),
    email: Email,
    password: optional(newPassword(passwordMinLength)),
    passwordHash: optional(
      Type.String({
        maxLength: PASSWORD_HASH_MAX_CHARACTERS,
        description: "bcrypt or pbkdf2:sha256:ITERATIONS:BASE64_SALT:BASE64_HASH",
      }),
    ),
    displayName: DisplayName,
    avatarUrl: AvatarUrl,
    role: Role,
    verified: Type.Optional(Type.Boolean()),
    metadata: Metadata,
    appMetadata: Metadata,
  });

export const userImport = (passwordMinLength: number) =>
  Type.Object({ users: Type.Array(importedUser(passwordMinLength), { maxItems: IMPORT_USERS_MAX }) });
