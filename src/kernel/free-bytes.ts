/**
 * Gives the memory of bytes back at once, instead of when the collector comes to it: the bytes of large bodies and answers pile up
 * between two collections otherwise. Nobody may use them afterwards. A part of a larger buffer is left to the collector.
 */
export function freeBytes(bytes: Uint8Array<ArrayBuffer>): void {
  if (bytes.byteLength === bytes.buffer.byteLength) bytes.buffer.transfer(0);
}
