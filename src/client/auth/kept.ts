import { createListeners } from "../listeners.ts";
import type { MaybePromise, Store } from "../store.ts";
import { parseStored, type StoredSession } from "./stored.ts";
import type { User } from "./types.ts";

type UserListener = (user: User | null) => void;

/** The stored session as this client knows it, and who hears of its changes. */
export interface KeptSession {
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

export function createKept(store: Store, key: string): KeptSession {
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
