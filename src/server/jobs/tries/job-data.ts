import type { JsonValue } from "../../../kernel/json/json.ts";
import { parseInSlices } from "../../../kernel/json/slices.ts";
import type { MaybePromise } from "../../../kernel/maybe-promise.ts";
import { Scheduler } from "../../../kernel/time/scheduler.ts";
import { SLICED_DATA_MIN_LENGTH } from "../limits.ts";

/**
 * Creates a parser of job data. Large data, such as that of a trigger about a record of megabytes, is parsed over several turns of
 * the event loop.
 */
export function createDataParser(): (text: string) => MaybePromise<JsonValue> {
  const turns = new Scheduler();
  return (text) => {
    // Written as JSON by the queue.
    const parse = () => JSON.parse(text) as JsonValue;
    if (text.length < SLICED_DATA_MIN_LENGTH || !/^[[{]/.test(text)) return parse();
    // The slices refuse some values that no client may send, but that a config's code may have enqueued.
    return turns.run(parseInSlices(text)).catch(parse);
  };
}
