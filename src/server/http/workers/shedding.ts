/** Connections that a process ends in a second at most, so that others get them. */
const ENDED_PER_SECOND_MAX = 50;

/** Ends some connections with their next answer, while a process has too many of them. */
export class Shedding {
  #left = 0;

  /** Whether the answer to a request is to end its connection. */
  takes(): boolean {
    if (this.#left === 0) return false;
    this.#left -= 1;
    return true;
  }

  /** Ends this share of the connections that have a request under way. Called once a second while a process has too many. */
  begin(share: number, underWay: number): void {
    this.#left = Math.min(ENDED_PER_SECOND_MAX, Math.ceil(share * underWay));
  }
}
