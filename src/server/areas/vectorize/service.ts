import type { Clock } from "../../../kernel/clock.ts";
import { AppError, clientGone } from "../../../kernel/errors.ts";
import { jsonCopy } from "../../../kernel/json/copy.ts";
import type { JsonValue } from "../../../kernel/json/json.ts";
import type { Logger } from "../../../kernel/logger.ts";
import { createParser } from "../../../kernel/schema/parser.ts";
import { SECOND_MS } from "../../../kernel/time/duration.ts";
import type { VectorAccessor } from "../../config/app/index.ts";
import type { VectorMetric } from "../../config/types.ts";
import {
  type Actor,
  type AnswerText,
  type DatabaseFile,
  type ReadCaller,
  SERVER_ACTOR,
  SERVER_CALLER,
} from "../../db/index.ts";
import { createAnswerRoom } from "../../db/processes/answer-room.ts";
import type { Job } from "../../db/processes/job.ts";
import { ProcessPool } from "../../db/processes/pool.ts";
import { QueryError, queryError } from "../../db/processes/query-error.ts";
import { runForText, textOf } from "../../db/processes/text-answer.ts";
import { Action, numbersCopy, searchQuery, storedVectors } from "./actions.ts";
import { PROCESS_IDLE_MS, SEARCH_QUEUE_MAX, SEARCH_QUEUE_TIMEOUT_MS, SEARCH_TIMEOUT_MS } from "./limits.ts";
import type { Compaction, VectorStore } from "./store.ts";
import type { IndexDefinition, ListQuery, SearchJob, SearchQuery, SearchTask, StoredVector } from "./types.ts";

export type VectorService = ReturnType<typeof createVectorService>;

export function createVectorService(deps: {
  index: IndexDefinition;
  store: VectorStore;
  compaction: Compaction;
  searches: Searches;
  file: DatabaseFile;
  extensionPath: string;
  logger: Logger;
}) {
  const { index, file, store, compaction, searches, extensionPath, logger } = deps;
  /** Runs a search, unless a sync has failed, which the connections of search processes do not notice. */
  const read = async (task: SearchTask, caller: ReadCaller): Promise<AnswerText> => {
    file.assertReadable();
    try {
      const answer = await searches.run({ ...task, path: file.path, extensionPath }, caller);
      file.assertReadable();
      return answer;
    } catch (cause) {
      if (!(cause instanceof QueryError)) throw cause;
      logger.error("vectorize: search failed", { path: file.path, message: cause.message });
      throw new AppError(500, "Internal error", { cause });
    }
  };
  let vectorCount = store.count();
  return {
    index,
    /** Inserts vectors, or replaces those of the same id, with their metadata. Resolves to their number, when they are on disk. */
    async upsert(vectors: readonly StoredVector[], by: Actor): Promise<number> {
      // Two statements: `vectorCount += await …` would add to the count from before the write.
      const newCount = await store.upsert(vectors, by);
      vectorCount += newCount;
      return vectors.length;
    },
    /** Resolves to the JSON of `{ matches, count }`, nearest first. */
    search: (query: SearchQuery, caller: ReadCaller): Promise<AnswerText> => read(store.searchJob(query), caller),
    /** Deletes vectors. Resolves to the number of those that existed. */
    async delete(ids: readonly string[], by: Actor): Promise<number> {
      const count = await store.delete(ids, by);
      vectorCount -= count;
      compaction.afterDeletions(count);
      return count;
    },
    /** Resolves to the JSON of `{ vectors }`, in the order of `ids`, without those that do not exist. */
    getByIds: (ids: readonly string[], caller: ReadCaller): Promise<AnswerText> => read(store.getJob(ids), caller),
    /** Resolves to the JSON of `{ vectors, cursor }`: ids and metadata, ordered by id. */
    list: (query: ListQuery, caller: ReadCaller): Promise<AnswerText> => read(store.listJob(query), caller),
    describe(): { vectorCount: number; dimensions: number; metric: VectorMetric } {
      file.assertReadable();
      return { vectorCount, dimensions: index.dimensions, metric: index.metric };
    },
  };
}

const actions = createParser(Action);

/** Parses an action like a request's body. */
function parse<Name extends Action["action"]>(action: { action: Name } & Record<string, unknown>) {
  // Numbers and metadata are checked copies here; the schema refuses all other values that JSON lacks.
  return actions.parse(action as JsonValue) as Extract<Action, { action: Name }>;
}

/** Creates `app.vectors(name)` for a service; arguments are checked like a request's body. */
export function createVectorAccessor(service: VectorService): VectorAccessor {
  const { index } = service;
  return {
    async upsert(list) {
      const vectors = list.map(({ id, values, metadata }, position) => ({
        id,
        values: numbersCopy(`vectors.${position}.values`, values),
        metadata: jsonCopy(metadata ?? {}),
      }));
      return service.upsert(await storedVectors(index, parse({ action: "upsert", vectors })), SERVER_ACTOR);
    },
    async search(values, options = {}) {
      const vector = numbersCopy("vector", values);
      const action = parse({ action: "search", ...jsonCopy(options), vector });
      const answer = await service.search(searchQuery(index, action), SERVER_CALLER);
      answer.release();
      return JSON.parse(textOf(answer)).matches;
    },
    delete: async (ids) => service.delete(parse({ action: "delete", ids: [...ids] }).ids, SERVER_ACTOR),
  };
}

/** Search processes, which all indexes share. */
export type Searches = ReturnType<typeof createSearches>;

export function createSearches({ processesMax, clock }: { processesMax: number; clock: Clock }) {
  const room = createAnswerRoom();
  const pool = new ProcessPool({
    clock,
    program: "areas/vectorize/search-job",
    settings: null,
    processesMax,
    placesMax: SEARCH_QUEUE_MAX,
    idleMs: PROCESS_IDLE_MS,
  });
  return {
    /**
     * Runs a search. Resolves to the answer's JSON. Errors: 503 if too many wait, it has waited too long, or the server stops; 408
     * after the time limit; 499 if the client has closed the connection; QueryError for what SQLite refuses.
     */
    async run(search: SearchJob, { callerName, signal }: ReadCaller): Promise<AnswerText> {
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
    stop: (): Promise<void> => pool.stop(),
  };
}

const tooMany = (): AppError => new AppError(503, "Too many searches are waiting");

const REFUSALS: Job["refusals"] = {
  queueFull: tooMany,
  waitedTooLong: tooMany,
  ranTooLong: () => new AppError(408, `The search was ended after ${SEARCH_TIMEOUT_MS / SECOND_MS} s`),
  ended: () => new AppError(503, "The search process ended unexpectedly; the search may be sent again"),
};
