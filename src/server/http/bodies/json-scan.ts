import { badRequest, tooLarge } from "../../../kernel/errors.ts";
import { JSON_DEPTH_MAX } from "../../../kernel/limits.ts";
import { BODY_NAMES_MAX, BODY_VALUES_MAX } from "../limits.ts";

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const COMMA = 0x2c;
const COLON = 0x3a;
const [OPENING_BRACKET, CLOSING_BRACKET] = [0x5b, 0x5d];
const [OPENING_BRACE, CLOSING_BRACE] = [0x7b, 0x7d];

/** The number of bytes of a string that are scanned one by one before its end is searched for, which is quicker only in long strings. */
const SEARCH_AFTER_BYTES = 64;

/**
 * Scans JSON in UTF-8 as it arrives, before it is parsed: ten megabytes of brackets or tiny values would block the event loop for
 * half a second in the parser and in later walks over the values. Invalid JSON may pass: the parser refuses it.
 */
export class JsonScan {
  readonly #areValuesCounted: boolean;
  #isInString = false;
  #isEscaped = false;
  #depth = 0;
  #nameCount = 0;
  #valueCount = 0;

  /** Creates a scan. `areValuesCounted`: false for endpoints without a bound on values, such as vectors. */
  constructor(options: { areValuesCounted: boolean }) {
    this.#areValuesCounted = options.areValuesCounted;
  }

  /** Begins another text. The counts of names and values continue. */
  begin(): void {
    this.#isInString = false;
    this.#isEscaped = false;
    this.#depth = 0;
  }

  /** Scans the next chunk. Errors: 400 for excessive nesting, 413 for too many names or values. */
  take(bytes: Uint8Array): void {
    for (let at = 0; at < bytes.length; at++) {
      if (this.#isInString) at = this.#takeString(bytes, at);
      const byte = bytes[at];
      if (byte === QUOTE) this.#isInString = true;
      else if (byte === COMMA) this.#valueCount++;
      else if (byte === COLON) this.#nameCount++;
      else if (byte === OPENING_BRACKET || byte === OPENING_BRACE) {
        this.#valueCount++;
        if (++this.#depth > JSON_DEPTH_MAX) throw badRequest(`The body nests deeper than ${JSON_DEPTH_MAX} levels`);
      } else if (byte === CLOSING_BRACKET || byte === CLOSING_BRACE) this.#depth--;
    }
    if (!this.#areValuesCounted) return;
    if (this.#nameCount > BODY_NAMES_MAX) throw tooLarge(`The body must have at most ${BODY_NAMES_MAX} members`);
    if (this.#valueCount > BODY_VALUES_MAX) throw tooLarge(`The body must hold at most ${BODY_VALUES_MAX} values`);
  }

  /** Scans from inside a string; returns the index behind it, or the length of `bytes`. */
  #takeString(bytes: Uint8Array, from: number): number {
    let isEscaped = this.#isEscaped;
    let searchAt = from + SEARCH_AFTER_BYTES;
    for (let at = from; at < bytes.length; at++) {
      const byte = bytes[at];
      if (isEscaped) isEscaped = false;
      else if (byte === BACKSLASH) isEscaped = true;
      else if (byte === QUOTE) {
        this.#isInString = false;
        this.#isEscaped = false;
        return at + 1;
      } else if (at >= searchAt) {
        const found = bytes.indexOf(QUOTE, at);
        let next = found < 0 ? bytes.length : found;
        // An escape may precede the quote, so scanning resumes at the first of its backslashes.
        while (next > at + 1 && bytes[next - 1] === BACKSLASH) next--;
        at = next - 1;
        searchAt = next + SEARCH_AFTER_BYTES;
      }
    }
    this.#isEscaped = isEscaped;
    return bytes.length;
  }
}
