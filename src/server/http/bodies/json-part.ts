import type { AppError } from "../../../kernel/errors.ts";
import type { JsonValue } from "../../../kernel/json/json.ts";
import { BLOCK_BYTES } from "../limits.ts";
import { type BodyRules, over, parseInSteps, refusalOf } from "./body.ts";
import { JsonScan } from "./json-scan.ts";

/** The JSON of one part of a form, with the bounds of a JSON body. */
export type JsonPart = ReturnType<typeof createJsonPart>;

export function createJsonPart({ maxBytes, bodies, turns, sender }: BodyRules) {
  const name = sender();
  let refused: AppError | null = null;
  let blocks: Uint8Array<ArrayBuffer>[] = [];
  let used = BLOCK_BYTES;
  let byteCount = 0;
  const scan = new JsonScan({ areValuesCounted: name !== null });
  const held = bodies.begin(name, (cause) => {
    refused = cause;
    blocks = [];
  });
  const keep = (bytes: Uint8Array): void => {
    for (let from = 0; from < bytes.byteLength; ) {
      if (used === BLOCK_BYTES) {
        blocks.push(new Uint8Array(BLOCK_BYTES));
        used = 0;
      }
      const part = bytes.subarray(from, from + BLOCK_BYTES - used);
      blocks.at(-1)?.set(part, used);
      used += part.byteLength;
      from += part.byteLength;
    }
  };
  return {
    /** Errors: 413 for too many bytes or values, 400 for excessive nesting, 429 and 503 as for a body that arrives. */
    async take(bytes: Uint8Array): Promise<void> {
      if (refused !== null) throw refused;
      byteCount += bytes.byteLength;
      if (byteCount > maxBytes) throw over(maxBytes);
      scan.take(bytes);
      held.add(bytes.byteLength);
      keep(bytes);
      await bodies.room();
    },
    /** Parses what was taken. Errors: 400. */
    async value(): Promise<JsonValue> {
      if (refused !== null) throw refused;
      held.complete();
      const last = blocks.pop()?.subarray(0, used);
      if (last !== undefined) blocks.push(last);
      try {
        return await turns.run(parseInSteps(blocks));
      } catch (cause) {
        throw refusalOf(cause);
      }
    },
    /** Frees its memory, also of a part that has not ended. */
    release(): void {
      held.release();
      blocks = [];
    },
  };
}
