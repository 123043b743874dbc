import { AppError } from "../../kernel/errors.ts";
import type { Logger } from "../../kernel/logger.ts";
import { DEVICES_PER_PAGE, TOPIC_CALLS_AT_ONCE_MAX, TOPIC_MESSAGES_WAITING_MAX } from "../limits.ts";
import type { PushStore, TopicRange, TopicTarget } from "../store.ts";
import type { Message } from "../types.ts";
import type { FanOut, NextTarget } from "./fan-out.ts";

/**
 * Messages to topics, sent one after another behind the answers. They are kept in memory alone. Devices whose service is out
 * do not hold up the message behind.
 */
export interface TopicQueue {
  /** To the devices that are subscribed now. Returns at once. Errors: 503 too many wait. */
  add(topic: string, message: Message): void;
  /** Resolves when nothing is under way; what `stopping` has kept from being sent is logged. */
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
  /** Messages with devices whose service is out, besides the one that is being sent. */
  const unfinished = new Set<Promise<unknown>>();
  let running: Promise<void> | null = null;

  /** Page by page; `range.after` is where it stands. */
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
        throw new AppError(503, `Too many messages to topics are waiting (at most ${TOPIC_MESSAGES_WAITING_MAX})`);
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
