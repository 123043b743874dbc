import { type Static, Type } from "typebox";
import { nullable } from "../../../kernel/schema/types.ts";
import { VERSION } from "../../../kernel/version.ts";
import type { PlatformConfig } from "../../config/types.ts";

const Flag = Type.Boolean();

/** What clients may know before sign-in. It contains no secret. [SY2] */
export const PublicConfig = Type.Object(
  {
    auth: Type.Object({
      emailPassword: Flag,
      anonymous: Flag,
      magicLink: Flag,
      emailOtp: Flag,
      mfa: Flag,
      oauth: Type.Array(Type.String(), { description: "Names of the providers" }),
      passkeys: Flag,
    }),
    captcha: nullable(Type.Object({ siteKey: Type.String() })),
    push: nullable(
      Type.Object({ publicKey: Type.String({ description: "The VAPID key with which browsers subscribe" }) }),
    ),
    version: Type.String(),
  },
  { description: "The enabled sign-in methods, the CAPTCHA site key and the public key of Web Push" },
);
export type PublicConfig = Static<typeof PublicConfig>;

/** Every member is copied by name: what the config gains later stays private until it is added here. */
export function describePublicConfig({ auth = {}, push }: PlatformConfig): PublicConfig {
  return {
    auth: {
      emailPassword: auth.emailPassword !== false,
      anonymous: auth.anonymous === true,
      magicLink: auth.magicLink === true,
      emailOtp: auth.emailOtp === true,
      mfa: auth.mfa?.totp === true,
      oauth: Object.keys(auth.oauth ?? {}),
      passkeys: auth.passkeys !== undefined,
    },
    captcha: auth.captcha === undefined ? null : { siteKey: auth.captcha.siteKey },
    push: push?.webPush === undefined ? null : { publicKey: push.webPush.publicKey },
    version: VERSION,
  };
}
