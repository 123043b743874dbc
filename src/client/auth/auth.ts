import type { ClientContext } from "../context.ts";
import { deferred, once } from "../deferred.ts";
import type { Account } from "./account.ts";
import { createSignIns, type SignInAnswer } from "./sign-in.ts";
import type { Auth, Tokens } from "./types.ts";

/** `auth` of a client. What is not sign-in with a password, or without any, is loaded when it is used. */
export function createAuth(context: ClientContext): Auth {
  const { transport, session } = context;
  const signIns = createSignIns(transport, session);
  const { post, complete, completeSignUp } = signIns;
  const account = once(async () => (await import("./account.ts")).createAccount(context, signIns));
  const later = deferred(account);
  const part = <Name extends keyof Account>(name: Name) => deferred(async () => (await account())[name]);
  const [magicLink, code, mfa, passkeys] = [part("magicLink"), part("code"), part("mfa"), part("passkeys")];
  const [identities, sessions, passwordReset] = [part("identities"), part("sessions"), part("passwordReset")];
  const [emailVerification, emailChange] = [part("emailVerification"), part("emailChange")];

  return {
    get user() {
      return session.user();
    },
    ready: session.ready,
    subscribe: (listener) => session.subscribe(listener),
    signUp: async (given) => completeSignUp(await post("signup", given)),
    signIn: async (credentials) => complete(await post<SignInAnswer>("signin", credentials)),
    async signInAnonymously(options) {
      const tokens = await post<Tokens>("signin/anonymous", options);
      await session.adopt(tokens);
      return { user: tokens.user };
    },
    async signOut() {
      const refreshToken = await session.refreshToken();
      await session.forget();
      if (refreshToken === null) return;
      // The session has ended here. Without a connection it goes on at the server, where nobody has its tokens.
      await post("signout", { refreshToken }).catch(() => {});
    },
    link: later("link"),
    magicLink: { request: magicLink("request"), use: magicLink("use") },
    code: { request: code("request"), use: code("use") },
    oauth: later("oauth"),
    redirectResult: later("redirectResult"),
    passkeys: {
      register: passkeys("register"),
      signIn: passkeys("signIn"),
      list: passkeys("list"),
      remove: passkeys("remove"),
    },
    mfa: { enroll: mfa("enroll"), verify: mfa("verify"), factors: mfa("factors"), remove: mfa("remove") },
    identities: { list: identities("list"), remove: identities("remove") },
    sessions: { list: sessions("list"), end: sessions("end") },
    reload: later("reload"),
    updateMe: later("updateMe"),
    changePassword: later("changePassword"),
    emailVerification: { request: emailVerification("request"), use: emailVerification("use") },
    emailChange: { request: emailChange("request"), use: emailChange("use") },
    passwordReset: { request: passwordReset("request"), use: passwordReset("use") },
    acceptInvite: later("acceptInvite"),
    deleteMe: later("deleteMe"),
  };
}
