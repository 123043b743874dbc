import { AppError } from "../../kernel/errors.ts";
import type { Logger } from "../../kernel/logger.ts";
import { DEVICES_PER_PAGE, TOPIC_CALLS_AT_ONCE_MAX, TOPIC_MESSAGES_WAITING_MAX } from "../limits.ts";
import type { PushStore, TopicRange, TopicTarget } from "../store.ts";
import type { Message } from "../types.ts";
import type { FanOut, NextTarget } from "./fan-out.ts";

/**
 * Messages to topics, sent one after another, after their requests have been answered. The queue is in memory only. Devices
 * whose service is unavailable do not delay the next message.
 */
export interface TopicQueue {
  /** Queues a message to the devices subscribed now. Errors: 503 if the queue is full. */
  add(topic: string, message: Message): void;
  /** Resolves when nothing is being sent; logs what was not sent because of `stopping`. */
  idle(): Promise<void>;
}

interface TopicMessage {
  range: TopicRange;
  message: Message;
}

export function createTopicQueue(deps: {
  store: PushStore;
  fanOut: FanOut;
  stopping: AbortSignal;
  logger: Logger;
}): TopicQueue {
  const { store, fanOut, stopping, logger } = deps;
  const waiting: TopicMessage[] = [];
  /** Messages with devices that wait for their service, and the one that is being sent. */
  const unfinished = new Set<Promise<unknown>>();
  let running: Promise<void> | null = null;

  /** Reads page by page; `range.after` is the position. */
  const devicesOf = (range: TopicRange): NextTarget => {
    let page: readonly TopicTarget[] = [];
    let index = 0;
    return () => {
      if (stopping.aborted) return null;
      if (index === page.length) {
        page = store.targetsOfTopic(range, DEVICES_PER_PAGE);
        index = 0;
      }
      const device = page[index++] ?? null;
      if (device !== null) range.after = device.seq;
      return device;
    };
  };

  const send = async ({ range, message }: TopicMessage): Promise<void> => {
    const sending = fanOut(devicesOf(range), message, { atOnce: TOPIC_CALLS_AT_ONCE_MAX, isPatient: true });
    unfinished.add(sending.done);
    void sending.done.then(() => unfinished.delete(sending.done));
    try {
      await sending.tried;
    } catch (cause) {
      logger.error("push: the devices of a topic cannot be read", { topic: range.topic, after: range.after, cause });
      await sending.done;
    }
  };
  const run = async (): Promise<void> => {
    for (let next = waiting[0]; next !== undefined && !stopping.aborted; next = waiting[0]) {
      await send(next);
      if (!stopping.aborted) waiting.shift();
    }
  };

  const reportDropped = (): void => {
    for (const { range } of waiting.splice(0)) {
      const devices = store.countOfTopic(range);
      if (devices > 0) logger.warn("push: stopped before a topic was done", { topic: range.topic, devices });
    }
  };

  return {
    add(topic, message) {
      if (waiting.length >= TOPIC_MESSAGES_WAITING_MAX) {
        throw new AppError(503, `Too many messages to topics are queued (at most ${TOPIC_MESSAGES_WAITING_MAX})`);
      }
      waiting.push({ range: { topic, after: 0, until: store.lastOfTopic(topic) }, message });
      running ??= run().finally(() => {
        running = null;
      });
    },
    async idle() {
      await running;
      await Promise.all(unfinished);
      reportDropped();
    },
  };
}
