import { DEVICES_PER_PAGE } from "../limits.ts";
import type { PushStore, TopicRange, TopicTarget } from "../store.ts";
import type { Message, Target } from "../types.ts";

/** A message to a topic, as the data of its job: how far it has got. */
export interface TopicSend extends TopicRange {
  message: Message;
  /** Devices up to `after` that have no result yet. */
  open: readonly number[];
}

/** The devices of one message that are still to be tried. */
export interface TopicProgress {
  /** The next device, read page by page; null at the end, and when `isEnding`. */
  next(): TopicTarget | null;
  /** The device has its result. */
  settle(target: Target): void;
  /** The data of the job from here on. */
  state(): TopicSend;
  /** Every device has its result. */
  isOver(): boolean;
  /** Devices that have no result yet, which takes a while to count. */
  left(): number;
}

export function createTopicProgress(deps: {
  send: TopicSend;
  store: Pick<PushStore, "targetsOfTopic" | "countOfTopic">;
  isEnding: () => boolean;
}): TopicProgress {
  const { store, isEnding } = deps;
  const { open: earlier, message, ...start } = deps.send;
  const range = { ...start };
  /** Of an earlier process, in reverse order. */
  const again = [...earlier].reverse();
  const open = new Set<number>(earlier);
  let page: readonly TopicTarget[] = [];
  let index = 0;

  const nextAgain = (): TopicTarget | null => {
    for (let seq = again.at(-1); seq !== undefined; seq = again.at(-1)) {
      const [device = null] = store.targetsOfTopic({ ...range, after: seq - 1, until: seq }, 1);
      again.pop();
      if (device !== null) return device;
      // It has been removed, or has left the topic.
      open.delete(seq);
    }
    return null;
  };
  return {
    next() {
      if (isEnding()) return null;
      const device = nextAgain();
      if (device !== null) return device;
      if (index === page.length) {
        page = store.targetsOfTopic(range, DEVICES_PER_PAGE);
        index = 0;
      }
      const next = page[index++] ?? null;
      if (next !== null) {
        range.after = next.seq;
        open.add(next.seq);
      }
      return next;
    },
    // Every target comes from `next`.
    settle: (target) => void open.delete((target as TopicTarget).seq),
    state: () => ({ ...range, message, open: [...open] }),
    isOver: () => open.size === 0 && store.targetsOfTopic(range, 1).length === 0,
    left: () => open.size + store.countOfTopic(range),
  };
}
