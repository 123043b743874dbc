import type { Principal } from "../../access/principal.ts";
import type { ReadAccess } from "../../access/table-door.ts";
import type { Clock } from "../../kernel/clock.ts";
import type { Audience } from "../changes/audience.ts";
import type { Feeds } from "../changes/feeds.ts";
import type { Feed, Filters, RealtimeConnection, TableChannel, TableSubscription } from "../model.ts";
import { createReplay } from "./replays.ts";
import type { Reviews } from "./reviews.ts";
import type { SeenView, SeenViews } from "./seen-views.ts";

export interface TableSubscriptions {
  /**
   * Starts with what follows `since`, or with the next change (null). `announce` runs first: it gets the position, and
   * whether changes that were missed are no longer known.
   */
  begin(
    connection: RealtimeConnection,
    parts: { channel: TableChannel; filters: Filters; access: ReadAccess },
    options: { since: number | null; announce(start: { seq: number; isLost: boolean }): void },
  ): TableSubscription;
  /** Continues with other filters from the same position: nothing is missed in between. */
  change(connection: RealtimeConnection, subscription: TableSubscription): void;
  /**
   * Continues with these rights. Where they show other records, the client's records are no longer right: it is sent
   * `subscribed` with `resync` first.
   */
  adopt(connection: RealtimeConnection, subscription: TableSubscription, access: ReadAccess): void;
  end(connection: RealtimeConnection, subscription: TableSubscription): void;
}

export function createTableSubscriptions(deps: {
  feeds: Feeds;
  seenViews: SeenViews;
  reviews: Pick<Reviews, "add" | "remove">;
  clock: Clock;
}): TableSubscriptions {
  const { feeds, seenViews, reviews, clock } = deps;
  const replay = createReplay(clock);

  const acquire = ({
    channel,
    access,
    viewKey,
    filters: { filter },
  }: Pick<TableSubscription, "channel" | "access" | "viewKey" | "filters">): { feed: Feed; audience: Audience } => {
    const key = JSON.stringify([channel.name, viewKey, filter?.key ?? null]);
    return feeds.acquire(channel.address, channel, key, { access, filter });
  };
  const change = (connection: RealtimeConnection, subscription: TableSubscription): void => {
    const old = subscription.audience;
    const { audience } = acquire(subscription);
    subscription.audience = audience;
    // A replay reads the audience anew with each step.
    if (!subscription.isCatchingUp) {
      old.topic.leave(connection);
      replay(connection, subscription, old.position);
    }
    feeds.release(subscription.feed, subscription.channel, old);
  };

  return {
    begin(connection, parts, { since, announce }) {
      const { channel, access } = parts;
      const viewKey = viewKeyOf(access, connection.principal);
      const seen = seenView(connection, channel, access, viewKey);
      const { feed, audience } = acquire({ ...parts, viewKey });
      const isCovered = since === null || seen === null || seenViews.covers(seen, access, since);
      const isLost = since !== null && !(isCovered && feed.log.reaches(since));
      const position = since === null || isLost ? audience.position : since;
      const subscription: TableSubscription = {
        kind: "table",
        ...parts,
        viewKey,
        seen,
        isReviewed: isFilter(access),
        feed,
        audience,
        isCatchingUp: false,
        isEnded: false,
      };
      if (seen !== null) seenViews.begin(seen, position);
      if (subscription.isReviewed) reviews.add(connection, subscription);
      announce({ seq: position, isLost });
      replay(connection, subscription, position);
      return subscription;
    },
    change,
    adopt(connection, subscription, access) {
      const { channel, audience, feed } = subscription;
      const viewKey = viewKeyOf(access, connection.principal);
      const isSame = viewKey === subscription.viewKey;
      subscription.access = access;
      subscription.isReviewed ||= isFilter(access);
      // Registered again also where the rule returns the same: the rule may see another user now.
      reviews.remove(subscription);
      if (subscription.isReviewed) reviews.add(connection, subscription);
      if (isSame) return;
      if (subscription.seen !== null) seenViews.end(subscription.seen, feed.log.head);
      subscription.viewKey = viewKey;
      subscription.seen = seenView(connection, channel, access, viewKey);
      if (subscription.seen !== null) seenViews.begin(subscription.seen, audience.position);
      const serverFilter = subscription.filters.filter !== null;
      connection.send({
        type: "subscribed",
        channel: channel.name,
        serverFilter,
        seq: audience.position,
        resync: true,
      });
      // Sending may have closed it as too slow.
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

/** Equal for rights that show the same records. A rule that looks at records depends on the user. */
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
