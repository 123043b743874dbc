import { Type } from "typebox";
import { optional } from "../../../../kernel/schema/types.ts";
import { MfaRequired, Pending, Tokens } from "../../../config/shapes/sign-in.ts";
import { CAPTCHA_TOKEN_MAX_CHARACTERS, SECRET_TEXT_MAX_CHARACTERS, TOKEN_TEXT_MAX_CHARACTERS } from "../limits.ts";

// What several endpoints answer or take.

export const Ok = Type.Object({ ok: Type.Literal(true) }, { description: "Done" });

export const tokensAnswer = (description: string) => Type.Object(Tokens.properties, { description });

/** Tokens, or what there is instead of them until the address is verified. */
export const tokensOrPending = (description: string) => Type.Union([Tokens, Pending], { description });

export const SignedIn = Type.Union([Tokens, MfaRequired], {
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
