import type { Session } from "../auth/session.ts";
import { PlatformError, statusError } from "./errors.ts";
import { asGiven, type Send, type ServerAddress, urlOf } from "./send.ts";
import type { Method, RequestOptions, Transport } from "./types.ts";

/**
 * Returns whether a 401 refuses the token. Others are about the request, such as a wrong password, or about how long ago the user
 * signed in.
 */
const isTokenRefused = (error: unknown): boolean =>
  error instanceof PlatformError && error.status === 401 && /^(?:Invalid token|Token expired)$/.test(error.message);

export function createTransport({ base, runtime }: ServerAddress, send: Send, session: Session): Transport {
  return {
    async request<T>(method: Method, path: string, given: RequestOptions = {}): Promise<T> {
      // Serialized once: the server compares a repeated write with the first one byte for byte.
      const options = asGiven(given);
      const { auth: isAuthorized = true, idempotent = false, headers } = options;
      // The type is the caller's choice: responses are not validated again.
      if (!isAuthorized) return (await send(method, path, options)) as T;
      const key = idempotent === true ? runtime.uuid() : idempotent;
      const sendWith = async (token: string | null) => {
        // The server stores no idempotent responses for anonymous callers.
        if (token === null) return (await send(method, path, { ...options, idempotent: false })) as T;
        const authorized = { ...headers, Authorization: `Bearer ${token}` };
        return (await send(method, path, { ...options, headers: authorized, idempotent: key })) as T;
      };
      await session.ready;
      const user = session.user();
      const ownToken = async () => {
        const own = await session.token();
        // A request of one user is not sent as another one, who may have signed in meanwhile, also in another tab.
        if (user !== null && own !== null && session.user()?.id !== user.id) throw statusError(401, "Another user");
        return own;
      };
      const token = await ownToken();
      try {
        return await sendWith(token);
      } catch (error) {
        if (token === null || !isTokenRefused(error) || !(await session.replaceRefused(token))) throw error;
        return await sendWith(await ownToken());
      }
    },
    token: session.token,
    userId: () => session.user()?.id ?? null,
    onAuth: session.onUser,
    url: (path, query) => urlOf(base, path, query),
  };
}
