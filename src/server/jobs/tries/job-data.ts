import type { JsonValue } from "../../../kernel/json/json.ts";
import { parseInSlices } from "../../../kernel/json/slices.ts";
import type { MaybePromise } from "../../../kernel/maybe-promise.ts";
import { Scheduler } from "../../../kernel/time/scheduler.ts";
import { SLICED_DATA_MIN_LENGTH } from "../limits.ts";

/** Parses the data of jobs. A large one, such as that of a trigger about a record of megabytes, takes several turns of the event loop. */
export function createDataParser(): (text: string) => MaybePromise<JsonValue> {
  const turns = new Scheduler();
  return (text) => {
    // The queue has written it.
    const parse = () => JSON.parse(text) as JsonValue;
    if (text.length < SLICED_DATA_MIN_LENGTH || !/^[[{]/.test(text)) return parse();
    // It refuses what no client may send, and code of the config may have enqueued.
    return turns.run(parseInSlices(text)).catch(parse);
  };
}
