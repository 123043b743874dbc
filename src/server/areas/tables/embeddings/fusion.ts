import { FUSION_CONSTANT } from "../limits.ts";

/**
 * Fuses lists, each with the best first, by reciprocal ranks: an item gets 1 / (60 + rank) from each list that has it. Returns the best first;
 * of equal ones that which is first in the first list, then in the second.
 */
export function fuse<Item extends number | string>(lists: readonly (readonly Item[])[]): Item[] {
  const scores = new Map<Item, number>();
  for (const list of lists) {
    for (const [rank, item] of list.entries()) {
      scores.set(item, (scores.get(item) ?? 0) + 1 / (FUSION_CONSTANT + rank + 1));
    }
  }
  // Sorting keeps the order of equal scores, and a map that of its first entries.
  return [...scores].sort(([, one], [, other]) => other - one).map(([item]) => item);
}
