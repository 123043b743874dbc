import { Type } from "typebox";
import { AnyObject, nullable, optional, refine } from "../../../kernel/schema/types.ts";
import { isIsoDateTime } from "../../../kernel/time/iso-datetime.ts";
import {
  AvatarUrl,
  DisplayName,
  Email,
  EmailVisibility,
  Metadata,
  newPassword,
  Role,
} from "../../config/shapes/user-fields.ts";
import {
  ID_MAX_CHARACTERS,
  IMPORT_IDENTITIES_MAX,
  IMPORT_USERS_MAX,
  PASSWORD_HASH_MAX_CHARACTERS,
  REDIRECT_URL_MAX_CHARACTERS,
  SUBJECT_MAX_BYTES,
  TIME_MAX_CHARACTERS,
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

const userChanges = {
  displayName: DisplayName,
  avatarUrl: AvatarUrl,
  role: Role,
  emailVisibility: EmailVisibility,
  disabled: Type.Optional(Type.Boolean()),
  metadata: Metadata,
  appMetadata: Metadata,
};

/** What takes an account over needs a scope of its own: see `endpoints.ts`. */
export const changesOfUser = (passwordMinLength: number) =>
  Type.Object({
    ...userChanges,
    email: Type.Optional(Email),
    emailVerified: Type.Optional(Type.Boolean({ description: "false after a change of `email` unless given" })),
    password: Type.Optional(newPassword(passwordMinLength)),
    keepPasskeys: Type.Optional(
      Type.Boolean({ default: false, description: "true: the passkeys stay where a password is set" }),
    ),
  });

export const MailToUser = Type.Object({
  redirectUrl: optional(
    Type.String({ maxLength: REDIRECT_URL_MAX_CHARACTERS, description: "Must match `auth.redirectUrls`" }),
  ),
});

/** As ids of records: no control characters, no `/`. */
const ID = /^[^\p{Cc}/]+$/u;
const RESERVED_IDS = new Set(["count", "search", "aggregate", "batch", "batch-by-filter"]);
/** No URL can name the dots, and `X-Platform-Act-As` means nobody by the word. */
const UNNAMEABLE = new Set([".", "..", "anonymous"]);

const Id = refine(
  refine(
    Type.String({ minLength: 1, maxLength: ID_MAX_CHARACTERS }),
    (id) => ID.test(id) && !RESERVED_IDS.has(id),
    (name) => ({
      code: "invalid_value",
      message: `${name} must not contain control characters or /, nor be a reserved word`,
    }),
  ),
  (id) => !UNNAMEABLE.has(id),
  (name) => ({
    code: "invalid_value",
    message: `${name} must not be "." or "..", which no URL can name, nor "anonymous", which X-Platform-Act-As takes for nobody`,
  }),
);

/** A user who signs in at a provider. */
const Identity = Type.Object({
  provider: Type.String({ minLength: 1, description: "A name of `auth.oauth`" }),
  subject: refine(
    Type.String({ minLength: 1, description: `The provider's id of the user, at most ${SUBJECT_MAX_BYTES} bytes` }),
    (text) => text.trim() !== "" && Buffer.byteLength(text) <= SUBJECT_MAX_BYTES,
    (name) => ({
      code: "invalid_value",
      message: `${name} must have 1 to ${SUBJECT_MAX_BYTES} bytes, not only spaces`,
    }),
  ),
  email: optional(Email),
  emailVerified: Type.Optional(
    Type.Boolean({ default: false, description: "Whether the provider has verified the user's address" }),
  ),
});

/** Of `password` and `passwordHash` at most one; the service checks that, the hash, and the size of the metadata. */
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
    createdAt: optional(
      refine(
        Type.String({ format: "date-time", maxLength: TIME_MAX_CHARACTERS, description: "Now by default" }),
        isIsoDateTime,
        (name) => ({
          code: "invalid_value",
          message: `${name} must be an ISO 8601 date and time, as in 2026-01-31T12:00:00Z`,
        }),
      ),
    ),
    identities: Type.Optional(Type.Array(Identity, { maxItems: IMPORT_IDENTITIES_MAX })),
    metadata: Metadata,
    appMetadata: Metadata,
  });

export const userImport = (passwordMinLength: number) =>
  Type.Object({ users: Type.Array(importedUser(passwordMinLength), { maxItems: IMPORT_USERS_MAX }) });
