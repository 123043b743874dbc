import { type Static, Type } from "typebox";
import type { JsonObject } from "../../../kernel/json/json.ts";
import { AnyObject, nullable, optional, refine } from "../../../kernel/schema/types.ts";
import { isIsoDateTime } from "../../../kernel/time/iso-datetime.ts";
import {
  AvatarUrl,
  DisplayName,
  Email,
  EmailVisibility,
  Language,
  Metadata,
  newPassword,
  Phone,
  Role,
} from "./user-fields.ts";

// Schemas of requests and answers about users. The types of `app.users` and of the client follow from them.

const Time = Type.String({ format: "date-time" });
const Visibility = Type.Union([Type.Literal("public"), Type.Literal("private")]);
const Members = Type.Unsafe<JsonObject>(AnyObject);

const REDIRECT_URL_MAX_CHARACTERS = 2_048;
/** The target of a mailed link. */
export const RedirectUrl = optional(
  Type.String({ maxLength: REDIRECT_URL_MAX_CHARACTERS, description: "Must match `auth.redirectUrls`" }),
);

export const UserEntry = Type.Object({
  id: Type.String(),
  /** The email; null for anonymous users. */
  email: nullable(Type.String()),
  displayName: nullable(Type.String()),
  role: Type.String(),
  emailVerified: Type.Boolean(),
  isAnonymous: Type.Boolean(),
  disabled: Type.Boolean(),
  /** The time of creation in ISO 8601. */
  createdAt: Time,
});
/** A user in a list. */
export type UserEntry = Static<typeof UserEntry>;

const { disabled, ...ownEntry } = UserEntry.properties;

export const OwnUser = Type.Object({
  ...ownEntry,
  avatarUrl: nullable(Type.String()),
  emailVisibility: Visibility,
  /** The verified phone number (E.164); null without one. */
  phone: nullable(Type.String()),
  /** The language of mails to the user (BCP 47); null: not known. */
  language: nullable(Type.String()),
  /** Metadata written by the user. */
  metadata: Members,
  /** Claims set by administrators. */
  customClaims: Members,
});
/** A user, as shown to themselves. */
export type OwnUser = Static<typeof OwnUser>;

export const User = Type.Object({
  ...OwnUser.properties,
  disabled,
  /** Metadata that is never sent to clients. */
  appMetadata: Members,
});
/** A user, as shown to administrators. */
export type User = Static<typeof User>;

const profile = {
  displayName: DisplayName,
  avatarUrl: AvatarUrl,
  emailVisibility: EmailVisibility,
  language: Language,
  metadata: Metadata,
};
export const ProfileChanges = Type.Object(profile);
/** The changes of a user's own account. Absent members stay unchanged; `metadata` is replaced as a whole. */
export type ProfileChanges = Static<typeof ProfileChanges>;

export const userChanges = (passwordMinLength: number) =>
  Type.Object({
    ...profile,
    role: Role,
    disabled: Type.Optional(Type.Boolean()),
    appMetadata: Metadata,
    /** The email. Another address ends every session, and invalidates the links mailed before. */
    email: Type.Optional(Email),
    /** Whether the email is verified; false after a change of `email` unless set. */
    emailVerified: Type.Optional(Type.Boolean({ description: "false after a change of `email` unless given" })),
    /** The phone number, as verified; null removes it. */
    phone: optional(Phone),
    /** The password. It ends every session, and removes the passkeys unless `keepPasskeys` is true. */
    password: Type.Optional(newPassword(passwordMinLength)),
    keepPasskeys: Type.Optional(
      Type.Boolean({ default: false, description: "true: the passkeys stay where a password is set" }),
    ),
  });
/** The changes of a user. Absent members stay unchanged; `metadata` and `appMetadata` are replaced as a whole. */
export type UserChanges = Static<ReturnType<typeof userChanges>>;

/** A user whom an administrator creates with a password. */
export const createdUser = (passwordMinLength: number) =>
  Type.Object({
    email: Email,
    password: newPassword(passwordMinLength),
    displayName: DisplayName,
    language: Language,
    /** The role; `user` by default. */
    role: Role,
  });

export const newUser = (passwordMinLength: number) =>
  Type.Object({
    email: Email,
    /** The password. Absent: the user signs in by link, code or provider, or sets a password by mail. */
    password: optional(newPassword(passwordMinLength)),
    displayName: DisplayName,
    language: Language,
    /** The role; `user` by default. */
    role: Role,
    /** Whether the email is verified; false by default. */
    emailVerified: Type.Optional(Type.Boolean()),
    metadata: Metadata,
    appMetadata: Metadata,
  });
export type NewUser = Static<ReturnType<typeof newUser>>;

const INVITER_MAX_CHARACTERS = 256;

export const InvitationOptions = Type.Object({
  /** The role; `user` by default. */
  role: Role,
  metadata: Metadata,
  language: Language,
  /** The target of the link; must match `auth.redirectUrls`. By default `<publicUrl>/auth/accept-invite`. */
  redirectUrl: RedirectUrl,
  /** Subject of the invitation, for its mail, `hooks.afterAccept` and rules; at most 4 KB. With it, users who have signed in are invited too. */
  data: Type.Optional(
    Type.Unsafe<JsonObject>({
      ...AnyObject,
      description: "At most 4 KB; with it, users who have signed in are invited too",
    }),
  ),
  /** The id of the user who invites. */
  invitedBy: optional(
    Type.String({ maxLength: INVITER_MAX_CHARACTERS, description: "The id of the user who invites" }),
  ),
  /** false: the link is answered and not mailed. */
  sendMail: Type.Optional(Type.Boolean({ default: true, description: "false: the link is answered and not mailed" })),
});
export type InvitationOptions = Static<typeof InvitationOptions>;

export const UserInvitation = Type.Object({ email: Email, ...InvitationOptions.properties });
export type UserInvitation = Static<typeof UserInvitation>;

const ID_MAX_CHARACTERS = 256;
/** Matches an id: no control characters and no `/`, as in ids of records. */
const ID = /^[^\p{Cc}/]+$/u;
const RESERVED_IDS = new Set(["count", "search", "aggregate", "batch", "batch-by-filter"]);
/** Ids that cannot be addressed: no URL can contain the dots, and `anonymous` in `X-Platform-Act-As` means an anonymous caller. */
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

export const IMPORT_USERS_MAX = 1_000;
const IMPORT_IDENTITIES_MAX = 10;
/** The maximum size of a provider's user id, in bytes. */
const SUBJECT_MAX_BYTES = 255;
const TIME_MAX_CHARACTERS = 64;
const PASSWORD_HASH_MAX_CHARACTERS = 4_096;

/** A user's account at a provider. */
const ImportedIdentity = Type.Object({
  provider: Type.String({ minLength: 1, description: "A name of `auth.oauth`" }),
  subject: refine(
    Type.String({ minLength: 1, description: `The provider's id of the user, at most ${SUBJECT_MAX_BYTES} bytes` }),
    (text) => text.trim() !== "" && new TextEncoder().encode(text).byteLength <= SUBJECT_MAX_BYTES,
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

/** A user of an import. The service checks `passwordHash`, that it excludes `password`, and the size of the metadata. */
const importedUser = (passwordMinLength: number) =>
  Type.Object({
    id: optional(Id),
    email: Email,
    /** The plaintext password, exclusive with `passwordHash`; without both the user signs in by link, code or provider. */
    password: optional(newPassword(passwordMinLength)),
    /**
     * The password hash: bcrypt, argon2, scrypt, Firebase's scrypt, SHA-crypt, Django's `pbkdf2_sha256$…`, or
     * `pbkdf2:sha256:ITERATIONS:BASE64_SALT:BASE64_HASH`.
     */
    passwordHash: optional(
      Type.String({
        maxLength: PASSWORD_HASH_MAX_CHARACTERS,
        description:
          "bcrypt, argon2, $scrypt$…, $firebase-scrypt$…, $5$…, $6$…, pbkdf2_sha256$… or pbkdf2:sha256:ITERATIONS:BASE64_SALT:BASE64_HASH",
      }),
    ),
    displayName: DisplayName,
    avatarUrl: AvatarUrl,
    language: Language,
    role: Role,
    verified: Type.Optional(Type.Boolean()),
    /** Whether the user is kept from signing in; false by default. */
    disabled: Type.Optional(Type.Boolean()),
    emailVisibility: EmailVisibility,
    /** The time of creation in ISO 8601; now by default. */
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
    /** The user's accounts at providers of `auth.oauth`, with the providers' ids. */
    identities: Type.Optional(Type.Array(ImportedIdentity, { maxItems: IMPORT_IDENTITIES_MAX })),
    metadata: Metadata,
    appMetadata: Metadata,
  });
export type ImportedUser = Static<ReturnType<typeof importedUser>>;

export const userImport = (passwordMinLength: number) =>
  Type.Object({ users: Type.Array(importedUser(passwordMinLength), { maxItems: IMPORT_USERS_MAX }) });
