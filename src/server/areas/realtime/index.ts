import type { Clock } from "../../../kernel/clock.ts";
import { forbidden, unauthorized } from "../../../kernel/errors.ts";
import type { Ids } from "../../../kernel/ids.ts";
import type { Logger } from "../../../kernel/logger.ts";
import { createParser } from "../../../kernel/schema/parser.ts";
import type { Lookups } from "../../access/lookups/lookups.ts";
import type { TableDoor } from "../../access/table-door.ts";
import type { AppAccess } from "../../config/app/index.ts";
import type { RealtimeConfig } from "../../config/types.ts";
import type { StorageEngine } from "../../db/index.ts";
import type { Endpoint } from "../../http/endpoint.ts";
import type { Visiting } from "../../sockets/connection.ts";
import type { Sockets } from "../../sockets/index.ts";
import { PendingPlaces } from "../../sockets/pending-places.ts";
import { createChannelMeter } from "./meter.ts";
import { realtimeOverviewEndpoint } from "./administration/endpoints.ts";
import { createFeeds, type Feeds } from "./changes/feeds.ts";
import { realtimeEndpoints } from "./endpoints.ts";
import {
  BATCH_THRESHOLD,
  connectionLimits,
  FEED_NAME_BYTES,
  PENDING_PER_ADDRESS_MAX,
  PRESENCE_TTL_MS,
} from "./limits.ts";
import { createPresence } from "./presence/presence.ts";
import { createProtocol } from "./protocol.ts";
import { createRights } from "./rights.ts";
import { createAskers } from "./subscriptions/askers.ts";
import { createSeenViews } from "./subscriptions/views.ts";
import { createSubscribing } from "./subscriptions/subscribing.ts";
import { createTableSubscriptions } from "./subscriptions/table-subscription.ts";
import { Broadcast, channelIsBusy, checkPayload, createBroadcasts } from "./topics/broadcasts.ts";
import { createFanOut } from "./topics/fan-out.ts";
import { createTopicRights } from "./subscriptions/topic-rights.ts";

export interface RealtimeArea {
  endpoints: readonly Endpoint[];
  /** Takes committed changes, in order, one inner array per request. */
  readonly publishChanges: Feeds["publishChanges"];
  /** Ends all subscriptions to the tables of a deleted instance, and forgets its changes. */
  endInstance(address: { namespace: string; instanceId: string }): void;
  /** `app.broadcast`. Errors: 400 that names the argument at fault, 413, 503. */
  readonly broadcast: AppAccess["broadcast"];
  /** `app.as(auth).broadcast`. Errors: the same, and 401 or 403 by the rule of broadcasts. */
  broadcastAs(principal: Visiting, ...broadcast: Parameters<AppAccess["broadcast"]>): Promise<void>;
  readonly openSockets: number;
  /** Closes every connection with 1001. */
  stop(): void;
}

export function createRealtimeArea(deps: {
  config: RealtimeConfig;
  sockets: Sockets;
  tables: TableDoor;
  /** For the context of rules. */
  lookups: Lookups;
  /** Numbers the changes. */
  engine: Pick<StorageEngine, "lastSeq">;
  clock: Clock;
  ids: Ids;
  logger: Logger;
}): RealtimeArea {
  const { config, sockets, clock, logger, tables } = deps;
  const meter = createChannelMeter(clock);
  const onSent = (channel: string, messages = 1): void => meter.sent(channel, messages);
  const topics = createFanOut(clock, sockets.server);
  const batchThreshold = config.batchThreshold ?? BATCH_THRESHOLD;
  const feeds = createFeeds({
    clock,
    logger,
    topics,
    lastSeq: () => deps.engine.lastSeq,
    batchThreshold,
    onSent,
    feedName: () => deps.ids.secret(FEED_NAME_BYTES),
    review: (address, about) => askers.review(address, about),
  });
  const presence = createPresence({ clock, topics, ttlMs: config.presenceTtl ?? PRESENCE_TTL_MS, onSent });
  const broadcasts = createBroadcasts(topics, onSent);
  const rights = createRights({ access: config.access ?? {}, tables, lookups: deps.lookups, clock, logger });
  const askers = createAskers({
    rights,
    standing: sockets.rights,
    onAnswer: (...answer) => subscribing.follow(...answer),
    clock,
    logger,
  });
  const topicRights = createTopicRights({
    rights,
    standing: sockets.rights,
    revoke: (connection, channel) => subscribing.revoke(connection, channel),
    hold: ({ kind, name }) => (kind === "presence" ? presence.hold(name) : broadcasts.hold(name)),
  });
  const seenViews = createSeenViews(clock);
  const subscriptions = createTableSubscriptions({ feeds, seenViews, askers, clock });
  const parts = { tables, rights, topicRights, presence, broadcasts };
  const subscribing = createSubscribing({ ...parts, askers, subscriptions, meter, followUps: sockets.followUps });
  const connections = sockets.serve(createProtocol({ ...parts, subscribing }));
  const places = new PendingPlaces(clock, config.pendingPerAddress ?? PENDING_PER_ADDRESS_MAX);
  const broadcastParser = createParser(Broadcast, { member: "an argument of broadcast" });

  return {
    endpoints: [
      ...realtimeEndpoints({ connections, limits: connectionLimits(config), places, broadcasts }),
      realtimeOverviewEndpoint({ connections, meter, presence }),
    ],
    publishChanges: feeds.publishChanges,
    endInstance({ namespace, instanceId }) {
      connections.each((connection) => {
        for (const subscription of [...connection.state.subscriptions.values()]) {
          if (subscription.kind !== "table") continue;
          const { address } = subscription.channel;
          const isOf = address.namespace === namespace && address.instanceId === instanceId;
          if (isOf) subscribing.follow(connection, subscription, null, { isAnotherView: false });
        }
      });
      feeds.forget(namespace, instanceId);
    },
    get openSockets() {
      return connections.count;
    },
    async broadcastAs(principal, channel, event, payload) {
      const broadcast = broadcastParser.parse({ channel, event, payload });
      if (!(await rights.broadcast(principal, channel, event))) {
        throw principal.kind === "anonymous" ? unauthorized() : forbidden();
      }
      checkPayload(broadcast);
      if (!broadcasts.send(broadcast)) throw channelIsBusy();
    },
    async broadcast(channel, event, payload) {
      const broadcast = broadcastParser.parse({ channel, event, payload });
      checkPayload(broadcast);
      if (!broadcasts.send(broadcast)) throw channelIsBusy();
    },
    stop() {
      connections.stop();
      presence.stop();
      feeds.stop();
      topics.stop();
    },
  };
}
