import { heapStats } from "bun:jsc";

/** What is in use on the heap of this process, strings and buffers included, after a garbage collection. */
export function heapBytes(): number {
  Bun.gc(true);
  return heapStats().heapSize;
}
