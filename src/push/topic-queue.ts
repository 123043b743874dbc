import { AppError } from "../kernel/errors.ts";
import type { Logger } from "../kernel/logger.ts";
import type { FanOut } from "./fan-out.ts";
import { DEVICES_PER_PAGE, TOPIC_CALLS_AT_ONCE_MAX, TOPIC_MESSAGES_WAITING_MAX } from "./limits.ts";
import type { PushStore, TopicRange } from "./store.ts";
import type { Device, Message } from "./types.ts";

/** Messages to topics, sent one after another behind the answers. They are kept in memory alone. */
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
  let running: Promise<void> | null = null;

  /** Page by page; `range.after` is where it stands. */
  function* devicesOf(range: TopicRange): Generator<Device> {
    while (!stopping.aborted) {
      const page = store.devicesOfTopic(range, DEVICES_PER_PAGE);
      if (page.length === 0) return;
      for (const device of page) {
        if (stopping.aborted) return;
        range.after = device.seq;
        yield device;
      }
    }
  }

  const run = async (): Promise<void> => {
    for (let next = waiting[0]; next !== undefined && !stopping.aborted; next = waiting[0]) {
      try {
        await fanOut(devicesOf(next.range), next.message, { atOnce: TOPIC_CALLS_AT_ONCE_MAX });
      } catch (cause) {
        logger.error("push: sending to a topic failed", { topic: next.range.topic, cause });
      }
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
      reportDropped();
    },
  };
}
