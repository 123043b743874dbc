import type { Clock } from "../../../../kernel/clock.ts";
import { authOf } from "../../../access/principal.ts";
import type { ReadAccess } from "../../../access/table-door.ts";
import type { Visiting } from "../../../sockets/connection.ts";
import type { Feeds } from "../changes/feeds.ts";
import {
  type Asker,
  type Filters,
  principalOf,
  type RealtimeConnection,
  type TableChannel,
  type TableSubscription,
} from "./model.ts";
import type { Asked, Askers } from "./askers.ts";
import { createAudiences } from "./audiences.ts";
import { createReplay, settleCaughtUp } from "./replays.ts";
import type { SeenView, SeenViews } from "./views.ts";

export interface TableSubscriptions {
  /**
   * Starts with what follows `since`, or with the next change (null), behind `subscribed`, which says where that is, and
   * whether changes that were missed are no longer known.
   */
  begin(
    connection: RealtimeConnection,
    parts: Pick<TableSubscription, "channel" | "id" | "filters"> & { asked: Asked },
    since: number | null,
  ): TableSubscription;
  /** Confirms these filters. Continues with them from the same position: nothing is missed in between. */
  filter(connection: RealtimeConnection, subscription: TableSubscription, filters: Filters): void;
  /**
   * Continues with these rights. Where they show other records, or did for a while (`isAnotherView`), the client's records
   * are no longer right: it is sent `subscribed` with `resync` first.
   */
  adopt(
    connection: RealtimeConnection,
    subscription: TableSubscription,
    access: ReadAccess,
    about: { isAnotherView: boolean },
  ): void;
  /** The same, where the rule was asked for this subscription, since it may see another user now. Ends a pause. */
  renew(connection: RealtimeConnection, subscription: TableSubscription, asked: Asked): void;
  /** The rule is awaited for what the user is now: goes on where it was when it has answered. [RT6] */
  pause(connection: RealtimeConnection, subscription: TableSubscription): void;
  /** Resolves when the client has been sent all that was committed before the call, or the subscription has ended. */
  flush(connection: RealtimeConnection, subscription: TableSubscription): Promise<void>;
  end(connection: RealtimeConnection, subscription: TableSubscription): void;
}

export function createTableSubscriptions(deps: {
  feeds: Feeds;
  seenViews: SeenViews;
  askers: Pick<Askers, "join" | "add" | "remove" | "settle">;
  clock: Clock;
}): TableSubscriptions {
  const { feeds, seenViews, askers } = deps;
  const replay = createReplay(deps.clock, askers.settle);
  const { acquire, change, pause, flush } = createAudiences(feeds, replay);

  const adopt: TableSubscriptions["adopt"] = (connection, subscription, access, { isAnotherView }) => {
    const viewKey = viewKeyOf(access, subscription.asker);
    const isSame = viewKey === subscription.viewKey && !isAnotherView;
    if (!isSame) {
      const isForgotten = subscription.access.kind === "record" || isAnotherView;
      endView(seenViews, subscription, { isForgotten });
    }
    subscription.access = access;
    if (isSame) return;
    subscription.viewKey = viewKey;
    subscription.seen = seenView(principalOf(connection), subscription.channel, access);
    if (subscription.seen !== null) seenViews.begin(subscription.seen, subscription.audience.position);
    change(connection, subscription, {
      announce: (position) => connection.send({ ...subscribedTo(subscription, position), resync: true }),
      unsent: "dropped",
    });
  };

  return {
    begin(connection, { asked, ...parts }, since) {
      const { channel } = parts;
      const principal = principalOf(connection);
      const asker = askers.join(principal, channel, asked);
      const access = asker?.access ?? asked.access;
      const viewing = { ...parts, access, viewKey: viewKeyOf(access, asker) };
      const seen = seenView(principal, channel, access);
      const { feed, audience } = acquire(connection, viewing);
      const isCovered = since === null || seen === null || seenViews.covers(seen, access, since);
      const isLost = since !== null && !(isCovered && feed.log.reaches(since));
      const position = since === null || isLost ? audience.position : since;
      const subscription: TableSubscription = {
        kind: "table",
        name: channel.name,
        ...viewing,
        seen,
        asker,
        feed,
        audience,
        isCatchingUp: false,
        caughtUp: null,
        identity: connection.identity,
        hasMissedView: false,
        renewed: null,
        isEnded: false,
      };
      if (seen !== null) seenViews.begin(seen, position);
      if (asker !== null) askers.add(asker, connection, subscription);
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
    adopt,
    renew: createRenewal(askers, adopt),
    pause,
    flush,
    end(connection, subscription) {
      if (subscription.isEnded) return;
      subscription.isEnded = true;
      endView(seenViews, subscription, { isForgotten: isDoubtful(connection, subscription) });
      settleRenewed(subscription);
      settleCaughtUp(subscription);
      if (subscription.asker !== null) askers.remove(subscription.asker, subscription);
      subscription.audience.topic.leave(connection);
      feeds.release(subscription.feed, subscription.channel, subscription.audience);
    },
  };
}

function endView(
  seenViews: SeenViews,
  { seen, feed }: TableSubscription,
  { isForgotten }: { isForgotten: boolean },
): void {
  if (seen === null) return;
  seenViews.end(seen, feed.log.head);
  if (isForgotten) seenViews.forget(seen);
}

function createRenewal(
  askers: Pick<Askers, "join" | "add" | "remove">,
  adopt: TableSubscriptions["adopt"],
): TableSubscriptions["renew"] {
  return (connection, subscription, asked) => {
    const before = subscription.asker;
    const asker = askers.join(principalOf(connection), subscription.channel, asked, before);
    if (asker !== before) {
      subscription.asker = asker;
      if (asker !== null) askers.add(asker, connection, subscription);
      if (before !== null) askers.remove(before, subscription);
    }
    const isAnotherView = hasMissedView(connection, subscription);
    subscription.identity = connection.identity;
    subscription.hasMissedView = false;
    adopt(connection, subscription, asker?.access ?? asked.access, { isAnotherView });
    // What waits for it may be sent.
    if (!subscription.isCatchingUp && !subscription.isEnded) subscription.audience.topic.join(connection);
    settleRenewed(subscription);
  };
}

function settleRenewed(subscription: TableSubscription): void {
  subscription.renewed?.resolve();
  subscription.renewed = null;
}

/** Whether the client may have records of a view that the subscription has not had. */
const hasMissedView = (connection: RealtimeConnection, subscription: TableSubscription): boolean =>
  subscription.hasMissedView ||
  // The user has been another one in between, for whom the rule was not asked.
  (subscription.seen !== null && connection.identity - subscription.identity > 1);

/** Whether the client of a subscription that ends may have records of another view. */
function isDoubtful(connection: RealtimeConnection, subscription: TableSubscription): boolean {
  if (hasMissedView(connection, subscription)) return true;
  const { access, asker } = subscription;
  if (asker === null) return false;
  const { right } = asker;
  // Which records it shows depends on data that nobody watches from now on.
  if (access.kind === "record") return right.hasLooked;
  return asker.hasMissedView || right.isStale || right.asking !== null;
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

/** null: the right is written in the config as a constant. */
function seenView(principal: Visiting, { name }: TableChannel, access: ReadAccess): SeenView | null {
  if (access.kind === "all" && access.saidBy === "config") return null;
  const auth = authOf(principal);
  // No user has an empty id: all connections without a user are one.
  const userId = auth?.id ?? "";
  switch (access.kind) {
    case "all":
      return { userId, channel: name, key: "all" };
    case "filter":
      return { userId, channel: name, key: `filter ${access.filter.key}` };
    case "record":
      return { userId, channel: name, key: `record ${JSON.stringify(auth)}` };
  }
}

/** Equal for rights that show the same records. A rule that looks at records depends on the user, and on what it looks up. */
function viewKeyOf(access: ReadAccess, asker: Asker | null): string {
  switch (access.kind) {
    case "all":
      return "all";
    case "filter":
      return `filter ${access.filter.key}`;
    case "record":
      return `record ${asker?.serial ?? ""}`;
  }
}
