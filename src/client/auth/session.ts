import { textOf } from "../base64url.ts";
import { createListeners } from "../listeners.ts";
import type { Runtime } from "../runtime.ts";
import type { MaybePromise, Store } from "../store.ts";
import { PlatformError } from "../transport/errors.ts";
import { asGiven, type Send, withRetries } from "../transport/send.ts";
import { inTurn } from "./lease.ts";
import type { Tokens, User } from "./types.ts";

/** An access token is replaced when less than this, or than a fifth of its lifetime, is left. */
const REFRESH_MARGIN_MS = 60_000;

/**
 * A session as the store has it. Its times are by this machine's clock, which may be wrong: they follow from when the tokens
 * arrived and from how long they are valid, never from the times in them.
 */
interface StoredSession extends Tokens {
  /** When the tokens arrived. */
  takenAt: number;
  /** How long the access token was valid then, in milliseconds. */
  lifetimeMs: number;
}

/** The lifetime that an access token says; 0 for one that cannot be read, which is then refreshed at each use. */
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

/** null for a text that is not a session. */
function parseStored(text: string | null): StoredSession | null {
  try {
    const session = JSON.parse(text ?? "null");
    return typeof session?.refreshToken === "string" ? session : null;
  } catch {
    return null;
  }
}

/** Milliseconds for which the access token is still valid; none if the clock was set back behind its arrival. */
const leftMs = ({ takenAt, lifetimeMs }: StoredSession, now: number): number =>
  now < takenAt ? 0 : takenAt + lifetimeMs - now;

const isValid = (session: StoredSession, now: number): boolean => leftMs(session, now) > 0;

/** Whether it is time for the next access token. */
const isDue = (session: StoredSession, now: number): boolean =>
  leftMs(session, now) <= Math.min(REFRESH_MARGIN_MS, session.lifetimeMs / 5);

type UserListener = (user: User | null) => void;

/** The stored session as this client knows it, and who hears of its changes. */
interface KeptSession {
  current(): StoredSession | null;
  /** Reads the store again. */
  read(): Promise<StoredSession | null>;
  keep(session: StoredSession): Promise<StoredSession>;
  forget(): Promise<void>;
  /** Called at each change of the user's data, of the user, and at the end of the session. */
  subscribe(listener: UserListener): () => void;
  /** Called when another user is signed in, or none any more. */
  onUser(listener: UserListener): () => void;
  /** Resolves when the store has been read for the first time. */
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

/** One try of a refresh. Ends within the lease. */
const REFRESH_TIMEOUT_MS = 10_000;

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
