import type { Clock } from "../../../kernel/clock.ts";
import { type Pace, Scheduler } from "../../../kernel/time/scheduler.ts";
import type { PushPlatform, PushStatus } from "../../config/shapes/push.ts";
import { LISTED_CHUNK, LISTED_SCAN_MAX, LOG_RETENTION_MS, TOPIC_COUNT_STEP } from "./limits.ts";
import {
  type DeviceRow,
  deviceBySeq,
  deviceByToken,
  devicesBefore,
  devicesOfTopicBefore,
  devicesOfUserBefore,
  firstTopic,
  type LogRow,
  topicsOfDevice,
} from "./statements/push.ts";
import type { PushStore } from "./store.ts";

/** Filter of devices, which must match every member; null: any. */
export interface DeviceQuery {
  userId: string | null;
  token: string | null;
  platform: PushPlatform | null;
  topic: string | null;
}

export interface ListedDevice extends DeviceRow {
  topics: string[];
}

/** Page of a list. `before` null: from the newest. */
interface Range {
  before: number | null;
  limit: number;
}

export interface Page<Row> {
  rows: Row[];
  /** Start of the next page; null: this is the last one. */
  next: number | null;
}

/**
 * Lists for administrators. If few of many rows match, a page may have fewer than `limit` rows and still a next page. Long lists
 * are read in chunks.
 */
export class PushLists {
  readonly #store: PushStore;
  readonly #clock: Clock;
  readonly #scheduler = new Scheduler();

  constructor(store: PushStore, clock: Clock) {
    this.#store = store;
    this.#clock = clock;
  }

  /** Lists devices, newest first. */
  async devices(query: DeviceQuery, range: Range): Promise<Page<ListedDevice>> {
    const { file } = this.#store;
    const { userId, token, platform, topic } = query;
    // Reads by the most selective member.
    const read = (before: number): { seq: number; platform: string }[] => {
      if (token !== null) return deviceByToken.all(file, { token }).filter(({ seq }) => seq < before);
      if (userId !== null) return devicesOfUserBefore.all(file, { userId, before });
      if (topic !== null) return devicesOfTopicBefore.all(file, { topic, before, limit: LISTED_CHUNK });
      return devicesBefore.all(file, { before, limit: LISTED_CHUNK });
    };
    const keep = (row: { seq: number; platform: string }): ListedDevice | null =>
      platform === null || row.platform === platform ? this.#found(row.seq, query) : null;
    return scan({ read, keep, ...range }, this.#scheduler.pace());
  }

  /** Lists topics by name, with the number of their devices. */
  async topics({ prefix, after, limit }: { prefix: string; after: string; limit: number }): Promise<{
    topics: { topic: string; devices: number }[];
    hasMore: boolean;
  }> {
    const pace = this.#scheduler.pace();
    await pace.next();
    const topics: { topic: string; devices: number }[] = [];
    // No topic has a character before this one.
    let from = after < prefix ? prefix : `${after}\0`;
    for (;;) {
      const topic = firstTopic.get(this.#store.file, { from })?.topic ?? null;
      if (topic === null || !topic.startsWith(prefix)) return { topics, hasMore: false };
      if (topics.length === limit) return { topics, hasMore: true };
      topics.push({ topic, devices: await this.#countOf(topic, pace) });
      from = `${topic}\0`;
    }
  }

  /** Lists the log of the last day, newest first. `userId` null: all users; `status` null: every status. */
  async logs(
    { userId, status }: { userId: string | null; status: PushStatus | null },
    range: Range,
  ): Promise<Page<LogRow>> {
    const after = this.#clock.now() - LOG_RETENTION_MS;
    const read = (before: number): LogRow[] => this.#store.logs({ userId, after, before, limit: LISTED_CHUNK });
    const keep = (row: LogRow): LogRow | null => (status === null || row.status === status ? row : null);
    return scan({ read, keep, ...range }, this.#scheduler.pace());
  }

  /** Returns the device if it matches the query, else null. */
  #found(seq: number, { userId, token, topic }: DeviceQuery): ListedDevice | null {
    const { file } = this.#store;
    const device = deviceBySeq.get(file, { seq });
    if (device === null || (userId !== null && device.userId !== userId)) return null;
    if (token !== null && device.token !== token) return null;
    const topics = topicsOfDevice.all(file, { deviceSeq: seq }).map((one) => one.topic);
    return topic === null || topics.includes(topic) ? { ...device, topics } : null;
  }

  async #countOf(topic: string, pace: Pace): Promise<number> {
    const last = this.#store.lastOfTopic(topic);
    let count = 0;
    for (let after = 0; after < last; after += TOPIC_COUNT_STEP) {
      if (pace.isDue()) await pace.next();
      count += this.#store.countOfTopic({ topic, after, until: Math.min(last, after + TOPIC_COUNT_STEP) });
    }
    return count;
  }
}

/** Reads rows from newest to oldest and keeps the matching ones. `read` returns the next rows before a row, none at the end. */
async function scan<Row extends { seq: number }, Kept extends Row>(
  { read, keep, before, limit }: { read(before: number): readonly Row[]; keep(row: Row): Kept | null } & Range,
  pace: Pace,
): Promise<Page<Kept>> {
  const rows: Kept[] = [];
  let place = before ?? Number.MAX_SAFE_INTEGER;
  await pace.next();
  for (let scanned = 0; scanned < LISTED_SCAN_MAX; ) {
    const found = read(place);
    if (found.length === 0) return { rows, next: null };
    for (const row of found) {
      if (pace.isDue()) await pace.next();
      const kept = keep(row);
      if (kept !== null && rows.length === limit) return { rows, next: place };
      if (kept !== null) rows.push(kept);
      place = row.seq;
    }
    scanned += found.length;
  }
  return { rows, next: place };
}
