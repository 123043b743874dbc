import type { ClientContext } from "../context.ts";
import { createOAuth } from "./oauth.ts";
import { createPasskeys } from "./passkeys.ts";
import type { Own, SignInAnswer, SignIns, SignUpAnswer } from "./sign-in.ts";
import type { Auth, Identity, Passkey, SessionInfo, User } from "./types.ts";

/** Rare operations, loaded on first use: other ways to sign in, and changes of an account. */
export type Account = Omit<
  Auth,
  "user" | "ready" | "subscribe" | "signUp" | "signIn" | "signInAnonymously" | "signOut"
>;

export function createAccount(context: ClientContext, signIns: SignIns): Account {
  const { transport, session } = context;
  const { post, complete } = signIns;
  const own: Own = (method, path, body) => transport.request(method, `/api/auth/${path}`, { body });
  const done = async (request: Promise<unknown>) => void (await request);
  const enter = async (path: string, body: object) => complete(await post<SignInAnswer>(path, body));
  const { register, signIn } = createPasskeys(signIns, own);
  const { begin, ...pages } = createOAuth(context, signIns, own);
  /** Returns the updated user, and stores it unless the user signed out, or another one signed in, during the request. */
  const takeUser = async (answer: { user: User }) => {
    await session.update(answer);
    return answer.user;
  };

  return {
    async link(credentials) {
      const answer = await own<SignUpAnswer>("POST", "link/email", credentials);
      return { user: await takeUser(answer), verificationRequired: !("accessToken" in answer) };
    },
    magicLink: {
      request: (given) => done(post("signin/magic-link", given)),
      use: (token) => enter("verify-magic-link", { token }),
    },
    code: {
      request: (given) => done(post("signin/email-otp", given)),
      use: (email, code) => enter("verify-email-otp", { email, code }),
    },
    // One function implements both signatures: with `popup` it resolves, without it the page is left.
    oauth: begin as Auth["oauth"],
    ...pages,
    passkeys: {
      register,
      signIn,
      list: async () => (await own<{ passkeys: Passkey[] }>("GET", "passkeys")).passkeys,
      remove: (id) => done(own("DELETE", `passkeys/${encodeURIComponent(id)}`)),
    },
    mfa: {
      // One function implements both signatures.
      enroll: ((type = "totp") =>
        own("POST", `mfa/${type}/enroll`, type === "phone" ? {} : undefined)) as Auth["mfa"]["enroll"],
      verify: (factorId, code, type = "totp") => done(own("POST", `mfa/${type}/verify`, { factorId, code })),
      send: () => done(own("POST", "mfa/phone/code")),
      factors: async () => (await own<{ factors: [] }>("GET", "mfa/factors")).factors,
      remove: (proof, type = "totp") => done(own("DELETE", `mfa/${type}`, proof)),
    },
    identities: {
      list: async () => (await own<{ identities: Identity[] }>("GET", "identities")).identities,
      remove: (id) => done(own("DELETE", `identities/${id}`)),
    },
    sessions: {
      list: async () => (await own<{ sessions: SessionInfo[] }>("GET", "sessions")).sessions,
      end: (id) => done(own("DELETE", `sessions/${id}`)),
    },
    async reload() {
      return (await session.token()) === null ? null : takeUser(await own("GET", "me"));
    },
    updateMe: async (profile) => takeUser(await own("PATCH", "me", profile)),
    changePassword: async (passwords) => done(takeUser(await own("POST", "change-password", passwords))),
    emailVerification: {
      request: (given = {}) => done(own("POST", "request-email-verification", given)),
      use: (token) => done(post("verify-email", { token })),
    },
    phone: {
      request: (given) => done(post("signin/phone", given)),
      use: (phone, code) => enter("verify-phone", { phone, code }),
      change: (given) => done(own("POST", "change-phone", given)),
      confirm: (code) => done(own("POST", "verify-phone-change", { code })),
    },
    emailChange: {
      request: (given) => done(own("POST", "change-email", given)),
      use: (token) => done(post("verify-email-change", { token })),
    },
    passwordReset: {
      request: (given) => done(post("request-password-reset", given)),
      use: (given) => done(post("reset-password", given)),
    },
    async acceptInvite(invitation) {
      const answer = await own<SignInAnswer | { user: User }>("POST", "accept-invite", invitation);
      return "user" in answer && !("accessToken" in answer) ? { user: await takeUser(answer) } : complete(answer);
    },
    async deleteMe() {
      await session.ready;
      const userId = transport.userId();
      await own("DELETE", "me");
      if (transport.userId() === userId) await session.forget();
    },
  };
}
