import { Type } from "typebox";
import { AnyObject, nullable, optional } from "../../../kernel/schema/types.ts";
import {
  CAPTCHA_TOKEN_MAX_CHARACTERS,
  MFA_TICKET_ATTEMPTS_MAX,
  REDIRECT_URL_MAX_CHARACTERS,
  SECRET_TEXT_MAX_CHARACTERS,
  TOKEN_TEXT_MAX_CHARACTERS,
} from "./limits.ts";

// What several endpoints answer or take.

export const Time = Type.String({ format: "date-time" });
export const Ok = Type.Object({ ok: Type.Literal(true) }, { description: "Done" });

export const User = Type.Object({
  id: Type.String(),
  email: nullable(Type.String()),
  displayName: nullable(Type.String()),
  avatarUrl: nullable(Type.String()),
  role: Type.String(),
  emailVerified: Type.Boolean(),
  isAnonymous: Type.Boolean(),
  createdAt: Time,
  emailVisibility: Type.Union([Type.Literal("public"), Type.Literal("private")]),
  metadata: AnyObject,
  customClaims: AnyObject,
});

const tokens = { user: User, accessToken: Type.String(), refreshToken: Type.String() };

export const tokensAnswer = (description: string) => Type.Object(tokens, { description });

/** Tokens, or what there is instead of them until the address is verified. */
export const tokensOrPending = (description: string) =>
  Type.Union(
    [
      Type.Object(tokens),
      Type.Object({
        user: User,
        verificationRequired: Type.Literal(true, { description: "With `auth.requireVerifiedEmail`: a link is mailed" }),
      }),
    ],
    { description },
  );

const MfaRequired = Type.Object({
  mfaRequired: Type.Literal(true),
  mfaTicket: Type.String({
    description: `For \`mfa/verify\` or \`mfa/recovery\`, within 5 minutes and ${MFA_TICKET_ATTEMPTS_MAX} attempts`,
  }),
  factors: Type.Array(Type.Object({ id: Type.String(), type: Type.Literal("totp") })),
});

export const SignedIn = Type.Union([Type.Object(tokens), MfaRequired], {
  description: "Tokens, or a ticket for the second factor",
});

/** A password or token to be checked: longer ones are refused without a look at them. */
export const Secret = Type.String({ minLength: 1, maxLength: SECRET_TEXT_MAX_CHARACTERS });
/** A mailed token or code, a ticket, or an id. */
export const Token = Type.String({ minLength: 1, maxLength: TOKEN_TEXT_MAX_CHARACTERS });
/** Of the CAPTCHA that `auth.captcha` declares; ignored without one. */
export const CaptchaToken = optional(
  Type.String({ maxLength: CAPTCHA_TOKEN_MAX_CHARACTERS, description: "Required if `auth.captcha` is declared" }),
);
/** Where a mailed link leads. */
export const RedirectUrl = optional(
  Type.String({ maxLength: REDIRECT_URL_MAX_CHARACTERS, description: "Must match `auth.redirectUrls`" }),
);
