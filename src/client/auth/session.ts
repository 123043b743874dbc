import { textOf } from "../base64url.ts";
import { createListeners } from "../listeners.ts";
import type { Runtime } from "../runtime.ts";
import type { MaybePromise, Store } from "../store.ts";
import { PlatformError } from "../transport/errors.ts";
import { asGiven, type Send, withRetries } from "../transport/send.ts";
import type { InTurn } from "./lease.ts";
import type { Tokens, User } from "./types.ts";

/** Access tokens are refreshed when less than this, or than a fifth of their lifetime, is left. */
const REFRESH_MARGIN_MS = 60_000;

/**
 * Session as stored. Its times use this machine's clock, which may be wrong: they derive from the arrival of the tokens and their
 * validity, never from timestamps in the tokens.
 */
interface StoredSession extends Tokens {
  /** Arrival of the tokens, in milliseconds. */
  takenAt: number;
  /** Validity of the access token on arrival, in milliseconds. */
  lifetimeMs: number;
}

/** Returns the lifetime stated by an access token; 0 for an unreadable one, which is then refreshed at each use. */
function lifetimeMsOf(accessToken: string): number {
  try {
    const payload = accessToken.split(".")[1] ?? "";
    const { exp, iat } = JSON.parse(textOf(payload));
    return (exp - iat) * 1000 || 0;
  } catch {
    return 0;
  }
}

const stored = ({ user, accessToken, refreshToken }: Tokens, now: number): StoredSession => ({
  user,
  accessToken,
  refreshToken,
  takenAt: now,
  lifetimeMs: lifetimeMsOf(accessToken),
});

/** Parses a stored session; null if the text is not one. */
function parseStored(text: string | null): StoredSession | null {
  try {
    const session = JSON.parse(text ?? "null");
    return typeof session?.refreshToken === "string" ? session : null;
  } catch {
    return null;
  }
}

/** Returns the remaining validity of the access token in milliseconds; none if the clock was set back to before its arrival. */
const leftMs = ({ takenAt, lifetimeMs }: StoredSession, now: number): number =>
  now < takenAt ? 0 : takenAt + lifetimeMs - now;

const isValid = (session: StoredSession, now: number): boolean => leftMs(session, now) > 0;

/** Returns whether the access token is due for a refresh. */
const isDue = (session: StoredSession, now: number): boolean =>
  leftMs(session, now) <= Math.min(REFRESH_MARGIN_MS, session.lifetimeMs / 5);

type UserListener = (user: User | null) => void;

/** Cached stored session, and the listeners of its changes. */
interface KeptSession {
  current(): StoredSession | null;
  /** Rereads the store. */
  read(): Promise<StoredSession | null>;
  keep(session: StoredSession): Promise<StoredSession>;
  forget(): Promise<void>;
  /** Subscribes to changes of the user's data, of the user, and to the end of the session. */
  subscribe(listener: UserListener): () => void;
  /** Subscribes to the sign-in of another user, and to sign-out. */
  onUser(listener: UserListener): () => void;
  /** Resolves after the first read of the store. */
  readonly ready: Promise<void>;
  close(): void;
}

function createKept(store: Store, key: string): KeptSession {
  const changes = createListeners<[User | null]>();
  const users = createListeners<[User | null]>();
  let current: StoredSession | null = null;

  const become = (next: StoredSession | null) => {
    const [before, user] = [current?.user ?? null, next?.user ?? null];
    current = next;
    if (JSON.stringify(before) === JSON.stringify(user)) return;
    changes.tell(user);
    if (before?.id !== user?.id) users.tell(user);
  };
  const read = async () => {
    become(parseStored(await store.get(key)));
    return current;
  };

  const first: MaybePromise<string | null> = store.get(key);
  const isAtOnce = typeof first === "string" || first === null;
  if (isAtOnce) current = parseStored(first);
  const end = store.subscribe?.((changed) => {
    if (changed === key) void read();
  });

  return {
    current: () => current,
    read,
    async keep(session) {
      await store.set(key, JSON.stringify(session));
      become(session);
      return session;
    },
    async forget() {
      await store.remove(key);
      become(null);
    },
    subscribe: changes.add,
    onUser: users.add,
    ready: isAtOnce ? Promise.resolve() : read().then(() => {}),
    close: () => end?.(),
  };
}

/** Timeout of one refresh attempt. Ends within the lease. */
const REFRESH_TIMEOUT_MS = 10_000;

/** Session of this client, shared with all clients of its store. */
export interface Session extends Pick<KeptSession, "subscribe" | "onUser" | "forget" | "ready" | "close"> {
  user(): User | null;
  /** Returns a valid access token, refreshed if due; null when nobody is signed in. Errors: `PlatformError`. */
  token(): Promise<string | null>;
  /** Replaces an access token that the server refused. Returns false when there is no other one. */
  replaceRefused(token: string): Promise<boolean>;
  refreshToken(): Promise<string | null>;
  /** Starts a session. */
  adopt(tokens: Tokens): Promise<void>;
  /** Takes a changed user or changed tokens from a response. Ignored unless they belong to the signed-in user. */
  update(answer: { user: User } | Tokens): Promise<void>;
}

interface Deps {
  store: Store;
  runtime: Runtime;
  send: Send;
  /** Host of the server: one store may hold sessions of several servers. */
  host: string;
  inTurn: InTurn;
}

export function createSession({ store, runtime, send, host, inTurn }: Deps): Session {
  const kept = createKept(store, `platform.session@${host}`);
  const leaseKey = `platform.refresh@${host}`;
  let renewal: Promise<StoredSession | null> | null = null;

  /**
   * Returns the session that another client has stored meanwhile; null if it ended, undefined while the store still has the stale
   * one. Access tokens of the same second are equal, refresh tokens never are.
   */
  const replaced = async (stale: StoredSession) => {
    const session = await kept.read();
    return session?.refreshToken === stale.refreshToken ? undefined : session;
  };

  /** Refreshes the session, one refresh at a time: by the promise within this client, by the lock across clients of the store. */
  const renew = (stale: StoredSession): Promise<StoredSession | null> => {
    const work = () => refresh(stale);
    const outcome = () => replaced(stale);
    renewal ??= inTurn({ key: leaseKey, work, outcome }).finally(() => {
      renewal = null;
    });
    return renewal;
  };

  const refresh = async (stale: StoredSession): Promise<StoredSession | null> => {
    const other = await replaced(stale);
    if (other !== undefined) return other;
    const { refreshToken } = stale;
    const options = asGiven({ body: { refreshToken }, timeoutMs: REFRESH_TIMEOUT_MS });
    // The server returns the same tokens again for 30 s, so a lost response loses nothing.
    const tokens = await withRetries(() => send("POST", "/api/auth/refresh", options), runtime).catch((error) => {
      if (error instanceof PlatformError && [400, 401, 403].includes(error.status)) return null;
      throw error;
    });
    // A sign-out, or another sign-in, during the request takes precedence.
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
      // The refresh was early: the present token stays in use until the server is reachable.
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
