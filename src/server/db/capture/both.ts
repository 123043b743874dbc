import type { CommitCapture } from "./types.ts";

/** Gives commits to two takers, the first of which decides when they are durable. */
export function bothCaptures(first: CommitCapture, second: CommitCapture): CommitCapture {
  return {
    ...(first.durable === undefined ? {} : { durable: first.durable }),
    opening(path) {
      const [one, other] = [first.opening(path), second.opening(path)];
      return {
        left(facts, frames) {
          one.left(facts, frames);
          other.left(facts, frames);
        },
        opened(facts) {
          const isTaken = one.opened(facts);
          other.opened(facts);
          // The frames that are there now are given to nobody.
          if (isTaken === true) other.broken();
          return isTaken;
        },
        frames(frames) {
          one.frames(frames);
          other.frames(frames);
        },
        broken() {
          one.broken();
          other.broken();
        },
        closed() {
          one.closed();
          other.closed();
        },
      };
    },
    removing(path) {
      first.removing(path);
      second.removing(path);
    },
  };
}
