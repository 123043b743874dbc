import type { Seen } from "../live/view.ts";
import type { TableWrite } from "../tables/writes.ts";

/** Write that waits to be sent, or for its response. */
export interface WaitingWrite {
  readonly write: TableWrite;
  readonly userId: string;
  /** Time of the first attempt; null: not sent. */
  readonly sentAt: number | null;
}

export interface SeenRecords extends Seen {
  readonly key: string;
  readonly at: number;
}

/** Storage that outlives the page. Writes are numbered in order. */
export interface OfflineStorage {
  /** Returns the owner of the data; null: nobody. */
  owner(): Promise<string | null>;
  setOwner(userId: string): Promise<void>;
  add(write: WaitingWrite): Promise<number>;
  put(serial: number, write: WaitingWrite): Promise<void>;
  remove(serial: number): Promise<void>;
  /** Returns waiting writes, oldest first; at most `count` (default: all). */
  waiting(count?: number): Promise<[serial: number, write: WaitingWrite][]>;
  seen(key: string): Promise<SeenRecords | null>;
  setSeen(records: SeenRecords): Promise<void>;
  /** Returns the keys of all kept queries, oldest first. */
  seenKeys(): Promise<string[]>;
  forget(key: string): Promise<void>;
  clear(): Promise<void>;
  close(): void;
}

const VERSION = 1;
const [WRITES, SEEN, OWNER] = ["writes", "seen", "owner"] as const;

const done = <T>(request: IDBRequest<T>): Promise<T> =>
  new Promise((resolve, reject) => {
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error);
  });

function open(name: string): Promise<IDBDatabase> {
  const request = indexedDB.open(`platform.${name}`, VERSION);
  request.onupgradeneeded = () => {
    const { result: database } = request;
    database.createObjectStore(WRITES, { autoIncrement: true });
    database.createObjectStore(SEEN, { keyPath: "key" }).createIndex("at", "at");
    database.createObjectStore(OWNER);
  };
  return done(request);
}

/** Opens a storage in this browser's IndexedDB database of that name. */
export async function openIndexedDb(name: string): Promise<OfflineStorage> {
  const database = await open(name);
  // A page that deletes or upgrades the database would otherwise wait for this one.
  database.onversionchange = () => database.close();
  const reading = (store: string) => database.transaction(store).objectStore(store);
  /** Resolves when the transaction is committed. */
  const writing = async <T>(stores: string[], work: (...all: IDBObjectStore[]) => IDBRequest<T>): Promise<T> => {
    const transaction = database.transaction(stores, "readwrite", { durability: "strict" });
    const request = work(...stores.map((store) => transaction.objectStore(store)));
    await new Promise<void>((resolve, reject) => {
      transaction.oncomplete = () => resolve();
      transaction.onabort = () => reject(transaction.error);
    });
    return request.result;
  };
  const change = async <T>(name: string, work: (store: IDBObjectStore) => IDBRequest<T>): Promise<void> => {
    await writing([name], (store) => work(store as IDBObjectStore));
  };
  return {
    owner: async () => ((await done(reading(OWNER).get(OWNER))) as string | undefined) ?? null,
    setOwner: async (userId) => change(OWNER, (store) => store.put(userId, OWNER)),
    add: async (write) => Number(await writing([WRITES], (store) => (store as IDBObjectStore).add(write))),
    put: async (serial, write) => change(WRITES, (store) => store.put(write, serial)),
    remove: async (serial) => change(WRITES, (store) => store.delete(serial)),
    async waiting(count) {
      const store = reading(WRITES);
      // Both are ordered by key.
      const [serials, writes] = await Promise.all([
        done(store.getAllKeys(null, count)),
        done(store.getAll(null, count)),
      ]);
      return serials.map((serial, index) => [Number(serial), writes[index] as WaitingWrite]);
    },
    seen: async (key) => ((await done(reading(SEEN).get(key))) as SeenRecords | undefined) ?? null,
    setSeen: async (records) => change(SEEN, (store) => store.put(records)),
    seenKeys: async () => (await done(reading(SEEN).index("at").getAllKeys())).map(String),
    forget: async (key) => change(SEEN, (store) => store.delete(key)),
    async clear() {
      await writing([WRITES, SEEN, OWNER], (...stores) => {
        const requests = stores.map((store) => store.clear());
        return requests[0] as IDBRequest<undefined>;
      });
    },
    close: () => database.close(),
  };
}
