/** Keeps the largest of many items, in memory for twice as many as are wanted. Equal items stay in order of arrival. */
export class Largest<T> {
  readonly #wanted: number;
  #items: { item: T; size: number }[] = [];
  /** Items of at most this size are dropped. */
  #floor = Number.NEGATIVE_INFINITY;

  /** `wanted`: at least 1. */
  constructor(wanted: number) {
    this.#wanted = wanted;
  }

  add(item: T, size: number): void {
    if (size <= this.#floor) return;
    this.#items.push({ item, size });
    if (this.#items.length < 2 * this.#wanted) return;
    this.#shorten();
    this.#floor = this.#items.at(-1)?.size ?? this.#floor;
  }

  /** Returns the items, largest first. */
  sorted(): T[] {
    this.#shorten();
    return this.#items.map(({ item }) => item);
  }

  #shorten(): void {
    this.#items.sort((one, other) => other.size - one.size);
    this.#items.length = Math.min(this.#items.length, this.#wanted);
  }
}
