import { BoundedMap } from "../../../../kernel/bounded-map.ts";
import type { Clock, Millis } from "../../../../kernel/clock.ts";
import { reasonOf } from "../../../../kernel/errors.ts";
import type { JsonObject, JsonValue } from "../../../../kernel/json/json.ts";
import type { Logger } from "../../../../kernel/logger.ts";
import { MINUTE_MS, SECOND_MS } from "../../../../kernel/time/duration.ts";
import type { AppAccess } from "../../../config/app/index.ts";
import type { Change, DatabaseFile } from "../../../db/index.ts";
import {
  EMBED_PROGRESS_MS,
  EMBED_RETRY_MAX_MS,
  EMBED_TIMEOUT_MS,
  EMBEDDINGS_AT_ONCE,
  EMBEDDINGS_KNOWN_MAX,
} from "../limits.ts";
import type { TableModel } from "../model/model.ts";
import { embedTexts } from "./calling.ts";
import {
  type EmbeddedModel,
  hasSetAside,
  isBehind,
  noteFailure,
  putVectors,
  stateOf,
  takeWaiting,
  tryAgain,
  type Which,
} from "./machine.ts";

/** Job that gives the records of one table in one file their vectors. */
export const EMBED_JOB = "platform.embed";

/** A table in a file. `instanceId` is null in a static namespace. */
export interface EmbeddedPlace {
  namespace: string;
  instanceId: string | null;
  table: string;
}

/** The work of a job. */
interface Task extends EmbeddedPlace {
  which: Which;
}

interface EmbedRun {
  id: string;
  data: JsonValue;
  signal: AbortSignal;
  log: Logger;
  save(data: JsonObject): Promise<void>;
}

/** Queue of jobs, as far as it is used here. */
export interface EmbedQueue {
  define(
    name: string,
    definition: {
      run(job: EmbedRun): Promise<void>;
      retries: number;
      timeout: null;
      concurrency: number;
      backoff(failure: { attempt: number; random: number }): Millis;
    },
  ): void;
  enqueue(name: string, data: JsonObject, options: { key: string }): Promise<string>;
}

/** A place whose job waits or runs. */
interface Begun {
  /** Whether the job has to look once more. */
  isWanted: boolean;
  /** Time of the last sign of the job. */
  at: Millis;
}

/** A job gives up by setting records aside, and not by itself. */
const RETRIES = 1_000_000;
/** Time after which a job is enqueued again that the queue has taken for one that has just ended. */
const AGAIN_MS = 100;
/** Time for which an ended job is remembered: by then the queue has noted its end. */
const ENDED_MS = 10 * SECOND_MS;
/** Time after which a job without a sign of life is enqueued again: somebody may have cancelled it. */
const SILENT_MS = 5 * MINUTE_MS;

/**
 * Keeps vectors in step with records. Which records wait is in their file, written by triggers in the transactions of the changes;
 * a job says only that some do. A lost job loses nothing: the next change, and the next opening of the file, begin another one.
 */
export function createEmbedding(deps: {
  queue: EmbedQueue;
  find(place: EmbeddedPlace): { model: TableModel; file: DatabaseFile } | null;
  app: () => AppAccess;
  clock: Clock;
  logger: Logger;
}) {
  const { queue, clock, logger } = deps;
  const begun = new BoundedMap<string, Begun>(EMBEDDINGS_KNOWN_MAX);
  const ended = new BoundedMap<string, { id: string; at: Millis }>(EMBEDDINGS_KNOWN_MAX);
  let isStopped = false;

  const wake = (task: Task): void => {
    const key = keyOf(task);
    const known = begun.get(key);
    if (known !== undefined) known.isWanted = true;
    if (isStopped || (known !== undefined && clock.now() - known.at < SILENT_MS)) return;
    begun.set(key, { isWanted: true, at: clock.now() });
    queue.enqueue(EMBED_JOB, { ...task }, { key }).then(
      (id) => {
        const last = ended.get(key);
        if (last?.id !== id || clock.now() - last.at > ENDED_MS) return;
        begun.delete(key);
        clock.after(AGAIN_MS, () => wake(task));
      },
      (cause: unknown) => {
        begun.delete(key);
        if (!isStopped) logger.error("tables: the job for vectors could not be enqueued", { ...task, cause });
      },
    );
  };

  /** Notes that a job has nothing left to do; in the same turn as it was seen, so that no change is missed in between. */
  const leave = (key: string, id: string): void => {
    begun.delete(key);
    ended.set(key, { id, at: clock.now() });
  };

  const run = createRun({ ...deps, begun, leave, wake });
  queue.define(EMBED_JOB, {
    async run(job) {
      // Written by `wake`.
      const { namespace, instanceId, table, which } = job.data as unknown as Task;
      const task = { namespace, instanceId, table, which };
      try {
        await run(task, job);
      } finally {
        // A cancelled job does not run again.
        if (job.signal.aborted) begun.delete(keyOf(task));
      }
    },
    retries: RETRIES,
    timeout: null,
    concurrency: EMBEDDINGS_AT_ONCE,
    backoff: ({ attempt, random }) =>
      Math.round(Math.min(EMBED_RETRY_MAX_MS, SECOND_MS * 2 ** Math.min(attempt - 1, 10)) * (0.5 + random / 2)),
  });

  return {
    /** Begins the work of records whose texts have changed. */
    announced({ namespace, instanceId }: Omit<EmbeddedPlace, "table">, model: EmbeddedModel, change: Change): void {
      const { before, after } = change;
      if (after === null) return;
      const isChanged = before === null || model.embed.fields.some((name) => before[name] !== after[name]);
      if (isChanged) wake({ namespace, instanceId, table: model.name, which: "next" });
    },
    /** Begins the work that waits in a file that has been opened. Records that were set aside are tried again. */
    opened(
      address: Omit<EmbeddedPlace, "table">,
      file: Pick<DatabaseFile, "query" | "write">,
      model: EmbeddedModel,
    ): void {
      const place = { ...address, table: model.name };
      if (hasSetAside(file, model)) {
        file
          .write((tx) => tryAgain(tx, model))
          .then(
            () => wake({ ...place, which: "next" }),
            (cause: unknown) =>
              logger.error("tables: records without vectors could not be tried again", { ...place, cause }),
          );
      }
      for (const which of ["next", "late"] as const) if (isBehind(file, model, which)) wake({ ...place, which });
    },
    stop(): void {
      isStopped = true;
    },
  };
}

function createRun(deps: {
  find(place: EmbeddedPlace): { model: TableModel; file: DatabaseFile } | null;
  app: () => AppAccess;
  clock: Clock;
  begun: BoundedMap<string, Begun>;
  leave(key: string, id: string): void;
  wake(task: Task): void;
}) {
  const { clock, begun, leave, wake } = deps;
  /** Embeds some records. Errors: those of the config's function. */
  const embedSome = async (
    file: DatabaseFile,
    model: EmbeddedModel,
    waiting: ReturnType<typeof takeWaiting> & object,
  ) => {
    const context = { app: deps.app(), clock, timeoutMs: EMBED_TIMEOUT_MS };
    const texts = waiting.map(({ text }) => text);
    const vectors = await embedTexts(model.embed, texts, context);
    await file.write((tx) => putVectors(tx, model, waiting, vectors));
  };

  return async (task: Task, job: EmbedRun): Promise<void> => {
    const key = keyOf(task);
    const report = (file: DatabaseFile, { name }: EmbeddedModel): Promise<void> => {
      const embedded = stateOf(file, { name })?.vectors ?? 0;
      return job.save({ ...task, records: file.rowCount(name), embedded });
    };
    let reportedAt = clock.now();
    /** Whether a call has succeeded since the last failure: then the next failure is about its records. */
    let isWorking = false;
    let isReported = false;
    for (;;) {
      job.signal.throwIfAborted();
      const mark = { isWanted: false, at: clock.now() };
      begun.set(key, mark);
      const found = deps.find(task);
      if (found === null || !hasEmbedding(found.model)) return leave(key, job.id);
      const { file, model } = found;
      const waiting = await file.write((tx) => takeWaiting(tx, model, task.which));
      if (waiting === null) {
        // What comes while this is written wants another look.
        if (!isReported) await report(file, model);
        isReported = true;
        if (begun.get(key)?.isWanted === true) continue;
        leave(key, job.id);
        if (task.which === "next" && isBehind(file, model, "late")) wake({ ...task, which: "late" });
        return;
      }
      isReported = false;
      if (waiting.length === 0) continue;
      try {
        await embedSome(file, model, waiting);
        isWorking = true;
      } catch (cause) {
        job.signal.throwIfAborted();
        const setAside = await file.write((tx) => noteFailure(tx, model, waiting));
        if (setAside > 0) {
          const reason = reasonOf(cause);
          job.log.error("tables: records have no vector: all tries have failed", {
            ...task,
            records: setAside,
            reason,
          });
        }
        if (!isWorking) throw cause;
        isWorking = false;
      }
      if (clock.now() - reportedAt < EMBED_PROGRESS_MS) continue;
      reportedAt = clock.now();
      await report(file, model);
    }
  };
}

/** Whether the records of a table get vectors. */
export const hasEmbedding = <Model extends TableModel>(model: Model): model is Model & EmbeddedModel =>
  model.embed !== null;

const keyOf = ({ namespace, instanceId, table, which }: Task): string =>
  `${namespace}/${instanceId ?? ""}/${table}/${which}`;
