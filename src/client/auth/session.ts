import { REFRESH_TIMEOUT_MS } from "../limits.ts";
import type { Runtime } from "../runtime.ts";
import type { Store } from "../store.ts";
import { PlatformError } from "../transport/errors.ts";
import { withRetries } from "../transport/retries.ts";
import { asGiven, type Send } from "../transport/send.ts";
import { createKept, type KeptSession } from "./kept.ts";
import { inTurn } from "./lease.ts";
import { isDue, isValid, type StoredSession, stored } from "./stored.ts";
import type { Tokens, User } from "./types.ts";

/** The session of this client, which it shares with all clients of its store. */
export interface Session extends Pick<KeptSession, "subscribe" | "onUser" | "forget" | "ready" | "close"> {
  user(): User | null;
  /** A valid access token, refreshed if it is due; null when nobody is signed in. Errors: `PlatformError`. */
  token(): Promise<string | null>;
  /** Replaces an access token that the server has refused. false when there is no other one. */
  replaceRefused(token: string): Promise<boolean>;
  refreshToken(): Promise<string | null>;
  /** Begins a session. */
  adopt(tokens: Tokens): Promise<void>;
  /** Takes what the server answers about the user, with other tokens or without. Another user than the signed-in one is ignored. */
  update(answer: { user: User } | Tokens): Promise<void>;
}

interface Deps {
  store: Store;
  runtime: Runtime;
  send: Send;
  /** The host of the server: one store may have sessions of several servers. */
  host: string;
}

export function createSession({ store, runtime, send, host }: Deps): Session {
  const kept = createKept(store, `platform.session@${host}`);
  const leaseKey = `platform.refresh@${host}`;
  let renewal: Promise<StoredSession | null> | null = null;

  /**
   * The session that another client has stored meanwhile, null if it ended; undefined while it is still the stale one. Access
   * tokens of the same second are equal, refresh tokens never are.
   */
  const replaced = async (stale: StoredSession) => {
    const session = await kept.read();
    return session?.refreshToken === stale.refreshToken ? undefined : session;
  };

  /** One refresh at a time: in this client by the promise, in all clients of the store by its lock. */
  const renew = (stale: StoredSession): Promise<StoredSession | null> => {
    const work = () => refresh(stale);
    const outcome = () => replaced(stale);
    renewal ??= inTurn({ store, runtime, key: leaseKey, work, outcome }).finally(() => {
      renewal = null;
    });
    return renewal;
  };

  const refresh = async (stale: StoredSession): Promise<StoredSession | null> => {
    const other = await replaced(stale);
    if (other !== undefined) return other;
    const { refreshToken } = stale;
    const options = asGiven({ body: { refreshToken }, timeoutMs: REFRESH_TIMEOUT_MS });
    // For 30 s the server gives the same tokens again, so that a lost answer loses nothing.
    const tokens = await withRetries(() => send("POST", "/api/auth/refresh", options), runtime).catch((error) => {
      if (error instanceof PlatformError && [400, 401, 403].includes(error.status)) return null;
      throw error;
    });
    // A sign-out, or another sign-in, while the server was asked counts.
    const meanwhile = await replaced(stale);
    if (meanwhile !== undefined) return meanwhile;
    if (tokens !== null) return kept.keep(stored(tokens as Tokens, runtime.now()));
    await kept.forget();
    return null;
  };

  const fresh = async (): Promise<StoredSession | null> => {
    await kept.ready;
    const session = store.subscribe === undefined ? await kept.read() : kept.current();
    if (session === null || !isDue(session, runtime.now())) return session;
    try {
      return await renew(session);
    } catch (error) {
      // It was early: the present token serves until the server can be reached.
      if (isValid(session, runtime.now())) return session;
      throw error;
    }
  };

  return {
    ...kept,
    user: () => kept.current()?.user ?? null,
    token: async () => (await fresh())?.accessToken ?? null,
    async replaceRefused(token) {
      const known = await kept.read();
      const session = known?.accessToken === token ? await renew(known) : known;
      return session !== null && session.accessToken !== token;
    },
    refreshToken: async () => (await kept.read())?.refreshToken ?? null,
    adopt: async (tokens) => void (await kept.keep(stored(tokens, runtime.now()))),
    async update(answer) {
      const session = await kept.read();
      const { user } = answer;
      if (session?.user.id !== user.id) return;
      const next = "accessToken" in answer ? stored(answer, runtime.now()) : { ...session, user };
      if (JSON.stringify(session) !== JSON.stringify(next)) await kept.keep(next);
    },
  };
}
