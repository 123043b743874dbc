import { LRUCache } from "lru-cache";

/**
 * A map of at most `sizeMax` entries that evicts the least recently used one. `onEvict` is called for each evicted entry, not
 * for deleted ones. `peek` reads without counting as a use.
 */
export class BoundedMap<K extends string, V extends object> extends LRUCache<K, V> {
  constructor(sizeMax: number, onEvict: (key: K, value: V) => void = () => {}) {
    super({
      // Entries of size 1 instead of `max`, which would allocate room for all entries at once.
      maxSize: sizeMax,
      sizeCalculation: () => 1,
      dispose(value, key, reason) {
        if (reason === "evict") onEvict(key, value);
      },
    });
  }
}
