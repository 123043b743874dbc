/**
 * Releases the memory of bytes at once instead of at the next garbage collection: large bodies and answers pile up between two
 * collections. The bytes must not be used afterwards. A part of a larger buffer is left to the collector.
 */
export function freeBytes(bytes: Uint8Array<ArrayBuffer>): void {
  if (bytes.byteLength === bytes.buffer.byteLength) bytes.buffer.transfer(0);
}
