import type { ClientContext } from "../context.ts";
import { deferred, once } from "../deferred.ts";
import { later } from "../later.ts";
import type { Account } from "./account.ts";
import { createSignIns, type SignInAnswer } from "./sign-in.ts";
import type { Auth, Tokens } from "./types.ts";

/** Creates `auth` of a client. Everything besides password and anonymous sign-in is loaded on first use. */
export function createAuth(context: ClientContext): Auth {
  const { transport, session } = context;
  const signIns = createSignIns(transport, session);
  const { post, begin, complete, completeSignUp } = signIns;
  const account = once(async () => (await later()).createAccount(context, signIns));
  const part = <Name extends keyof Account, Member extends keyof Account[Name] & string>(
    name: Name,
    ...members: Member[]
  ) => deferred(async () => (await account())[name], ...members);

  return {
    get user() {
      return session.user();
    },
    ready: session.ready,
    subscribe: session.subscribe,
    signUp: async (given) => completeSignUp(await post("signup", given)),
    signIn: async (credentials) => complete(await post<SignInAnswer>("signin", credentials)),
    signInAnonymously: async (options) => begin(await post<Tokens>("signin/anonymous", options)),
    async signOut() {
      const refreshToken = await session.refreshToken();
      await session.forget();
      if (refreshToken === null) return;
      // The session has ended here. Without a connection it stays on the server, where nobody has its tokens.
      await post("signout", { refreshToken }).catch(() => {});
    },
    ...deferred(
      account,
      "link",
      "oauth",
      "redirectResult",
      "signInWithPage",
      "accountPage",
      "reload",
      "updateMe",
      "changePassword",
      "acceptInvite",
      "deleteMe",
    ),
    magicLink: part("magicLink", "request", "use"),
    code: part("code", "request", "use"),
    phone: part("phone", "request", "use", "change", "confirm"),
    passkeys: part("passkeys", "register", "signIn", "list", "remove"),
    mfa: part("mfa", "enroll", "verify", "send", "factors", "remove"),
    identities: part("identities", "list", "remove"),
    sessions: part("sessions", "list", "end"),
    emailVerification: part("emailVerification", "request", "use"),
    emailChange: part("emailChange", "request", "use"),
    passwordReset: part("passwordReset", "request", "use"),
  };
}
