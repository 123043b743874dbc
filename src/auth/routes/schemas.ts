import { type TSchema, Type } from "typebox";

const nullable = (schema: TSchema): TSchema => Type.Union([schema, Type.Null()]);
const AnyObject = Type.Record(Type.String(), Type.Unknown());

export const UserSchema = Type.Object({
  id: Type.String(),
  email: nullable(Type.String()),
  displayName: nullable(Type.String()),
  avatarUrl: nullable(Type.String()),
  role: Type.String(),
  emailVerified: Type.Boolean(),
  isAnonymous: Type.Boolean(),
  createdAt: Type.String({ format: "date-time" }),
  emailVisibility: Type.Union([Type.Literal("public"), Type.Literal("private")]),
  metadata: AnyObject,
  customClaims: AnyObject,
});

export const UserAnswerSchema = Type.Object({ user: UserSchema });

export const TokenSchema = Type.Object({
  user: UserSchema,
  accessToken: Type.String(),
  refreshToken: Type.String(),
});

const FactorSchema = Type.Object({ id: Type.String(), type: Type.Literal("totp") });

const MfaSchema = Type.Object({
  mfaRequired: Type.Literal(true),
  mfaTicket: Type.String({ description: "For `mfa/verify` or `mfa/recovery`, within 5 minutes and 5 attempts" }),
  factors: Type.Array(FactorSchema),
});

export const SignInSchema = Type.Union([TokenSchema, MfaSchema]);
export const OkSchema = Type.Object({ ok: Type.Literal(true) });

export const SessionsSchema = Type.Object({
  sessions: Type.Array(
    Type.Object({
      id: Type.String(),
      createdAt: Type.String({ format: "date-time" }),
      lastUsedAt: Type.String({ format: "date-time" }),
      ip: nullable(Type.String()),
      userAgent: nullable(Type.String()),
      current: Type.Boolean(),
    }),
  ),
});

export const ProfileBody = {
  displayName: Type.Optional(nullable(Type.String({ maxLength: 256 }))),
  avatarUrl: Type.Optional(nullable(Type.String({ maxLength: 2048 }))),
  emailVisibility: Type.Optional(Type.Union([Type.Literal("public"), Type.Literal("private")])),
  metadata: Type.Optional(AnyObject),
};

export { AnyObject, nullable };
