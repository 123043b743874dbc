import type { Principal } from "../../access/principal.ts";
import type { ReadAccess } from "../../access/table-door.ts";
import type { Clock } from "../../kernel/clock.ts";
import type { Feeds } from "../changes/feeds.ts";
import type { Filters, RealtimeConnection, TableChannel, TableSubscription } from "../model.ts";
import { createAudiences } from "./audiences.ts";
import { createReplay } from "./replays.ts";
import type { Reviews } from "./reviews.ts";
import type { SeenView, SeenViews } from "./seen-views.ts";

export interface TableSubscriptions {
  /**
   * Starts with what follows `since`, or with the next change (null), behind `subscribed`, which says where that is, and
   * whether changes that were missed are no longer known.
   */
  begin(
    connection: RealtimeConnection,
    parts: Pick<TableSubscription, "channel" | "id" | "filters" | "access">,
    since: number | null,
  ): TableSubscription;
  /** Confirms these filters. Continues with them from the same position: nothing is missed in between. */
  filter(connection: RealtimeConnection, subscription: TableSubscription, filters: Filters): void;
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
  const { feeds, seenViews, reviews } = deps;
  const replay = createReplay(deps.clock);
  const { acquire, change } = createAudiences(feeds, replay);

  return {
    begin(connection, parts, since) {
      const { channel, access } = parts;
      const viewKey = viewKeyOf(access, connection.principal);
      const seen = seenView(connection, channel, access, viewKey);
      const { feed, audience } = acquire(connection, { ...parts, viewKey });
      const isCovered = since === null || seen === null || seenViews.covers(seen, access, since);
      const isLost = since !== null && !(isCovered && feed.log.reaches(since));
      const position = since === null || isLost ? audience.position : since;
      const subscription: TableSubscription = {
        kind: "table",
        name: channel.name,
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
      connection.send({ ...subscribedTo(subscription, position), ...(isLost ? { resync: true } : {}) });
      replay(connection, subscription, position);
      return subscription;
    },
    filter(connection, subscription, filters) {
      const known = subscription.filters;
      subscription.filters = filters;
      const announce = (): void =>
        connection.send({ type: "filters_updated", ...namesOf(subscription), serverFilter: filters.filter !== null });
      if (filters === known) announce();
      else change(connection, subscription, { announce, unsent: "sent" });
    },
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
      change(connection, subscription, {
        announce: (position) => connection.send({ ...subscribedTo(subscription, position), resync: true }),
        unsent: "dropped",
      });
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

const namesOf = ({ name, id, audience: { feed } }: TableSubscription) => ({
  channel: name,
  ...(id === null ? {} : { id }),
  ...(feed === null ? {} : { feed }),
});

const subscribedTo = (subscription: TableSubscription, seq: number) => ({
  type: "subscribed" as const,
  ...namesOf(subscription),
  serverFilter: subscription.filters.filter !== null,
  seq,
});

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
  // No user has an empty id: all connections without a user are one.
  return { userId: principal.kind === "user" ? principal.auth.id : "", channel: channel.name, key };
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
