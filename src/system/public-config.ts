import type { PlatformConfig } from "../config/types.ts";
import { VERSION } from "../kernel/version.ts";

/** What a client may know before anybody has signed in. Nothing of it is secret. Decisions 11. */
export interface PublicConfig {
  auth: {
    emailPassword: boolean;
    anonymous: boolean;
    magicLink: boolean;
    emailOtp: boolean;
    mfa: boolean;
    /** The names of the providers. */
    oauth: string[];
    passkeys: boolean;
  };
  captcha: { siteKey: string } | null;
  version: string;
}

/** Members are picked one by one: what the config gains later stays private until it is named here. */
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
