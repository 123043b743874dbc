import type { Clock } from "../../../kernel/clock.ts";
import { AppError, clientGone } from "../../../kernel/errors.ts";
import { SECOND_MS } from "../../../kernel/time/duration.ts";
import type { AnswerText, ReadCaller } from "../../db/index.ts";
import { createAnswerRoom } from "../../db/processes/answer-room.ts";
import type { Job } from "../../db/processes/job.ts";
import { ProcessPool } from "../../db/processes/pool.ts";
import { queryError } from "../../db/processes/query-error.ts";
import { runForText } from "../../db/processes/text-answer.ts";
import { PROCESS_IDLE_MS, SEARCH_QUEUE_MAX, SEARCH_QUEUE_TIMEOUT_MS, SEARCH_TIMEOUT_MS } from "./limits.ts";
import type { SearchJob } from "./types.ts";

/** Runs the searches of all indexes in other processes. */
export interface Searches {
  /**
   * The answer's JSON. Errors: 503 when too many wait, one has waited too long, or the server stops; 408 after the time limit;
   * 499 when the client has closed the connection; QueryError for what SQLite refuses.
   */
  run(search: SearchJob, caller: ReadCaller): Promise<AnswerText>;
  stop(): Promise<void>;
}

export function createSearches({ processesMax, clock }: { processesMax: number; clock: Clock }): Searches {
  const room = createAnswerRoom();
  const pool = new ProcessPool({
    clock,
    program: "areas/vectorize/search/search-job",
    settings: null,
    processesMax,
    placesMax: SEARCH_QUEUE_MAX,
    idleMs: PROCESS_IDLE_MS,
  });
  return {
    async run(search, { callerName, signal }) {
      const answer = await runForText(pool, {
        room,
        request: search,
        caller: callerName,
        places: 1,
        waitMs: SEARCH_QUEUE_TIMEOUT_MS,
        runMs: SEARCH_TIMEOUT_MS,
        signals: signal === undefined ? [] : [{ signal, reason: clientGone }],
        refusals: REFUSALS,
        failed: queryError,
      });
      if (answer === null) throw new Error("a search gave no answer");
      return answer;
    },
    stop: () => pool.stop(),
  };
}

const tooMany = (): AppError => new AppError(503, "Too many searches are waiting");

const REFUSALS: Job["refusals"] = {
  queueFull: tooMany,
  waitedTooLong: tooMany,
  ranTooLong: () => new AppError(408, `The search was ended after ${SEARCH_TIMEOUT_MS / SECOND_MS} s`),
  ended: () => new AppError(503, "The search process ended unexpectedly; the search may be sent again"),
};
