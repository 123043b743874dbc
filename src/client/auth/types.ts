import type { JsonObject } from "../../kernel/json/json.ts";

/** User, as visible to themselves. */
export interface User {
  id: string;
  email: string | null;
  displayName: string | null;
  avatarUrl: string | null;
  role: string;
  emailVerified: boolean;
  isAnonymous: boolean;
  createdAt: string;
  emailVisibility: "public" | "private";
  /** Verified phone number (E.164); null without one. */
  phone: string | null;
  /** Language of mails to the user (BCP 47); null if not known. */
  language: string | null;
  metadata: JsonObject;
  /** Custom claims, set by an administrator. */
  customClaims: JsonObject;
}

/** Tokens of a sign-in or a refresh. */
export interface Tokens {
  user: User;
  accessToken: string;
  refreshToken: string;
}

/** Second step of a sign-in. It must be completed within 5 minutes, in 5 attempts. */
export interface MfaChallenge {
  factors: { id: string; type: "totp" | "phone" }[];
  /** Sends a code to the phone that is a factor. */
  send(): Promise<void>;
  /** Verifies a code of the user's authenticator app, or the one that `send` has sent. Errors: `invalid`, `unauthenticated`. */
  verify(code: string): Promise<{ user: User }>;
  /** Verifies a recovery code, each of which is valid once. */
  recover(recoveryCode: string): Promise<{ user: User }>;
}

/** Signed-in user, or the missing second step. */
export type SignInResult = { user: User; mfa?: undefined } | { user?: undefined; mfa: MfaChallenge };

/** Result of a sign-up. `verificationRequired`: the user is not signed in until the mailed link is used. */
export interface SignUpResult {
  user: User;
  verificationRequired: boolean;
}

export interface Credentials {
  email: string;
  password: string;
  /** Address that a mailed link leads to; must match `auth.redirectUrls`. */
  redirectUrl?: string;
}

export interface MailRequest {
  email: string;
  redirectUrl?: string;
  /** Token of the CAPTCHA, required where the config declares one. */
  captchaToken?: string;
}

export interface SessionInfo {
  id: string;
  createdAt: string;
  lastUsedAt: string;
  ip: string | null;
  userAgent: string | null;
  /** Whether this is the client's own session. */
  current: boolean;
}

export interface Factor {
  id: string;
  type: "totp" | "phone";
  verified: boolean;
  createdAt: string;
}

export interface Passkey {
  id: string;
  name: string | null;
  deviceType: string;
  backedUp: boolean;
  createdAt: string;
  lastUsedAt: string | null;
}

export interface Identity {
  id: string;
  provider: string;
  email: string | null;
  createdAt: string;
  lastSignInAt: string;
}

/** Sign-in, sign-out, and the account of the signed-in user. Failed calls reject with `PlatformError`. */
export interface Auth {
  /** Signed-in user; null without one, and before `ready` if the store is asynchronous. */
  readonly user: User | null;
  /** Resolves when the stored session has been read. */
  readonly ready: Promise<void>;
  /** Calls the listener at each change of `user`. Returns a function that unsubscribes. */
  subscribe(listener: (user: User | null) => void): () => void;

  /** Creates an account. Errors: `conflict` for a known address; `forbidden` where sign-up is closed. */
  signUp(
    account: Credentials & { displayName?: string; metadata?: JsonObject; language?: string; captchaToken?: string },
  ): Promise<SignUpResult>;
  /** Signs in with a password. Errors: `unauthenticated` for a wrong address or password. */
  signIn(credentials: Credentials): Promise<SignInResult>;
  /** Signs in as a new user without an address. A later `link` keeps all of the user's data. */
  signInAnonymously(options?: { captchaToken?: string }): Promise<{ user: User }>;
  /** Sets an address and a password for the anonymous user. */
  link(credentials: Credentials): Promise<SignUpResult>;
  /** Sign-in by mailed link. The page it leads to calls `use` with the `token` of its address. */
  readonly magicLink: {
    request(mail: MailRequest): Promise<void>;
    use(token: string): Promise<SignInResult>;
  };
  /** Sign-in by a mailed code of six digits. */
  readonly code: {
    request(mail: MailRequest): Promise<void>;
    use(email: string, code: string): Promise<SignInResult>;
  };
  /** Sign-in by a code of six digits that is sent to a phone, and the number of the account. Numbers begin with `+` and the country. */
  readonly phone: {
    request(number: { phone: string; captchaToken?: string }): Promise<void>;
    use(phone: string, code: string): Promise<SignInResult>;
    /**
     * Sends a code to the number that the signed-in user is to have, for `confirm`; null removes the number at once. `code`: of a factor,
     * or a recovery code, where the phone is a second factor.
     */
    change(number: { newPhone: string | null; code?: string }): Promise<void>;
    confirm(code: string): Promise<void>;
  };
  /**
   * Signs in with a provider. Leaves the page, returns to `redirectTo` (default: this page) and signs in there: see
   * `redirectResult`. With `popup` the page stays; call it from a user event then, such as a click. Errors: `forbidden` for a
   * refusal by the provider; a closed popup rejects with `AbortError`.
   */
  oauth(provider: string, options: { redirectTo?: string; popup: true }): Promise<SignInResult>;
  oauth(provider: string, options?: { redirectTo?: string; popup?: false }): Promise<never>;
  /** Returns the outcome of the sign-in that led back to this page; null without one. */
  redirectResult(): Promise<SignInResult | null>;
  /**
   * Signs in at the server's own pages (`auth.pages`). Leaves the page, returns to `returnTo` (default: this page) and signs in
   * there: see `redirectResult`. An anonymous user who signs up keeps the account. Errors: `not_found` where the server has no pages.
   */
  signInWithPage(options?: { returnTo?: string }): Promise<never>;
  /** Returns the address of the account page in this session. It opens once, within 30 seconds. */
  accountPage(): Promise<string>;
  readonly passkeys: {
    /** Asks the browser for a new passkey for the signed-in user. */
    register(options?: { name?: string }): Promise<Passkey>;
    signIn(): Promise<SignInResult>;
    list(): Promise<Passkey[]>;
    remove(id: string): Promise<void>;
  };
  /** Second factor of the signed-in user. */
  readonly mfa: {
    /**
     * Enrolls a TOTP factor. `uri` is for a QR code. The recovery codes are shown only here. The factor takes effect once
     * verified.
     */
    enroll(type?: "totp"): Promise<{ factorId: string; secret: string; uri: string; recoveryCodes: string[] }>;
    /** Sends a code to the user's phone, which is a factor once `verify` has got it. */
    enroll(type: "phone"): Promise<{ factorId: string; recoveryCodes: string[] }>;
    verify(factorId: string, code: string, type?: "totp" | "phone"): Promise<void>;
    /** Sends a code to the phone that is a factor, for `remove` or `phone.change`. */
    send(): Promise<void>;
    factors(): Promise<Factor[]>;
    remove(proof: { code: string } | { password: string }, type?: "totp" | "phone"): Promise<void>;
  };
  /** Identities of the signed-in user at other providers. */
  readonly identities: {
    list(): Promise<Identity[]>;
    remove(id: string): Promise<void>;
  };
  readonly sessions: {
    list(): Promise<SessionInfo[]>;
    end(id: string): Promise<void>;
  };
  /** Ends the session here and on the server, in every tab. Without a connection it ends only here. */
  signOut(): Promise<void>;
  /** Fetches the user from the server; null when nobody is signed in. */
  reload(): Promise<User | null>;
  updateMe(profile: {
    displayName?: string | null;
    avatarUrl?: string | null;
    emailVisibility?: "public" | "private";
    language?: string | null;
    metadata?: JsonObject;
  }): Promise<User>;
  /** Changes the password and ends every other session. Errors: `unauthenticated` for a wrong password. */
  changePassword(passwords: { currentPassword: string; newPassword: string }): Promise<void>;
  /** Verification of the signed-in user's address by a mailed link. */
  readonly emailVerification: {
    request(options?: { redirectUrl?: string }): Promise<void>;
    use(token: string): Promise<void>;
  };
  /** Change of the address by a mailed link. Using it ends every session. */
  readonly emailChange: {
    request(change: { newEmail: string; password?: string; redirectUrl?: string }): Promise<void>;
    use(token: string): Promise<void>;
  };
  /** Reset of the password by a mailed link. Using it ends every session. */
  readonly passwordReset: {
    request(mail: MailRequest): Promise<void>;
    use(reset: { token: string; newPassword: string; keepPasskeys?: boolean; keepPhone?: boolean }): Promise<void>;
  };
  /**
   * Accepts an invitation, and signs in. One with data, of a user who has an account, is accepted by that user, signed in. Errors:
   * `unauthenticated` and `forbidden` for anybody else.
   */
  acceptInvite(invitation: {
    token: string;
    password?: string;
    displayName?: string;
    language?: string;
  }): Promise<SignInResult>;
  /** Deletes the account permanently. Errors: `unauthenticated` unless the user has signed in within the last 10 minutes. */
  deleteMe(): Promise<void>;
}
