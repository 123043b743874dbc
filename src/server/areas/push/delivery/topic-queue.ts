import type { Clock } from "../../../../kernel/clock.ts";
import { AppError } from "../../../../kernel/errors.ts";
import type { JsonValue } from "../../../../kernel/json/json.ts";
import type { Logger } from "../../../../kernel/logger.ts";
import type { JobRun, Queue } from "../../../jobs/index.ts";
import {
  DEVICES_PER_PAGE,
  TOPIC_CALLS_AT_ONCE_MAX,
  TOPIC_MESSAGES_AT_ONCE_MAX,
  TOPIC_MESSAGES_WAITING_MAX,
  TOPIC_RETRIES_MAX,
  TOPIC_SAVE_INTERVAL_MS,
} from "../limits.ts";
import type { Message, Target } from "../message.ts";
import type { TopicRange, TopicTarget } from "../statements/push.ts";
import type { PushStore } from "../store.ts";
import type { FanOut } from "./fan-out.ts";

/** The name of the jobs that send messages to topics. */
const TOPIC_JOB_NAME = "platform.push";

/** The outcome of one try. */
interface Sent {
  reached: TopicSend;
  /** null: every device has its result. */
  failure: { cause: unknown } | null;
}

/**
 * Queue of messages to topics, sent one after another, after their requests have been answered. Each is a job that resumes after
 * a restart where it had got. Devices whose service is unavailable do not delay the next message.
 */
export type TopicQueue = ReturnType<typeof createTopicQueue>;

export function createTopicQueue(deps: {
  queue: Queue;
  /** Whether messages are sent at once, because no job runs in a drill. */
  isDrill: boolean;
  store: PushStore;
  fanOut: FanOut;
  stopping: AbortSignal;
  clock: Clock;
  logger: Logger;
}) {
  const { queue, store, fanOut, stopping, clock, logger } = deps;
  const running = new Set<Promise<unknown>>();
  /** Resolves when the message before has tried all of its devices. */
  let turn: Promise<unknown> = Promise.resolve();
  const tries = createTries();
  /** Messages being enqueued, and those enqueued since the queue was last counted. */
  let enqueuing = 0;
  let unfinished: number | null = null;

  const send = async (data: TopicSend, job: Pick<JobRun, "save" | "signal"> | null): Promise<Sent> => {
    const before = turn;
    const { promise: tried, resolve: release } = Promise.withResolvers<void>();
    turn = tried;
    await before;
    // A cancelled job ends as at a stop.
    const isEnding = () => stopping.aborted || job?.signal.aborted === true;
    const progress = new TopicProgress({ send: data, store, isEnding });
    const saving = job === null ? null : startSaving(job, progress, clock);
    const sending = fanOut(() => progress.next(), data.message, {
      atOnce: TOPIC_CALLS_AT_ONCE_MAX,
      patience: job?.signal ?? stopping,
      isLeft: (outcome) => isEnding() && outcome.status === "failed",
      onSettled: (target) => progress.settle(target),
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
    /** Queues a message to the devices subscribed now. Resolves when it is on disk. Errors: 503 if the queue is full. */
    async add(topic: string, message: Message): Promise<void> {
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
    /** Resolves when nothing is being sent. */
    async idle(): Promise<void> {
      while (running.size > 0) await Promise.all(running);
    },
  };
}

/**
 * Serialises the tries of one job. A cancelled job may be retried before its last calls are answered: the retry waits for them and
 * continues from their position.
 */
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

/** Saves the position of a message at intervals and at the end. After a crash, devices reached since the last save get it again. */
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

/** Job data of a message to a topic: the message and its position. */
export interface TopicSend extends TopicRange {
  message: Message;
  /** Devices up to `after` that have no result yet. */
  open: readonly number[];
}

/** The devices of one message that are still to be tried. */
export class TopicProgress {
  readonly #store: Pick<PushStore, "targetsOfTopic" | "countOfTopic">;
  readonly #isEnding: () => boolean;
  readonly #message: Message;
  readonly #range: TopicRange;
  /** Devices left open by an earlier process, in reverse order. */
  readonly #again: number[];
  readonly #open: Set<number>;
  #page: readonly TopicTarget[] = [];
  #index = 0;

  constructor(deps: {
    send: TopicSend;
    store: Pick<PushStore, "targetsOfTopic" | "countOfTopic">;
    isEnding: () => boolean;
  }) {
    const { open, message, ...range } = deps.send;
    this.#store = deps.store;
    this.#isEnding = deps.isEnding;
    this.#message = message;
    this.#range = range;
    this.#again = [...open].reverse();
    this.#open = new Set(open);
  }

  /** Returns the next device, read page by page; null at the end, and when the job is ending. */
  next(): TopicTarget | null {
    if (this.#isEnding()) return null;
    const device = this.#nextAgain();
    if (device !== null) return device;
    if (this.#index === this.#page.length) {
      this.#page = this.#store.targetsOfTopic(this.#range, DEVICES_PER_PAGE);
      this.#index = 0;
    }
    const next = this.#page[this.#index++] ?? null;
    if (next !== null) {
      this.#range.after = next.seq;
      this.#open.add(next.seq);
    }
    return next;
  }

  /** Notes that the device has its result. */
  settle(target: Target): void {
    // Every target comes from `next`.
    this.#open.delete((target as TopicTarget).seq);
  }

  /** Returns the job data from which a later try resumes. */
  state(): TopicSend {
    return { ...this.#range, message: this.#message, open: [...this.#open] };
  }

  /** Whether every device has its result. */
  isOver(): boolean {
    return this.#open.size === 0 && this.#store.targetsOfTopic(this.#range, 1).length === 0;
  }

  /** Counts the devices that have no result yet, which takes a while. */
  left(): number {
    return this.#open.size + this.#store.countOfTopic(this.#range);
  }

  #nextAgain(): TopicTarget | null {
    for (let seq = this.#again.at(-1); seq !== undefined; seq = this.#again.at(-1)) {
      const [device = null] = this.#store.targetsOfTopic({ ...this.#range, after: seq - 1, until: seq }, 1);
      this.#again.pop();
      if (device !== null) return device;
      // The device has been removed, or has left the topic.
      this.#open.delete(seq);
    }
    return null;
  }
}
