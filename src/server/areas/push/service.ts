import type { Clock } from "../../../kernel/clock.ts";
import { AppError, notFound, serverStopping } from "../../../kernel/errors.ts";
import type { JsonObject } from "../../../kernel/json/json.ts";
import type { PushPlatform } from "../../config/shapes/push.ts";
import type { Actor } from "../../db/index.ts";
import type { Deliveries } from "./delivery/deliveries.ts";
import type { FanOut, NextTarget } from "./delivery/fan-out.ts";
import type { TopicQueue } from "./delivery/topic-queue.ts";
import { CALLS_AT_ONCE_MAX, SENDS_AT_ONCE_MAX } from "./limits.ts";
import type { Counts, Message, Target } from "./message.ts";
import type { Registration } from "./schemas.ts";
import type { DeviceRow } from "./statements/push.ts";
import type { PushStore } from "./store.ts";

/** Topic to which every device is subscribed at its first registration. */
export const TOPIC_OF_ALL = "all";

interface PushServiceDeps {
  store: PushStore;
  deliveries: Deliveries;
  fanOut: FanOut;
  topics: TopicQueue;
  clock: Clock;
  stopping: AbortSignal;
}

/** Operations of the push area. Callers validate the arguments. */
export class PushService {
  readonly #deps: PushServiceDeps;
  readonly #underWay = new Set<Promise<Counts>>();

  constructor(deps: PushServiceDeps) {
    this.#deps = deps;
  }

  /** Registers a device of the user, or updates it. Errors: 401 if the user has been deleted. */
  register(userId: string, registration: Registration): Promise<DeviceRow> {
    return this.#deps.store.register(userId, registration, { topic: TOPIC_OF_ALL, now: this.#deps.clock.now() });
  }

  /** Removes the user's device with this token, if there is one. */
  unregister(userId: string, token: string): Promise<void> {
    return this.#deps.store.unregister(userId, token);
  }

  /** Subscribes all devices of the user; `failed` of them have too many topics. Errors: 404 without devices. */
  async subscribe(userId: string, topic: string): Promise<{ subscribed: number; failed: number }> {
    const { deviceCount, failedCount } = await this.#deps.store.subscribe(userId, topic);
    if (deviceCount === 0) throw noDevices();
    return { subscribed: deviceCount - failedCount, failed: failedCount };
  }

  /** Unsubscribes all devices of the user. Errors: 404 without devices. */
  async unsubscribe(userId: string, topic: string): Promise<{ unsubscribed: number; failed: number }> {
    const deviceCount = await this.#deps.store.unsubscribe(userId, topic);
    if (deviceCount === 0) throw noDevices();
    return { unsubscribed: deviceCount, failed: 0 };
  }

  /** Sends to all devices of the user. Resolves when the result for each device is known. Errors: 404 without devices, 503. */
  async send(userId: string, message: Message): Promise<Counts> {
    const devices = this.#deps.store.devicesOf(userId);
    if (devices.length === 0) throw noDevices();
    return this.#deliver(oneByOne(devices), message);
  }

  /** Sends to each user once; users without devices are skipped. Errors: 503. */
  async sendMany(userIds: readonly string[], message: Message): Promise<Counts> {
    return this.#deliver(this.#devicesOfAll([...new Set(userIds)]), message);
  }

  /** Sends to a token, which may be unregistered. Errors: 503. */
  async sendToToken(token: string, platform: PushPlatform, message: Message): Promise<Counts> {
    return this.#deliver(oneByOne([{ userId: null, token, platform }]), message);
  }

  /** Queues a message to a topic. Resolves when it is on disk. Errors: 503. */
  async sendToTopic(topic: string, message: Message): Promise<void> {
    this.#requireCredentials();
    await this.#deps.topics.add(topic, message);
  }

  /** Lists the devices of a user, in order of first registration. */
  devices(userId: string): DeviceRow[] {
    return this.#deps.store.devicesOf(userId);
  }

  /** Replaces the metadata of a device. Errors: 404. */
  async setMetadata(userId: string, deviceId: string, metadata: JsonObject, by: Actor): Promise<void> {
    const isThere = await this.#deps.store.setMetadata(userId, deviceId, metadata, by);
    if (!isThere) throw notFound(`The user has no device "${deviceId}"`);
  }

  /** Resolves when no `send` is running. */
  async idle(): Promise<void> {
    await Promise.allSettled(this.#underWay);
  }

  #requireCredentials(): void {
    if (!this.#deps.deliveries.isConfigured) throw new AppError(503, "Push credentials are not configured");
    if (this.#deps.stopping.aborted) throw serverStopping();
  }

  async #deliver(next: NextTarget, message: Message): Promise<Counts> {
    this.#requireCredentials();
    if (this.#underWay.size >= SENDS_AT_ONCE_MAX) {
      throw new AppError(503, `Too many messages are being sent (at most ${SENDS_AT_ONCE_MAX})`);
    }
    const { tried, done } = this.#deps.fanOut(next, message, { atOnce: CALLS_AT_ONCE_MAX, patience: null });
    this.#underWay.add(done);
    try {
      await tried;
      return await done;
    } finally {
      // If devices cannot be read, the attempts made so far are logged nevertheless.
      void done.then(() => this.#underWay.delete(done));
    }
  }

  /** Returns an iterator over the devices of the users, which reads one user's devices at a time. */
  #devicesOfAll(userIds: readonly string[]): NextTarget {
    const waiting = [...userIds].reverse();
    let devices: DeviceRow[] = [];
    return () => {
      for (let userId = waiting.at(-1); devices.length === 0 && userId !== undefined; userId = waiting.at(-1)) {
        devices = this.#deps.store.devicesOf(userId).reverse();
        waiting.pop();
      }
      return devices.pop() ?? null;
    };
  }
}

const noDevices = () => notFound("The user has no registered devices");

function oneByOne(targets: readonly Target[]): NextTarget {
  let index = 0;
  return () => targets[index++] ?? null;
}
