import type { ClientContext } from "../context.ts";
import type { Method } from "../transport/types.ts";
import { createSignIns, type SignInAnswer } from "./sign-in.ts";
import type { Auth, Identity, Passkey, SessionInfo, Tokens, User } from "./types.ts";

/** `auth` of a client. What needs a browser is loaded when it is used. */
export function createAuth(context: ClientContext): Auth {
  const { transport, session } = context;
  const signIns = createSignIns(transport, session);
  const { post, complete, completeSignUp } = signIns;
  /** A request of the signed-in user. */
  const own = <T = unknown>(method: Method, path: string, body?: object) =>
    transport.request<T>(method, `/api/auth/${path}`, { body });
  const done = async (request: Promise<unknown>) => void (await request);
  const enter = async (path: string, body: object) => complete(await post<SignInAnswer>(path, body));
  const passkeys = async () => (await import("./passkeys.ts")).createPasskeys(context, signIns);
  const oauth = async () => (await import("./oauth.ts")).createOAuth(context, signIns);
  const takeUser = async ({ user }: { user: User }) => {
    await session.updateUser(user);
    return user;
  };

  return {
    get user() {
      return session.user();
    },
    ready: session.ready,
    subscribe: (listener) => session.subscribe(listener),
    signUp: async (account) => completeSignUp(await post("signup", account)),
    signIn: (credentials) => enter("signin", credentials),
    async signInAnonymously(options) {
      const tokens = await post<Tokens>("signin/anonymous", options);
      await session.adopt(tokens);
      return { user: tokens.user };
    },
    link: async (credentials) => completeSignUp(await own("POST", "link/email", credentials)),
    magicLink: {
      request: (mail) => done(post("signin/magic-link", mail)),
      use: (token) => enter("verify-magic-link", { token }),
    },
    code: {
      request: (mail) => done(post("signin/email-otp", mail)),
      use: (email, code) => enter("verify-email-otp", { email, code }),
    },
    // One function for both signatures: with `popup` it ends with a result, without it never.
    oauth: (async (provider: string, options = {}) => (await oauth()).begin(provider, options)) as Auth["oauth"],
    redirectResult: async () => (await oauth()).redirectResult(),
    passkeys: {
      register: async (options) => (await passkeys()).register(options),
      signIn: async () => (await passkeys()).signIn(),
      list: async () => (await own<{ passkeys: Passkey[] }>("GET", "passkeys")).passkeys,
      remove: (id) => done(own("DELETE", `passkeys/${encodeURIComponent(id)}`)),
    },
    mfa: {
      enroll: () => own("POST", "mfa/totp/enroll"),
      verify: (factorId, code) => done(own("POST", "mfa/totp/verify", { factorId, code })),
      factors: async () => (await own<{ factors: [] }>("GET", "mfa/factors")).factors,
      remove: (proof) => done(own("DELETE", "mfa/totp", proof)),
    },
    identities: {
      list: async () => (await own<{ identities: Identity[] }>("GET", "identities")).identities,
      remove: (id) => done(own("DELETE", `identities/${id}`)),
    },
    sessions: {
      list: async () => (await own<{ sessions: SessionInfo[] }>("GET", "sessions")).sessions,
      end: (id) => done(own("DELETE", `sessions/${id}`)),
    },
    async signOut() {
      const refreshToken = await session.refreshToken();
      await session.forget();
      if (refreshToken === null) return;
      // The session has ended here. Without a connection it goes on at the server, where nobody has its tokens.
      await post("signout", { refreshToken }).catch(() => {});
    },
    async reload() {
      return (await session.token()) === null ? null : takeUser(await own("GET", "me"));
    },
    updateMe: async (profile) => takeUser(await own("PATCH", "me", profile)),
    changePassword: async (passwords) => session.adopt(await own("POST", "change-password", passwords)),
    emailVerification: {
      request: (options = {}) => done(own("POST", "request-email-verification", options)),
      use: (token) => done(post("verify-email", { token })),
    },
    emailChange: {
      request: (change) => done(own("POST", "change-email", change)),
      use: (token) => done(post("verify-email-change", { token })),
    },
    passwordReset: {
      request: (mail) => done(post("request-password-reset", mail)),
      use: (reset) => done(post("reset-password", reset)),
    },
    acceptInvite: (invitation) => enter("accept-invite", invitation),
    async deleteMe() {
      await own("DELETE", "me");
      await session.forget();
    },
  };
}
