import type { OfflineStorage, SeenRecords, WaitingWrite } from "../../src/client/offline/storage.ts";

/** Stands in for a browser's IndexedDB: pages share it, and get copies. */
export function memoryStorage(): OfflineStorage & { readonly size: number } {
  const writes = new Map<number, WaitingWrite>();
  const seen = new Map<string, SeenRecords>();
  let owner: string | null = null;
  let serial = 0;
  return {
    get size() {
      return writes.size + seen.size;
    },
    owner: async () => owner,
    async setOwner(userId) {
      owner = userId;
    },
    async add(write) {
      writes.set(++serial, structuredClone(write));
      return serial;
    },
    async put(number, write) {
      if (writes.has(number)) writes.set(number, structuredClone(write));
    },
    remove: async (number) => void writes.delete(number),
    waiting: async (count = writes.size) => structuredClone([...writes].slice(0, count)),
    seen: async (key) => structuredClone(seen.get(key) ?? null),
    setSeen: async (records) => void seen.set(records.key, structuredClone(records)),
    seenKeys: async () => [...seen.values()].sort((one, other) => one.at - other.at).map(({ key }) => key),
    forget: async (key) => void seen.delete(key),
    async clear() {
      writes.clear();
      seen.clear();
      owner = null;
    },
    close() {},
  };
}
