import type { Method, Transport } from "../transport/types.ts";
import type { Session } from "./session.ts";
import type { SignInResult, SignUpResult, Tokens, User } from "./types.ts";

/** Server response to a sign-in. */
export type SignInAnswer =
  | Tokens
  | { mfaRequired: true; mfaTicket: string; factors?: { id: string; type: "totp" | "phone" }[] };
export type SignUpAnswer = Tokens | { user: User; verificationRequired: true };

/** Steps shared by all ways to sign in. */
export interface SignIns {
  /** Posts without the access token of a signed-in user, which is unrelated. */
  post<T>(path: string, body?: object): Promise<T>;
  /** Completes a sign-in from a response, or returns the missing second step. */
  complete(answer: SignInAnswer): Promise<SignInResult>;
  /** Starts a session. */
  begin(tokens: Tokens): Promise<{ user: User }>;
  completeSignUp(answer: SignUpAnswer): Promise<SignUpResult>;
}

/** Sends a request as the signed-in user, to a path of `/api/auth`. */
export type Own = <T = unknown>(method: Method, path: string, body?: object) => Promise<T>;

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
      const step = (name: string, proof?: object) => post<Tokens>(`mfa/${name}`, { mfaTicket, ...proof });
      return {
        mfa: {
          factors,
          send: async () => void (await step("phone/send")),
          verify: async (code) => begin(await step("verify", { code })),
          recover: async (recoveryCode) => begin(await step("recovery", { recoveryCode })),
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
