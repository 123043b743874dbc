import { badField, badRequest } from "../../../kernel/errors.ts";

const [AMPERSAND, EQUALS, PLUS, PERCENT, SPACE] = [0x26, 0x3d, 0x2b, 0x25, 0x20];

/** Returns the value of a hexadecimal digit; -1: it is none. */
function digitOf(byte: number | undefined): number {
  if (byte === undefined) return -1;
  if (byte >= 0x30 && byte <= 0x39) return byte - 0x30;
  const letter = byte | 0x20;
  return letter >= 0x61 && letter <= 0x66 ? letter - 0x57 : -1;
}

/** Decodes a form of the type `application/x-www-form-urlencoded` as it arrives: each chunk costs only its own bytes. */
export class UrlEncoded {
  readonly fields: [name: string, value: string][] = [];
  readonly #fieldsMax: number;
  /** The decoded bytes of the field in progress. */
  #bytes = new Uint8Array(256);
  #used = 0;
  /** The index of the field's value; -1: its name has not ended. */
  #valueAt = -1;
  #isEmpty = true;
  /** The beginning of an escape that continues in the next chunk. */
  #rest: Uint8Array = new Uint8Array(0);

  constructor(fieldsMax: number) {
    this.#fieldsMax = fieldsMax;
  }

  /** Decodes a chunk. Errors: 400 for too many fields, and for invalid UTF-8. */
  take(chunk: Uint8Array): void {
    const bytes = this.#rest.length === 0 ? chunk : Buffer.concat([this.#rest, chunk]);
    this.#reserve(bytes.length);
    let at = 0;
    for (; at < bytes.length; at++) {
      const byte = bytes[at] ?? 0;
      if (byte === PERCENT && at + 2 >= bytes.length) break;
      at += this.#takeByte(byte, bytes, at);
    }
    this.#rest = bytes.slice(at);
  }

  end(): void {
    for (const byte of this.#rest) this.#add(byte);
    this.#endField();
  }

  /** Decodes a byte, and returns the number of further bytes that belong to it. */
  #takeByte(byte: number, bytes: Uint8Array, at: number): number {
    if (byte === AMPERSAND) this.#endField();
    else if (byte === EQUALS && this.#valueAt < 0) {
      this.#valueAt = this.#used;
      this.#isEmpty = false;
    } else if (byte !== PERCENT) this.#add(byte === PLUS ? SPACE : byte);
    else {
      const [high, low] = [digitOf(bytes[at + 1]), digitOf(bytes[at + 2])];
      const isEscape = high >= 0 && low >= 0;
      this.#add(isEscape ? high * 16 + low : byte);
      if (isEscape) return 2;
    }
    return 0;
  }

  #add(byte: number): void {
    this.#bytes[this.#used++] = byte;
    this.#isEmpty = false;
  }

  #reserve(count: number): void {
    if (this.#used + count <= this.#bytes.length) return;
    const larger = new Uint8Array(2 * (this.#used + count));
    larger.set(this.#bytes.subarray(0, this.#used));
    this.#bytes = larger;
  }

  #endField(): void {
    const valueAt = this.#valueAt < 0 ? this.#used : this.#valueAt;
    if (!this.#isEmpty) {
      if (this.fields.length >= this.#fieldsMax) throw badRequest(`A form has at most ${this.#fieldsMax} fields`);
      this.fields.push([decoded(this.#bytes.subarray(0, valueAt)), decoded(this.#bytes.subarray(valueAt, this.#used))]);
    }
    this.#used = 0;
    this.#valueAt = -1;
    this.#isEmpty = true;
  }
}

/**
 * Decodes a small form, each of whose fields comes once. Errors: 400 for too many fields, invalid UTF-8, and for a field that is
 * repeated: of two values, one would be ignored. [HT145]
 */
export function singleFields(bytes: Uint8Array, fieldsMax: number): ReadonlyMap<string, string> {
  const form = new UrlEncoded(fieldsMax);
  form.take(bytes);
  form.end();
  const fields = new Map<string, string>();
  for (const [name, value] of form.fields) {
    if (fields.has(name))
      throw badField(name, "invalid_value", `${name} is a field that can be sent once, and was repeated`);
    fields.set(name, value);
  }
  return fields;
}

const UTF8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

function decoded(bytes: Uint8Array): string {
  try {
    return UTF8.decode(bytes);
  } catch {
    throw badRequest("The body is not valid UTF-8");
  }
}
