import { heapStats } from "bun:jsc";

/** Returns the bytes in use on this process's heap, including strings and buffers, after a garbage collection. */
export function heapBytes(): number {
  Bun.gc(true);
  return heapStats().heapSize;
}
