import type { Clock } from "../../../../kernel/clock.ts";
import type { SocketServer } from "../../../sockets/socket-server.ts";
import {
  FAN_OUT_BEHIND_BYTES,
  FAN_OUT_TURN_US,
  SEND_BYTES_PER_US,
  SEND_MEASURED_MIN,
  SEND_US_MAX,
  SEND_US_MIN,
} from "../limits.ts";
import { Topic } from "./topic.ts";

const MICROSECONDS_PER_MS = 1_000;

/** Topics, and the turns in which their messages are sent. */
export interface FanOut {
  /** Creates a topic. */
  topic(): Topic;
  /** So much waits in topics that publishers that can wait should. */
  readonly isBehind: boolean;
  stop(): void;
}

/**
 * Sends what waits in topics, in turns of bounded cost. Bun hands small messages to the system after the turn, where a clock
 * here does not measure them: their cost is estimated from the number of sockets and bytes, and from how long the last turn
 * took until the loop came back. [RT102] [RT260]
 */
export function createFanOut(clock: Clock, sockets: SocketServer): FanOut {
  const waiting = new Set<Topic>();
  let topicCount = 0;
  let waitingBytes = 0;
  let heldBytes = 0;
  /** In this turn of the event loop, in microseconds. */
  let spentUs = 0;
  let sendUs = SEND_US_MAX;
  let turn = { members: 0, startedAt: 0 };
  let isRunning = false;
  let cancelNext: (() => void) | null = null;

  const run = (): void => {
    if (isRunning) return;
    isRunning = true;
    for (const topic of waiting) {
      if (spentUs >= FAN_OUT_TURN_US) break;
      const startedAt = clock.now();
      waiting.delete(topic);
      const sent = topic.sendSome();
      if (sent === null) continue;
      const { members, bytes } = sent;
      if (turn.members === 0) turn.startedAt = startedAt;
      turn.members += members;
      const seenUs = (clock.now() - startedAt) * MICROSECONDS_PER_MS;
      spentUs += Math.max(members * (sendUs + bytes / SEND_BYTES_PER_US), seenUs);
      // Added again behind the others.
      if (topic.hasWaiting) waiting.add(topic);
    }
    isRunning = false;
    cancelNext ??= clock.after(0, () => {
      cancelNext = null;
      spentUs = 0;
      // Whatever else the loop did meanwhile counts too, so that the estimate is too high rather than too low.
      const tookUs = (clock.now() - turn.startedAt) * MICROSECONDS_PER_MS;
      if (turn.members >= SEND_MEASURED_MIN) {
        sendUs = Math.min(SEND_US_MAX, Math.max(SEND_US_MIN, tookUs / turn.members));
      }
      turn = { members: 0, startedAt: 0 };
      if (waiting.size > 0) run();
    });
  };
  const turns = {
    wake(topic: Topic): void {
      waiting.add(topic);
      if (spentUs < FAN_OUT_TURN_US) run();
    },
    count(bytes: number): void {
      waitingBytes += bytes;
    },
    countHeld(bytes: number): void {
      heldBytes += bytes;
    },
    get isHoldingTooMuch() {
      return heldBytes > FAN_OUT_BEHIND_BYTES;
    },
  };
  return {
    // Names are numbers, so that no channel can collide with the topic of another area.
    topic: () => new Topic(`realtime/${topicCount++}`, sockets, turns),
    get isBehind() {
      return waitingBytes > FAN_OUT_BEHIND_BYTES;
    },
    stop: () => cancelNext?.(),
  };
}
