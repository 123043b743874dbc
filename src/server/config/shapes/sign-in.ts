import { type Static, Type } from "typebox";
import { nullable } from "../../../kernel/schema/types.ts";
import { OwnUser } from "./users.ts";

// Schemas of sign-in answers, and of a user's sessions and credentials. The types of the client follow from them.

const Time = Type.String({ format: "date-time" });

export const Tokens = Type.Object({ user: OwnUser, accessToken: Type.String(), refreshToken: Type.String() });
/** The answer to a sign-in or a refresh. */
export type Tokens = Static<typeof Tokens>;

export const Pending = Type.Object({
  user: OwnUser,
  verificationRequired: Type.Literal(true, { description: "With `auth.requireVerifiedEmail`: a link is mailed" }),
});
/** The answer while the address is unverified: the user, without tokens. */
export type Pending = Static<typeof Pending>;

/** Codes of an authenticator app, or sent to the account's phone. */
const FactorType = Type.Union([Type.Literal("totp"), Type.Literal("phone")]);

export const MFA_TICKET_ATTEMPTS_MAX = 5;
export const MfaRequired = Type.Object({
  mfaRequired: Type.Literal(true),
  mfaTicket: Type.String({
    description: `For \`mfa/verify\` or \`mfa/recovery\`, within 5 minutes and ${MFA_TICKET_ATTEMPTS_MAX} attempts`,
  }),
  factors: Type.Array(Type.Object({ id: Type.String(), type: FactorType })),
});
/** The answer to a user with a second factor. */
export type MfaRequired = Static<typeof MfaRequired>;

const session = {
  id: Type.String(),
  createdAt: Time,
  lastUsedAt: Time,
  ip: nullable(Type.String()),
  userAgent: nullable(Type.String()),
};

export const OwnSession = Type.Object({
  ...session,
  /** Whether it is the session of this request. */
  current: Type.Boolean({ description: "The session of this request" }),
});
/** One of the caller's sessions. */
export type OwnSession = Static<typeof OwnSession>;

/** A user's session, for administrators. */
export const UserSession = Type.Object({ ...session, expiresAt: Time });

export const Factor = Type.Object({
  id: Type.String(),
  type: FactorType,
  verified: Type.Boolean(),
  createdAt: Time,
});
export type Factor = Static<typeof Factor>;

export const Identity = Type.Object({
  id: Type.String(),
  provider: Type.String(),
  email: nullable(Type.String()),
  createdAt: Time,
  lastSignInAt: Time,
});
/** A user's account at a provider of OAuth. */
export type Identity = Static<typeof Identity>;

const passkey = {
  id: Type.String({ description: "The credential id, base64url" }),
  name: nullable(Type.String()),
  deviceType: Type.String(),
  createdAt: Time,
  lastUsedAt: nullable(Time),
};
export const Passkey = Type.Object({ ...passkey, backedUp: Type.Boolean() });
export type Passkey = Static<typeof Passkey>;

/** A user's passkey, for administrators. */
export const UserPasskey = Type.Object(passkey);

export const SignInMeans = Type.Object(
  {
    /** The live sessions, newest first, at most 100. */
    sessions: Type.Array(UserSession, { description: "Live ones, newest first, at most 100" }),
    factors: Type.Array(Factor),
    identities: Type.Array(Identity),
    passkeys: Type.Array(UserPasskey),
  },
  { description: "Without secrets" },
);
/** A user's sessions, and the means to sign in. */
export type SignInMeans = Static<typeof SignInMeans>;
