import { PAGES_MAX } from "../limits.ts";
import { SERVER_CALLER } from "../server-caller.ts";

/** Returns the share of one caller: at most half of what is left, and at least one place. [DB120] */
export const shareOf = (left: number): number => Math.ceil(left / 2);

/** Places of the pages that are read or being sent: each may take some megabytes, so they are few. [DB127] */
export class PagePlaces {
  readonly #taken = new Map<string, number>();
  #total = 0;

  mayAdd(caller: string): boolean {
    if (this.#total >= PAGES_MAX) return false;
    return caller === SERVER_CALLER.callerName || (this.#taken.get(caller) ?? 0) < shareOf(PAGES_MAX - this.#total);
  }

  /** Takes a place. Returns the function that ends it; only its first call counts. */
  add(caller: string, onEnd: () => void): () => void {
    this.#total += 1;
    this.#taken.set(caller, (this.#taken.get(caller) ?? 0) + 1);
    let isOver = false;
    return () => {
      if (isOver) return;
      isOver = true;
      this.#total -= 1;
      const left = (this.#taken.get(caller) ?? 1) - 1;
      if (left > 0) this.#taken.set(caller, left);
      else this.#taken.delete(caller);
      onEnd();
    };
  }
}
