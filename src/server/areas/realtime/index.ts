import type { Clock } from "../../../kernel/clock.ts";
import { forbidden, unauthorized } from "../../../kernel/errors.ts";
import type { Ids } from "../../../kernel/ids.ts";
import type { Logger } from "../../../kernel/logger.ts";
import { createParser } from "../../../kernel/schema/parser.ts";
import { Scheduler } from "../../../kernel/time/scheduler.ts";
import type { Lookups } from "../../access/lookups/lookups.ts";
import type { TableAddress, TableDoor } from "../../access/table-door.ts";
import type { AppAccess } from "../../config/app/index.ts";
import type { RealtimeConfig } from "../../config/types.ts";
import type { Change, StorageEngine, TableStart } from "../../db/index.ts";
import type { Endpoint } from "../../http/endpoint.ts";
import type { AreaSockets } from "../../sockets/area-sockets.ts";
import type { Visiting } from "../../sockets/connection.ts";
import type { Sockets } from "../../sockets/index.ts";
import { PendingPlaces } from "../../sockets/pending-places.ts";
import { Feeds } from "./changes/feeds.ts";
import { realtimeEndpoints } from "./endpoints.ts";
import { BATCH_THRESHOLD, connectionLimits, PENDING_PER_ADDRESS_MAX, PRESENCE_TTL_MS } from "./limits.ts";
import { ChannelMeter } from "./meter.ts";
import { createProtocol } from "./protocol.ts";
import { Rights } from "./rights.ts";
import { Askers } from "./subscriptions/askers.ts";
import type { RealtimeState } from "./subscriptions/model.ts";
import { Subscribing } from "./subscriptions/subscribing.ts";
import { TableSubscription } from "./subscriptions/table-subscription.ts";
import { TopicRights } from "./subscriptions/topic-rights.ts";
import { ViewFollowers } from "./subscriptions/view-followers.ts";
import { Views } from "./subscriptions/views.ts";
import { Broadcast, Broadcasts, channelIsBusy, checkPayload } from "./topics/broadcasts.ts";
import { Presence } from "./topics/presence.ts";
import { FanOut } from "./topics/topic.ts";

/** Random bytes in a feed's name, which make it unique. */
const FEED_NAME_BYTES = 9;

const broadcastParser = createParser(Broadcast, { member: "an argument of broadcast" });

/** Realtime: table changes, presence and broadcasts over WebSockets. Rules: SPEC.md. */
export class RealtimeArea {
  readonly endpoints: readonly Endpoint[];
  readonly #topics: FanOut;
  readonly #feeds: Feeds;
  readonly #viewFollowers: ViewFollowers;
  readonly #presence: Presence;
  readonly #broadcasts: Broadcasts;
  readonly #rights: Rights;
  readonly #askers: Askers;
  readonly #connections: AreaSockets<RealtimeState>;

  constructor(deps: {
    config: RealtimeConfig;
    sockets: Sockets;
    tables: TableDoor;
    /** Lookups for the context of rules. */
    lookups: Lookups;
    /** Source of the changes' sequence numbers. */
    engine: Pick<StorageEngine, "lastSeq">;
    clock: Clock;
    ids: Ids;
    logger: Logger;
  }) {
    const { config, sockets, clock, logger, tables, lookups } = deps;
    const { rights: standing, followUps } = sockets;
    const meter = new ChannelMeter(clock);
    const onSent = (channel: string, messages = 1): void => meter.sent(channel, messages);
    const topics = new FanOut(clock, sockets.server);
    const feedName = (): string => deps.ids.secret(FEED_NAME_BYTES);
    const batchThreshold = config.batchThreshold ?? BATCH_THRESHOLD;
    const startOf = (address: TableAddress, about?: { isKept?: boolean }): TableStart =>
      tables.startOf(address, about) ?? { place: deps.engine.lastSeq, former: null };
    const feeds = new Feeds({ clock, logger, topics, batchThreshold, startOf, onSent, feedName });
    for (const address of tables.kept()) feeds.resume(address);
    const presence = new Presence({ clock, topics, ttlMs: config.presenceTtl ?? PRESENCE_TTL_MS, onSent });
    const broadcasts = new Broadcasts(topics, onSent);
    const rights = new Rights({ access: config.access ?? {}, tables, lookups, clock, logger });
    const askers = new Askers({ rights, standing, clock, logger });
    const topicRights = new TopicRights({ rights, standing, presence, broadcasts });
    const viewFollowers = new ViewFollowers(clock, followUps);
    const shared = { viewFollowers, feeds, views: new Views(), askers, replays: new Scheduler(), meter };
    const parts = { tables, rights, topicRights, presence, broadcasts };
    const subscribing = new Subscribing({ ...parts, ...shared, followUps });
    const connections = sockets.serve(createProtocol({ ...parts, subscribing }));
    const places = new PendingPlaces(clock, config.pendingPerAddress ?? PENDING_PER_ADDRESS_MAX);
    this.#topics = topics;
    this.#feeds = feeds;
    this.#viewFollowers = viewFollowers;
    this.#presence = presence;
    this.#broadcasts = broadcasts;
    this.#rights = rights;
    this.#askers = askers;
    this.#connections = connections;
    const limits = connectionLimits(config);
    this.endpoints = realtimeEndpoints({ connections, limits, places, broadcasts, meter, presence });
  }

  /** Publishes committed changes, in order, one inner array per request. `seqs`: the number of the first change of each. */
  publishChanges(
    file: { namespace: string; instanceId: string | null },
    groups: readonly (readonly Change[])[],
    seqs: readonly number[],
  ): void {
    this.#viewFollowers.changed(file, groups);
    this.#feeds.publishChanges(file, groups, { seqs, review: (table) => this.#askers.review(table) });
  }

  /** Ends all subscriptions to the tables of a deleted instance, and drops its changes. */
  endInstance({ namespace, instanceId }: { namespace: string; instanceId: string }): void {
    this.#connections.each(({ state }) => {
      for (const subscription of [...state.subscriptions.values()]) {
        if (!(subscription instanceof TableSubscription)) continue;
        const { address } = subscription.channel;
        const isOf = address.namespace === namespace && address.instanceId === instanceId;
        if (isOf) subscription.follow(null, { isAnotherView: false });
      }
    });
    this.#feeds.forgetInstance(namespace, instanceId);
  }

  /** Tells all subscriptions to the tables of an instance that its content was replaced. */
  restartInstance({ namespace, instanceId }: { namespace: string; instanceId: string }): void {
    this.#feeds.restartInstance(namespace, instanceId);
    this.#connections.each(({ state }) => {
      for (const subscription of [...state.subscriptions.values()]) {
        if (!(subscription instanceof TableSubscription)) continue;
        const { address } = subscription.channel;
        if (address.namespace === namespace && address.instanceId === instanceId) subscription.restart();
      }
    });
  }

  /** Sends `app.broadcast`. Errors: 400 that names the faulty argument, 413, 503. */
  async broadcast(...[channel, event, payload]: Parameters<AppAccess["broadcast"]>): Promise<void> {
    this.#send(broadcastParser.parse({ channel, event, payload }));
  }

  /** Sends `app.as(auth).broadcast`. Errors: those of `broadcast`, and 401 or 403 by the rule of broadcasts. */
  async broadcastAs(
    principal: Visiting,
    ...[channel, event, payload]: Parameters<AppAccess["broadcast"]>
  ): Promise<void> {
    const broadcast = broadcastParser.parse({ channel, event, payload });
    if (!(await this.#rights.broadcast(principal, channel, event))) {
      throw principal.kind === "anonymous" ? unauthorized() : forbidden();
    }
    this.#send(broadcast);
  }

  get openSockets(): number {
    return this.#connections.count;
  }

  /** Closes every connection with 1001. */
  stop(): void {
    this.#connections.stop();
    this.#presence.stop();
    this.#feeds.stop();
    this.#viewFollowers.stop();
    this.#topics.stop();
  }

  #send(broadcast: Broadcast): void {
    checkPayload(broadcast);
    if (!this.#broadcasts.send(broadcast)) throw channelIsBusy();
  }
}
