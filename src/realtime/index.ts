import type { AnyElysia } from "elysia";
import type { Principals } from "../access/principals.ts";
import type { SessionEvents, SessionLookup, UserEvents } from "../access/sessions.ts";
import type { TableDoor } from "../access/table-door.ts";
import type { AppAccess } from "../config/app-access.ts";
import type { RealtimeConfig } from "../config/types.ts";
import type { Http } from "../http/http.ts";
import { createPendingPlaces } from "../http/pending-places.ts";
import type { SocketServer } from "../http/sockets.ts";
import type { Clock } from "../kernel/clock.ts";
import type { Ids } from "../kernel/ids.ts";
import type { Logger } from "../kernel/logger.ts";
import { MessageTurns } from "../sockets/message-turns.ts";
import { TokenBucket } from "../sockets/token-bucket.ts";
import { channelIsBusy, checkBroadcast, createBroadcasts } from "./broadcasts.ts";
import { CLOSE, Connection } from "./connection.ts";
import { createConnections } from "./connections.ts";
import { createFanOut } from "./fan-out.ts";
import { createFeeds, type Feeds } from "./feeds.ts";
import {
  AUTH_TIMEOUT_MS,
  BATCH_THRESHOLD,
  CHARS_AT_ONCE,
  CHARS_PER_SECOND,
  MESSAGE_RATE,
  PENDING_PER_ADDRESS_MAX,
  PRESENCE_TTL_MS,
} from "./limits.ts";
import { createOperations } from "./operations.ts";
import { createPresence } from "./presence.ts";
import { createReviews } from "./reviews.ts";
import { createRights } from "./rights.ts";
import { type Connect, createRealtimeRoutes } from "./routes.ts";
import { createSeenViews } from "./seen-views.ts";
import { createProtocol } from "./service.ts";
import { watchSessions } from "./session-watch.ts";
import { createSubscribing } from "./subscribing.ts";
import { createTableSubscriptions } from "./subscription.ts";

export interface RealtimeArea {
  routes(http: Http): AnyElysia;
  /** What was committed, in order, one inner array per request. */
  readonly publishChanges: Feeds["publishChanges"];
  /** `app.broadcast`. Errors: 400 naming the argument at fault. */
  readonly broadcast: AppAccess["broadcast"];
  readonly openSockets: number;
  /** Closes every connection with 1001. */
  stop(): void;
}

export function createRealtimeArea(deps: {
  config: RealtimeConfig;
  sockets: SocketServer;
  principals: Principals;
  sessions: SessionEvents & SessionLookup & UserEvents;
  tables: TableDoor;
  clock: Clock;
  ids: Ids;
  logger: Logger;
}): RealtimeArea {
  const { config, sockets, clock, ids, logger, tables } = deps;
  const topics = createFanOut(clock, sockets);
  const batchThreshold = config.batchThreshold ?? BATCH_THRESHOLD;
  const feeds = createFeeds({ clock, logger, topics, batchThreshold, review: (feed) => reviews.review(feed) });
  const presence = createPresence({ clock, topics, ttlMs: config.presenceTtl ?? PRESENCE_TTL_MS });
  const broadcasts = createBroadcasts(topics);
  const connections = createConnections(clock);
  const rights = createRights({ access: config.access ?? {}, tables, clock, logger });
  const reviews = createReviews({
    ask: rights.readTable,
    onAnswer: (connection, subscription, access) => subscribing.follow(connection, subscription, access),
    ...{ clock, logger },
  });
  const seenViews = createSeenViews(clock);
  const subscriptions = createTableSubscriptions({ feeds, tables, seenViews, reviews, clock });
  const subscribing = createSubscribing({ tables, rights, subscriptions, presence, broadcasts });
  const operations = createOperations({ tables, rights, subscribing, presence, broadcasts });
  const authTimeoutMs = config.authTimeout ?? AUTH_TIMEOUT_MS;
  const turns = new MessageTurns();
  const events = createProtocol({ ...deps, connections, operations, turns, authTimeoutMs });
  const unwatch = watchSessions({
    connections,
    operations,
    sessions: deps.sessions,
    turns,
    onFailure: events.failed,
  });
  const messageRate = config.messageRate ?? MESSAGE_RATE;
  const pending = createPendingPlaces(clock, config.pendingPerAddress ?? PENDING_PER_ADDRESS_MAX);
  const connect: Connect = (client, releasePlace, defaultChannel) => {
    const rate = new TokenBucket({ perSecond: messageRate, atOnce: messageRate }, clock.now());
    const charRate = new TokenBucket({ perSecond: CHARS_PER_SECOND, atOnce: CHARS_AT_ONCE }, clock.now());
    return new Connection({ id: ids.uuid(), client, releasePlace, defaultChannel, rate, charRate, sockets, events });
  };

  return {
    routes: (http) => createRealtimeRoutes(http, { sockets, connections, pending, broadcasts, connect }),
    publishChanges: feeds.publishChanges,
    get openSockets() {
      return connections.count;
    },
    async broadcast(channel, event, payload) {
      if (!broadcasts.send(checkBroadcast(channel, event, payload))) throw channelIsBusy();
    },
    stop() {
      for (const connection of connections.all()) connection.end(CLOSE.goingAway, "The server is stopping");
      unwatch();
      presence.stop();
      feeds.stop();
      topics.stop();
    },
  };
}
