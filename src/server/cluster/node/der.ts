// DER, as far as a certificate of a node needs it.

const [INTEGER, BIT_STRING, OCTET_STRING, OBJECT_ID, UTF8, SEQUENCE, SET] = [0x02, 0x03, 0x04, 0x06, 0x0c, 0x30, 0x31];
const LONG_LENGTH = 0x80;

/** Returns a value with its tag and length. At most 65,535 bytes. */
export function tagged(tag: number, ...parts: readonly Uint8Array[]): Uint8Array {
  const content = Buffer.concat(parts);
  const { length } = content;
  const size = length < LONG_LENGTH ? [length] : [LONG_LENGTH + 2, length >> 8, length & 0xff];
  // A length is written as short as it can be.
  if (length >= LONG_LENGTH && length < 256) size.splice(0, 2, LONG_LENGTH + 1);
  return Buffer.concat([Uint8Array.of(tag, ...size), content]);
}

export const sequence = (...parts: readonly Uint8Array[]): Uint8Array => tagged(SEQUENCE, ...parts);
export const setOf = (part: Uint8Array): Uint8Array => tagged(SET, part);
/** Returns a whole number below 128. */
export const integer = (value: number): Uint8Array => tagged(INTEGER, Uint8Array.of(value));
export const bits = (content: Uint8Array): Uint8Array => tagged(BIT_STRING, Uint8Array.of(0), content);
export const octets = (content: Uint8Array): Uint8Array => tagged(OCTET_STRING, content);
export const objectId = (hex: string): Uint8Array => tagged(OBJECT_ID, Buffer.from(hex, "hex"));
export const utf8 = (text: string): Uint8Array => tagged(UTF8, Buffer.from(text));
