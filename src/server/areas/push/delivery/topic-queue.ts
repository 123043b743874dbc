import type { Clock } from "../../../../kernel/clock.ts";
import { AppError } from "../../../../kernel/errors.ts";
import type { JsonValue } from "../../../../kernel/json/json.ts";
import type { Logger } from "../../../../kernel/logger.ts";
import type { JobRun, Queue } from "../../../jobs/index.ts";
import {
  TOPIC_CALLS_AT_ONCE_MAX,
  TOPIC_MESSAGES_AT_ONCE_MAX,
  TOPIC_MESSAGES_WAITING_MAX,
  TOPIC_RETRIES_MAX,
  TOPIC_SAVE_INTERVAL_MS,
} from "../limits.ts";
import type { PushStore } from "../store.ts";
import type { Message } from "../types.ts";
import type { FanOut } from "./fan-out.ts";
import { createTopicProgress, type TopicProgress, type TopicSend } from "./topic-progress.ts";

/** The name of the jobs that send messages to topics. */
const TOPIC_JOB_NAME = "platform.push";

/**
 * Messages to topics, sent one after another, after their requests have been answered. Each is a job, which continues where it
 * was when the process ended. Devices whose service is unavailable do not delay the next message.
 */
export interface TopicQueue {
  /** Resolves when the message, to the devices subscribed now, is on disk. Errors: 503 if the queue is full. */
  add(topic: string, message: Message): Promise<void>;
  /** Resolves when nothing is being sent. */
  idle(): Promise<void>;
}

/** How a try ended. */
interface Sent {
  reached: TopicSend;
  /** null: every device has its result. */
  failure: { cause: unknown } | null;
}

export function createTopicQueue(deps: {
  queue: Queue;
  /** Messages are sent at once, since no job runs in a drill. */
  isDrill: boolean;
  store: PushStore;
  fanOut: FanOut;
  stopping: AbortSignal;
  clock: Clock;
  logger: Logger;
}): TopicQueue {
  const { queue, store, fanOut, stopping, clock, logger } = deps;
  const running = new Set<Promise<unknown>>();
  /** Resolves when the message before has tried all of its devices. */
  let turn: Promise<unknown> = Promise.resolve();
  const tries = createTries();
  /** Messages that are being enqueued, and those that have been since the queue was last counted. */
  let enqueuing = 0;
  let unfinished: number | null = null;

  const send = async (data: TopicSend, job: Pick<JobRun, "save" | "signal"> | null): Promise<Sent> => {
    const before = turn;
    const { promise: tried, resolve: release } = Promise.withResolvers<void>();
    turn = tried;
    await before;
    // Also when somebody cancels the job.
    const isEnding = () => stopping.aborted || job?.signal.aborted === true;
    const progress = createTopicProgress({ send: data, store, isEnding });
    const saving = job === null ? null : startSaving(job, progress, clock);
    const sending = fanOut(progress.next, data.message, {
      atOnce: TOPIC_CALLS_AT_ONCE_MAX,
      patience: job?.signal ?? stopping,
      isLeft: (outcome) => isEnding() && outcome.status === "failed",
      onSettled: progress.settle,
    });
    let failure: Sent["failure"] = null;
    try {
      await sending.tried;
    } catch (cause) {
      failure = { cause };
      const { topic, after } = progress.state();
      logger.error("push: the devices of a topic cannot be read", { topic, after, cause });
    } finally {
      release();
    }
    await sending.done;
    await saving?.end();
    if (failure === null && isEnding() && !progress.isOver()) {
      if (stopping.aborted) {
        logger.warn("push: stopped before a topic was done", { topic: data.topic, devices: progress.left() });
      }
      failure = { cause: new Error("The message was stopped before all devices were reached") };
    }
    return { reached: progress.state(), failure };
  };
  const tracked = (sending: Promise<Sent>): Promise<Sent> => {
    const ended = sending
      .catch(() => {})
      .then(() => {
        running.delete(ended);
      });
    running.add(ended);
    return sending;
  };
  queue.define(TOPIC_JOB_NAME, {
    retries: TOPIC_RETRIES_MAX,
    timeout: null,
    concurrency: TOPIC_MESSAGES_AT_ONCE_MAX,
    run: async (job) => {
      const { failure } = await tries.begin(job, (data) => tracked(send(data, job)));
      if (failure !== null) throw failure.cause;
      if (unfinished !== null) unfinished -= 1;
    },
  });

  const requireRoom = (): void => {
    if (unfinished === null || unfinished >= TOPIC_MESSAGES_WAITING_MAX) {
      unfinished = queue.unfinished(TOPIC_JOB_NAME) + enqueuing;
    }
    if (unfinished < TOPIC_MESSAGES_WAITING_MAX) return;
    throw new AppError(503, `Too many messages to topics are queued (at most ${TOPIC_MESSAGES_WAITING_MAX})`);
  };
  return {
    async add(topic, message) {
      const data: TopicSend = { topic, after: 0, until: store.lastOfTopic(topic), message, open: [] };
      if (deps.isDrill) {
        tracked(send(data, null)).catch(() => {});
        return;
      }
      requireRoom();
      unfinished = (unfinished ?? 0) + 1;
      enqueuing += 1;
      try {
        await queue.enqueue(TOPIC_JOB_NAME, data as unknown as JsonValue);
      } catch (cause) {
        unfinished -= 1;
        throw cause;
      } finally {
        enqueuing -= 1;
      }
    },
    async idle() {
      while (running.size > 0) await Promise.all(running);
    },
  };
}

/** A job that was cancelled may be retried before its last calls are answered: the retry begins when they are, where they have got. */
function createTries() {
  const latest = new Map<string, Promise<Sent>>();
  return {
    async begin({ id, data }: Pick<JobRun, "id" | "data">, send: (data: TopicSend) => Promise<Sent>): Promise<Sent> {
      const earlier = latest.get(id);
      // Written by `add` and `startSaving`.
      const sending =
        earlier === undefined ? send(data as unknown as TopicSend) : earlier.then(({ reached }) => send(reached));
      latest.set(id, sending);
      try {
        return await sending;
      } finally {
        if (latest.get(id) === sending) latest.delete(id);
      }
    },
  };
}

/** Saves how far a message has got, at intervals and at the end. A killed process sends again what it sent since. */
function startSaving(job: Pick<JobRun, "save">, progress: TopicProgress, clock: Clock) {
  let saved: Promise<unknown> = Promise.resolve();
  let cancel = () => {};
  const save = (): void => {
    saved = saved.then(() => job.save(progress.state() as unknown as JsonValue)).catch(() => {});
  };
  const plan = (): void => {
    cancel = clock.after(TOPIC_SAVE_INTERVAL_MS, () => {
      save();
      plan();
    });
  };
  plan();
  return {
    end(): Promise<unknown> {
      cancel();
      if (!progress.isOver()) save();
      return saved;
    },
  };
}
