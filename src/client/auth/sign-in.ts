import type { Transport } from "../transport/types.ts";
import type { Session } from "./session.ts";
import type { SignInResult, SignUpResult, Tokens, User } from "./types.ts";

/** What the server answers to a sign-in. */
export type SignInAnswer = Tokens | { mfaRequired: true; mfaTicket: string; factors?: { id: string; type: "totp" }[] };
export type SignUpAnswer = Tokens | { user: User; verificationRequired: true };

/** What every way of signing in goes through. */
export interface SignIns {
  /** Posts without the tokens of a user who is already signed in: they have nothing to do with it. */
  post<T>(path: string, body?: object): Promise<T>;
  /** Signs in with an answer, or gives what is still missing. */
  complete(answer: SignInAnswer): Promise<SignInResult>;
  /** Begins a session. */
  begin(tokens: Tokens): Promise<{ user: User }>;
  completeSignUp(answer: SignUpAnswer): Promise<SignUpResult>;
}

export function createSignIns(transport: Transport, session: Session): SignIns {
  const post = <T>(path: string, body: object = {}) =>
    transport.request<T>("POST", `/api/auth/${path}`, { body, auth: false });
  const begin = async (tokens: Tokens) => {
    await session.adopt(tokens);
    return { user: tokens.user };
  };
  return {
    post,
    begin,
    async complete(answer) {
      if ("accessToken" in answer) return begin(answer);
      const { mfaTicket, factors = [] } = answer;
      return {
        mfa: {
          factors,
          verify: async (code) => begin(await post("mfa/verify", { mfaTicket, code })),
          recover: async (recoveryCode) => begin(await post("mfa/recovery", { mfaTicket, recoveryCode })),
        },
      };
    },
    async completeSignUp(answer) {
      const isSignedIn = "accessToken" in answer;
      if (isSignedIn) await begin(answer);
      return { user: answer.user, verificationRequired: !isSignedIn };
    },
  };
}
