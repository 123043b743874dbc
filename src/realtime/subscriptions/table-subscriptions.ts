import type { Principal } from "../../access/principal.ts";
import type { ReadAccess, RecordFilter, TableDoor } from "../../access/table-door.ts";
import type { Clock } from "../../kernel/clock.ts";
import { badRequest } from "../../kernel/errors.ts";
import { isPromise } from "../../kernel/maybe-promise.ts";
import type { Audience } from "../changes/audience.ts";
import type { Feed } from "../changes/feed-registry.ts";
import type { Feeds } from "../changes/feeds.ts";
import { changeTypesFor } from "../changes/visibility.ts";
import type { Channel } from "../channel.ts";
import type { RealtimeConnection } from "../connection.ts";
import { FILTERS_LENGTH_MAX, REPLAY_SLICE_CHANGES, REPLAY_WAITING_MAX_BYTES } from "../limits.ts";
import type { Reviews } from "./reviews.ts";
import type { SeenView, SeenViews } from "./seen-views.ts";

export type TableChannel = Channel & { kind: "table" };

/** As the client sent them; undefined or null: none. */
export interface SentFilters {
  filters?: unknown;
  orFilters?: unknown;
}

export interface Filters {
  /** What the client sent, as the JSON of `[filters, orFilters]`. */
  text: string;
  /** null: no filters in force. */
  filter: RecordFilter | null;
}

export interface TableSubscription {
  readonly kind: "table";
  readonly channel: TableChannel;
  filters: Filters;
  access: ReadAccess;
  /** The same for rights that show the same. */
  viewKey: string;
  /** null: what it shows is written in the config, and the same for everybody. */
  seen: SeenView | null;
  /** Its rule has given a filter, and is asked again with the changes whatever it says from then on. */
  isReviewed: boolean;
  feed: Feed;
  audience: Audience;
  isCatchingUp: boolean;
  isEnded: boolean;
}

export type Subscription = TableSubscription | { readonly kind: "presence" | "broadcast" };

export interface TableSubscriptions {
  /** Errors: as `TableDoor.parseFilter`. Gives `known` itself where the same was sent: nothing is compiled again. */
  parseFilters(channel: TableChannel, sent: SentFilters, known: Filters | null): Filters;
  /**
   * Begins with what follows `since`, or with what follows now (null). `announce` runs first, and hears where it begins
   * and whether what was missed is no longer known.
   */
  begin(
    connection: RealtimeConnection,
    parts: { channel: TableChannel; filters: Filters; access: ReadAccess },
    options: { since: number | null; announce(start: { seq: number; isLost: boolean }): void },
  ): TableSubscription;
  /** Goes on with other filters, from the same place: nothing is missed in between. */
  change(connection: RealtimeConnection, subscription: TableSubscription): void;
  /**
   * Goes on with these rights. Where they show something else, what the client holds is not what it would be told: it hears
   * `subscribed` with `resync` first.
   */
  adopt(connection: RealtimeConnection, subscription: TableSubscription, access: ReadAccess): void;
  end(connection: RealtimeConnection, subscription: TableSubscription): void;
}

export function createTableSubscriptions(deps: {
  feeds: Feeds;
  tables: TableDoor;
  seenViews: SeenViews;
  reviews: Pick<Reviews, "add" | "remove">;
  clock: Clock;
}): TableSubscriptions {
  const { feeds, seenViews, reviews, clock } = deps;

  const acquire = ({
    channel,
    access,
    viewKey,
    filters: { filter },
  }: Pick<TableSubscription, "channel" | "access" | "viewKey" | "filters">): { feed: Feed; audience: Audience } => {
    const key = JSON.stringify([channel.name, viewKey, filter?.key ?? null]);
    return feeds.acquire(channel.address, channel, key, { access, filter });
  };
  const start = createReplays(clock);
  const change = (connection: RealtimeConnection, subscription: TableSubscription): void => {
    const old = subscription.audience;
    const { audience } = acquire(subscription);
    subscription.audience = audience;
    // A replay reads the audience anew with each step.
    if (!subscription.isCatchingUp) {
      old.topic.leave(connection);
      start(connection, subscription, old.position);
    }
    feeds.release(subscription.feed, subscription.channel, old);
  };

  return {
    parseFilters(channel, { filters, orFilters }, known) {
      const text = JSON.stringify([filters, orFilters]);
      if (text === known?.text) return known;
      if (text.length > FILTERS_LENGTH_MAX) {
        const wanted = `filters and orFilters have at most ${FILTERS_LENGTH_MAX} characters of JSON`;
        throw badRequest(`${wanted}, got ${text.length}`);
      }
      const filter = deps.tables.parseFilter(channel.address, { all: filters, any: orFilters });
      return { text, filter: isEmpty(filters) && isEmpty(orFilters) ? null : filter };
    },
    begin(connection, parts, { since, announce }) {
      const { channel, access } = parts;
      const viewKey = viewKeyOf(access, connection.principal);
      const seen = seenView(connection, channel, access, viewKey);
      const { feed, audience } = acquire({ ...parts, viewKey });
      const isCovered = since === null || seen === null || seenViews.covers(seen, access, since);
      const isLost = since !== null && !(isCovered && feed.log.reaches(since));
      const position = since === null || isLost ? audience.position : since;
      const subscription: TableSubscription = {
        ...{ kind: "table", ...parts, viewKey, seen, isReviewed: isFilter(access), feed, audience },
        ...{ isCatchingUp: false, isEnded: false },
      };
      if (seen !== null) seenViews.begin(seen, position);
      if (subscription.isReviewed) reviews.add(connection, subscription);
      announce({ seq: position, isLost });
      start(connection, subscription, position);
      return subscription;
    },
    change,
    adopt(connection, subscription, access) {
      const { channel, audience, feed } = subscription;
      const viewKey = viewKeyOf(access, connection.principal);
      const isSame = viewKey === subscription.viewKey;
      subscription.access = access;
      subscription.isReviewed ||= isFilter(access);
      // Who asks may have become somebody else to the rule, also where it says the same.
      reviews.remove(subscription);
      if (subscription.isReviewed) reviews.add(connection, subscription);
      if (isSame) return;
      if (subscription.seen !== null) seenViews.end(subscription.seen, feed.log.head);
      subscription.viewKey = viewKey;
      subscription.seen = seenView(connection, channel, access, viewKey);
      if (subscription.seen !== null) seenViews.begin(subscription.seen, audience.position);
      const serverFilter = subscription.filters.filter !== null;
      connection.send({
        ...{ type: "subscribed", channel: channel.name, serverFilter, seq: audience.position, resync: true },
      });
      // What was sent may have closed it, as too slow.
      if (!subscription.isEnded) change(connection, subscription);
    },
    end(connection, subscription) {
      if (subscription.isEnded) return;
      subscription.isEnded = true;
      reviews.remove(subscription);
      if (subscription.seen !== null) seenViews.end(subscription.seen, subscription.feed.log.head);
      subscription.audience.topic.leave(connection);
      feeds.release(subscription.feed, subscription.channel, subscription.audience);
    },
  };
}

/**
 * Sends what follows `position`, at the pace of the reader, and joins the live audience where the two meet. The one way in,
 * also for those who begin with what is live.
 */
function createReplays(clock: Clock) {
  const turn = (): Promise<void> => new Promise((resolve) => clock.after(0, resolve));

  const catchUp = async (
    connection: RealtimeConnection,
    subscription: TableSubscription,
    position: number,
  ): Promise<void> => {
    const { log } = subscription.feed;
    const { docId } = subscription.channel;
    subscription.isCatchingUp = true;
    let at = position;
    let sliceCount = 0;
    while (!subscription.isEnded && at !== subscription.audience.position) {
      // This one has seen what the others of its audience still wait for: joined now, it would see that again.
      if (at > subscription.audience.position) {
        await subscription.audience.advanced();
        continue;
      }
      // Overtaken by the bounded log: only a new subscription can tell the client what to do.
      if (!log.reaches(at)) return connection.closeAsSlow();
      const group = log.groupAfter(at);
      const entries = docId === null ? group : group.filter((entry) => entry.change.id === docId);
      const { audience } = subscription;
      const types = changeTypesFor(audience.view, entries);
      const settled = isPromise(types) ? await types : types;
      if (subscription.isEnded) return;
      for (const message of audience.encode(entries, settled)) connection.sendText(message);
      at = group.at(-1)?.seq ?? subscription.audience.position;
      sliceCount += group.length;
      if (connection.isClosed) return;
      if (connection.waitingBytes > REPLAY_WAITING_MAX_BYTES) await connection.drained();
      else if (sliceCount >= REPLAY_SLICE_CHANGES) {
        sliceCount = 0;
        await turn();
      }
    }
    if (subscription.isEnded) return;
    subscription.isCatchingUp = false;
    subscription.audience.topic.join(connection);
  };
  return (connection: RealtimeConnection, subscription: TableSubscription, position: number): void => {
    catchUp(connection, subscription, position).catch(() => connection.closeAsSlow());
  };
}

const isEmpty = (filters: unknown): boolean =>
  filters === undefined || filters === null || (Array.isArray(filters) && filters.length === 0);

const isFilter = (access: ReadAccess): boolean =>
  access.kind === "filter" || (access.kind === "all" && access.saidBy === "filter");

function seenView(
  connection: RealtimeConnection,
  channel: TableChannel,
  access: ReadAccess,
  key: string,
): SeenView | null {
  const { principal } = connection;
  if (principal === null || (access.kind === "all" && access.saidBy === "config")) return null;
  return { userId: principal.auth.id, channel: channel.name, key };
}

/** Rights that show the same have one key. A rule that looks at records answers by who asks. */
function viewKeyOf(access: ReadAccess, principal: Principal | null): string {
  switch (access.kind) {
    case "all":
      return "all";
    case "filter":
      return `filter ${access.filter.key}`;
    case "record":
      return `record ${JSON.stringify(principal?.kind === "user" ? principal.auth : null)}`;
  }
}
