import { badRequest, tooLarge } from "../kernel/errors.ts";
import { JSON_DEPTH_MAX } from "../kernel/json.ts";
import { BODY_NAMES_MAX, BODY_VALUES_MAX } from "./limits.ts";

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const COMMA = 0x2c;
const COLON = 0x3a;
const [OPENING_BRACKET, CLOSING_BRACKET] = [0x5b, 0x5d];
const [OPENING_BRACE, CLOSING_BRACE] = [0x7b, 0x7d];

/**
 * Looks at a JSON text as it arrives, before anything is parsed: ten megabytes of brackets or tiny values hold the parser, and
 * what walks over them later, for half a second. What is no JSON may pass: the parser says so.
 */
export class JsonScan {
  readonly #areValuesCounted: boolean;
  #isInString = false;
  #isEscaped = false;
  #depth = 0;
  #nameCount = 0;
  #valueCount = 0;

  /** `areValuesCounted`: false for callers who may send as many as fit, as vectors do. */
  constructor(options: { areValuesCounted: boolean }) {
    this.#areValuesCounted = options.areValuesCounted;
  }

  /** The next part. Errors: 400 for what nests too deep, 413 for too many names or values. */
  take(text: string): void {
    let [isInString, isEscaped] = [this.#isInString, this.#isEscaped];
    for (let at = 0; at < text.length; at++) {
      const unit = text.charCodeAt(at);
      if (isInString) {
        if (isEscaped) isEscaped = false;
        else if (unit === BACKSLASH) isEscaped = true;
        else if (unit === QUOTE) isInString = false;
      } else if (unit === QUOTE) isInString = true;
      else if (unit === COMMA) this.#valueCount++;
      else if (unit === COLON) this.#nameCount++;
      else if (unit === OPENING_BRACKET || unit === OPENING_BRACE) {
        this.#valueCount++;
        if (++this.#depth > JSON_DEPTH_MAX) throw badRequest(`The body nests deeper than ${JSON_DEPTH_MAX} levels`);
      } else if (unit === CLOSING_BRACKET || unit === CLOSING_BRACE) this.#depth--;
    }
    this.#isInString = isInString;
    this.#isEscaped = isEscaped;
    if (!this.#areValuesCounted) return;
    if (this.#nameCount > BODY_NAMES_MAX) throw tooLarge(`The body must have at most ${BODY_NAMES_MAX} members`);
    if (this.#valueCount > BODY_VALUES_MAX) throw tooLarge(`The body must hold at most ${BODY_VALUES_MAX} values`);
  }
}
