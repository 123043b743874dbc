/**
 * A map of at most `sizeMax` entries that evicts the least recently used one. `onEvict` is called for each evicted entry, not
 * for deleted ones.
 */
export class BoundedMap<K, V> {
  readonly #entries = new Map<K, V>();
  readonly #sizeMax: number;
  readonly #onEvict: ((key: K, value: V) => void) | undefined;

  constructor(sizeMax: number, onEvict?: (key: K, value: V) => void) {
    this.#sizeMax = sizeMax;
    this.#onEvict = onEvict;
  }

  get size(): number {
    return this.#entries.size;
  }

  get(key: K): V | undefined {
    const value = this.#entries.get(key);
    if (value === undefined) return undefined;
    this.#entries.delete(key);
    this.#entries.set(key, value);
    return value;
  }

  /** Like `get`, without marking the entry as used: for hot keys whose age does not matter. */
  peek(key: K): V | undefined {
    return this.#entries.get(key);
  }

  set(key: K, value: V): void {
    this.#entries.delete(key);
    this.#entries.set(key, value);
    if (this.#entries.size <= this.#sizeMax) return;
    for (const [oldest, evicted] of this.#entries) {
      this.#entries.delete(oldest);
      this.#onEvict?.(oldest, evicted);
      return;
    }
  }

  delete(key: K): boolean {
    return this.#entries.delete(key);
  }

  clear(): void {
    this.#entries.clear();
  }

  values(): IterableIterator<V> {
    return this.#entries.values();
  }

  entries(): IterableIterator<[K, V]> {
    return this.#entries.entries();
  }
}
