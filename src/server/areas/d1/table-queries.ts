import type { Clock } from "../../../kernel/clock.ts";
import { freeBytes } from "../../../kernel/free-bytes.ts";
import type { Logger } from "../../../kernel/logger.ts";
import { currentSteps } from "../../../kernel/observing/request-trace.ts";
import type { AnswerText, DatabaseFile } from "../../db/index.ts";
import type { AnswerRoom } from "../../db/processes/answer-room.ts";
import { ProcessPool } from "../../db/processes/pool.ts";
import { runForText } from "../../db/processes/text-answer.ts";
import { PROCESS_IDLE_MS, QUEUE_MAX_QUERIES, READERS_MAX_PER_DATABASE, STOP_TIMEOUT_MS } from "./limits.ts";
import { type Query, QueryError, type TablesRequest } from "./query.ts";
import { errorOf, jobOf, type QueryCaller } from "./service.ts";

/** A file of tables, and the names of those that may be read. */
export interface QueriedTables {
  file: DatabaseFile;
  tables: readonly string[];
}

/** Runs queries of the tables of namespaces, with the limits of one database for all of them together. */
export class TableQueries {
  readonly #pool: ProcessPool;
  readonly #room: AnswerRoom;
  readonly #logger: Logger;

  constructor({ clock, room, logger }: { clock: Clock; room: AnswerRoom; logger: Logger }) {
    this.#room = room;
    this.#logger = logger;
    this.#pool = new ProcessPool({
      clock,
      program: "areas/d1/process/tables-job",
      settings: null,
      processesMax: READERS_MAX_PER_DATABASE,
      placesMax: QUEUE_MAX_QUERIES,
      idleMs: PROCESS_IDLE_MS,
    });
  }

  /** Runs one query; its text is the answer's `note`. Errors: those of `SqlService.query`, and 404 where the instance is deleted. */
  async run({ file, tables }: QueriedTables, query: Query, caller: QueryCaller): Promise<AnswerText> {
    let answer: AnswerText | null = null;
    const [startedAt, steps] = [performance.now(), currentSteps()];
    try {
      await file.ready();
      return await file.readElsewhere(async (ended) => {
        const job = jobOf(query, caller);
        const request: TablesRequest = { path: file.path, tables, query: job.request };
        const signals = [...job.signals, { signal: ended, reason: () => ended.reason }];
        answer = await runForText(this.#pool, { ...job, request, signals, room: this.#room });
        if (answer === null) throw new Error("the program answers every query with a text");
        // Without a plan: SQLite may take long to make one for a text of somebody else's.
        steps?.query(startedAt, { sql: answer.note ?? "", path: file.path, file: null, isElsewhere: true });
        return answer;
      });
    } catch (cause) {
      // Typed again: it is set by a function that TypeScript does not follow.
      (answer as AnswerText | null)?.release();
      throw cause instanceof QueryError ? errorOf(cause.failure, { path: file.path, logger: this.#logger }) : cause;
    } finally {
      if (query.kind === "body") for (const block of query.blocks) freeBytes(block);
    }
  }

  stop(): Promise<void> {
    return this.#pool.stop({ graceMs: STOP_TIMEOUT_MS });
  }
}
