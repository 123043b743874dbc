import type { JsonObject } from "../../kernel/json/json.ts";

/** A user, as the server shows them to themselves. */
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
  metadata: JsonObject;
  /** The claims that an administrator has set. */
  customClaims: JsonObject;
}

/** What a sign-in or a refresh answers. */
export interface Tokens {
  user: User;
  accessToken: string;
  refreshToken: string;
}

/** The second step of a sign-in. It can be completed within 5 minutes, in 5 attempts. */
export interface MfaChallenge {
  factors: { id: string; type: "totp" }[];
  /** With a code of the user's app. Errors: `invalid`, `unauthenticated`. */
  verify(code: string): Promise<{ user: User }>;
  /** With one of the recovery codes, each of which is valid once. */
  recover(recoveryCode: string): Promise<{ user: User }>;
}

/** The signed-in user, or what is still missing. */
export type SignInResult = { user: User; mfa?: undefined } | { user?: undefined; mfa: MfaChallenge };

/** `verificationRequired`: nobody is signed in before the mailed link was used. */
export interface SignUpResult {
  user: User;
  verificationRequired: boolean;
}

export interface Credentials {
  email: string;
  password: string;
  /** Where a mailed link leads; must match `auth.redirectUrls`. */
  redirectUrl?: string;
}

export interface MailRequest {
  email: string;
  redirectUrl?: string;
  /** Where the config declares a CAPTCHA. */
  captchaToken?: string;
}

export interface SessionInfo {
  id: string;
  createdAt: string;
  lastUsedAt: string;
  ip: string | null;
  userAgent: string | null;
  /** Whether it is the session of this client. */
  current: boolean;
}

export interface Factor {
  id: string;
  type: "totp";
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

/** Signing in and out, and the account of the signed-in user. What fails is a `PlatformError`. */
export interface Auth {
  /** The signed-in user; null when there is none, and before `ready` if the store is asynchronous. */
  readonly user: User | null;
  /** Resolves when the stored session is known. */
  readonly ready: Promise<void>;
  /** Calls the listener at each change of `user`. The function ends that. */
  subscribe(listener: (user: User | null) => void): () => void;

  /** Errors: `conflict` for a known address; `forbidden` where nobody may sign up. */
  signUp(
    account: Credentials & { displayName?: string; metadata?: JsonObject; captchaToken?: string },
  ): Promise<SignUpResult>;
  /** Errors: `unauthenticated` for a wrong address or password. */
  signIn(credentials: Credentials): Promise<SignInResult>;
  /** As a new user without an address, who keeps everything at `link`. */
  signInAnonymously(options?: { captchaToken?: string }): Promise<{ user: User }>;
  /** Gives the anonymous user an address and a password. */
  link(credentials: Credentials): Promise<SignUpResult>;
  /** A mailed link, whose page calls `use` with the `token` of its address. */
  readonly magicLink: {
    request(mail: MailRequest): Promise<void>;
    use(token: string): Promise<SignInResult>;
  };
  /** A mailed code of six digits. */
  readonly code: {
    request(mail: MailRequest): Promise<void>;
    use(email: string, code: string): Promise<SignInResult>;
  };
  /**
   * Signs in with a provider. Leaves the page, comes back to `redirectTo`, by default this page, and signs in there: see
   * `redirectResult`. With `popup` the page stays; then it has to be called in an event of the user, such as a click. Errors:
   * what the provider refused is `forbidden`; a closed popup rejects with `AbortError`.
   */
  oauth(provider: string, options: { redirectTo?: string; popup: true }): Promise<SignInResult>;
  oauth(provider: string, options?: { redirectTo?: string; popup?: false }): Promise<never>;
  /** How the sign-in ended that led back to this page; null where none did. */
  redirectResult(): Promise<SignInResult | null>;
  readonly passkeys: {
    /** Asks the browser for a new passkey of the signed-in user. */
    register(options?: { name?: string }): Promise<Passkey>;
    signIn(): Promise<SignInResult>;
    list(): Promise<Passkey[]>;
    remove(id: string): Promise<void>;
  };
  /** The second factor of the signed-in user. */
  readonly mfa: {
    /** `uri` is for a QR code. The recovery codes are shown only here. The factor counts once it is verified. */
    enroll(): Promise<{ factorId: string; secret: string; uri: string; recoveryCodes: string[] }>;
    verify(factorId: string, code: string): Promise<void>;
    factors(): Promise<Factor[]>;
    remove(proof: { code: string } | { password: string }): Promise<void>;
  };
  /** The ways in by other providers. */
  readonly identities: {
    list(): Promise<Identity[]>;
    remove(id: string): Promise<void>;
  };
  readonly sessions: {
    list(): Promise<SessionInfo[]>;
    end(id: string): Promise<void>;
  };
  /** Ends the session here and on the server, in every tab. Without a connection it ends here only. */
  signOut(): Promise<void>;
  /** Asks the server for the user. null when nobody is signed in. */
  reload(): Promise<User | null>;
  updateMe(profile: {
    displayName?: string | null;
    avatarUrl?: string | null;
    emailVisibility?: "public" | "private";
    metadata?: JsonObject;
  }): Promise<User>;
  /** Every other session ends. Errors: `unauthenticated` for a wrong password. */
  changePassword(passwords: { currentPassword: string; newPassword: string }): Promise<void>;
  /** A mailed link proves the address of the signed-in user. */
  readonly emailVerification: {
    request(options?: { redirectUrl?: string }): Promise<void>;
    use(token: string): Promise<void>;
  };
  /** A mailed link changes the address. Every session ends when it is used. */
  readonly emailChange: {
    request(change: { newEmail: string; password: string; redirectUrl?: string }): Promise<void>;
    use(token: string): Promise<void>;
  };
  /** A mailed link sets a new password. Every session ends when it is used. */
  readonly passwordReset: {
    request(mail: MailRequest): Promise<void>;
    use(reset: { token: string; newPassword: string; keepPasskeys?: boolean }): Promise<void>;
  };
  acceptInvite(invitation: { token: string; password?: string; displayName?: string }): Promise<SignInResult>;
  /** Deletes the account for good. Errors: `unauthenticated` unless the user has signed in within the last 10 minutes. */
  deleteMe(): Promise<void>;
}
