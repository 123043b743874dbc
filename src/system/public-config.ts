import type { PlatformConfig } from "../config/types.ts";
import { VERSION } from "../kernel/version.ts";

/** What clients may know before sign-in. It contains no secret. [SY2] */
export interface PublicConfig {
  auth: {
    emailPassword: boolean;
    anonymous: boolean;
    magicLink: boolean;
    emailOtp: boolean;
    mfa: boolean;
    /** Names of the providers. */
    oauth: string[];
    passkeys: boolean;
  };
  captcha: { siteKey: string } | null;
  version: string;
}

/** Every member is copied by name: what the config gains later stays private until it is added here. */
export function describePublicConfig({ auth = {} }: PlatformConfig): PublicConfig {
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
    version: VERSION,
  };
}
