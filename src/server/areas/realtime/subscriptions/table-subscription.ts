import { unreachable } from "../../../../kernel/errors.ts";
import { isPromise } from "../../../../kernel/maybe-promise.ts";
import type { Scheduler } from "../../../../kernel/time/scheduler.ts";
import type { ReadAccess } from "../../../access/table-door.ts";
import type { Audience } from "../changes/audience.ts";
import type { Feed, Feeds } from "../changes/feeds.ts";
import { ChangeTypes } from "../changes/visibility.ts";
import type { TableChannel } from "../channel.ts";
import { REPLAY_WAITING_MAX_BYTES } from "../limits.ts";
import { Revoked } from "../messages.ts";
import type { ChannelMeter } from "../meter.ts";
import type { Asked, Asker, Askers, Member } from "./askers.ts";
import type { Filters } from "./filters.ts";
import { keyOf, principalOf, type RealtimeConnection, type Subscription, userIdOf } from "./model.ts";
import type { ViewFollowers } from "./view-followers.ts";
import { type View, type Views, viewOf } from "./views.ts";

/** Dependencies of all subscriptions to tables. */
export interface TableSubscriptionDeps {
  feeds: Feeds;
  views: Views;
  askers: Askers;
  /** Bounds the time of all replays together. [RT26] */
  replays: Scheduler;
  meter: ChannelMeter;
  viewFollowers: ViewFollowers;
}

/**
 * A subscription to a table or to one of its records. It receives the changes of its audience, which follows from its filters and
 * rights; when these change, it continues in another audience from the same position, so that nothing is missed in between.
 */
export class TableSubscription implements Subscription, Member {
  readonly kind = "table";
  readonly connection: RealtimeConnection;
  channel: TableChannel;
  readonly id: string | null;
  readonly feed: Feed;
  readonly #deps: TableSubscriptionDeps;
  filters: Filters;
  access: ReadAccess;
  audience: Audience;
  /** Asker of the rule; null when the rule is not evaluated again before the next `subscribe`. */
  asker: Asker | null;
  #viewKey: string;
  #view: View | null;
  /** Audience key shared with equal subscriptions with ids, and the number of this subscription among them. */
  #base = "";
  #copy = 0;
  /** Value of `connection.identity` when the rights were granted. */
  #identity: number;
  hasMissedView = false;
  #isCatchingUp = false;
  #isEnded = false;
  /** Settled when the replay has caught up, or the subscription has ended; null when nobody waits for that. */
  #caughtUp: PromiseWithResolvers<void> | null = null;
  /** Settled when the subscription is no longer outdated, or has ended; null when nobody waits for that. */
  #renewed: PromiseWithResolvers<void> | null = null;

  /**
   * Starts with the changes after `since`, or with the next change (null). Sends `subscribed` first, which tells the position,
   * and whether missed changes are no longer known.
   */
  constructor(
    connection: RealtimeConnection,
    about: {
      channel: TableChannel;
      id: string | null;
      filters: Filters;
      asked: Asked;
      since: number | null;
      /** The tables of a view; null for a table. */
      sources: readonly string[] | null;
    },
    deps: TableSubscriptionDeps,
  ) {
    const { channel, asked, sources } = about;
    this.connection = connection;
    this.channel = channel;
    this.id = about.id;
    this.filters = about.filters;
    this.#deps = deps;
    this.#identity = connection.identity;
    this.asker = deps.askers.join(principalOf(connection), channel, asked);
    this.access = this.asker?.access ?? asked.access;
    this.#viewKey = viewKeyOf(this.access, this.asker);
    this.#view = this.#viewNow();
    const { feed, audience } = this.#acquire();
    this.feed = feed;
    this.audience = audience;
    // No view is remembered across restarts; a constant of an equal config has always shown the same records.
    const since = about.since !== null && this.#view === null ? feed.log.renewed(about.since) : about.since;
    const isCovered = since === null || this.#view === null || deps.views.covers(this.#view, since);
    // What other tables had in between, no log knows.
    const isKnown = sources === null && !isRelated(channel) && isCovered;
    const isLost = since !== null && !(isKnown && feed.log.reaches(since));
    const position = since === null || isLost ? audience.position : since;
    if (this.#view !== null) deps.views.begin(this.#view, position);
    this.asker?.add(this);
    if (sources !== null) deps.viewFollowers.add(channel.address, sources, this);
    connection.send({ ...this.#subscribed(position), ...(isLost ? { resync: true } : {}) });
    this.#replay(position);
  }

  get name(): string {
    return this.channel.name;
  }

  get isOutdated(): boolean {
    return this.connection.identity !== this.#identity;
  }

  get isEnded(): boolean {
    return this.#isEnded;
  }

  /** Confirms these filters and continues with them. Waiting messages are sent first. */
  filter(filters: Filters): void {
    const known = this.filters;
    this.filters = filters;
    const announce = () => this.#announceFilters();
    if (filters === known) announce();
    else this.#change({ announce, unsent: "sent" });
  }

  /** Confirms filters that the right judges, or did so far, and continues with them and this answer. */
  refilter({ channel, filters, asked }: { channel: TableChannel; filters: Filters; asked: Asked }): void {
    const { askers, views } = this.#deps;
    const before = this.asker;
    if (this.#view !== null) views.end(this.#view, this.feed.log.head, { isDoubtful: this.#isDoubtful });
    this.channel = channel;
    this.filters = filters;
    this.asker = askers.join(principalOf(this.connection), channel, asked);
    this.asker?.add(this);
    if (before !== this.asker) before?.remove(this);
    this.access = this.asker?.access ?? asked.access;
    this.#viewKey = viewKeyOf(this.access, this.asker);
    this.#view = this.#viewNow();
    if (this.#view !== null) views.begin(this.#view, this.audience.position);
    this.#change({ announce: () => this.#announceFilters(), unsent: "sent" });
  }

  #announceFilters(): void {
    this.connection.send({ type: "filters_updated", ...this.#names, serverFilter: this.filters.filter !== null });
  }

  follow(access: ReadAccess | null, about: { isAnotherView: boolean }): void {
    const { principal } = this.connection;
    if (this.#isEnded || principal === null) return;
    if (access !== null) {
      this.#adopt(access, about);
      return;
    }
    this.end();
    this.connection.send(new Revoked().add(this).message(userIdOf(principal)));
  }

  /** Continues with the rule's answer for the current user. Ends a pause. */
  renew(asked: Asked): void {
    const { askers } = this.#deps;
    const before = this.asker;
    const asker = askers.join(principalOf(this.connection), this.channel, asked, before);
    if (asker !== before) {
      this.asker = asker;
      asker?.add(this);
      before?.remove(this);
    }
    const isAnotherView = this.#mayHaveMissedView;
    this.#identity = this.connection.identity;
    this.hasMissedView = false;
    this.#adopt(asker?.access ?? asked.access, { isAnotherView });
    // Its waiting messages may be sent.
    if (!this.#isCatchingUp && !this.#isEnded) this.audience.topic.join(this.connection);
    this.#settleRenewed();
  }

  /** Tells the client of a view that a table of it has changed. */
  resync(): void {
    if (this.#isEnded) return;
    // A user who is being changed is told with the answer of the rule.
    if (this.isOutdated) this.hasMissedView = true;
    else this.connection.send({ ...this.#subscribed(this.audience.position), resync: true });
  }

  /** Tells the client that the content of the table was replaced. Messages about the former one are dropped. */
  restart(): void {
    if (this.#isEnded) return;
    if (this.isOutdated) this.hasMissedView = true;
    else this.#announceView();
  }

  /** Leaves the audience's topic, where others would wait with it, until the subscription is no longer outdated. [RT6] */
  pause(): void {
    if (this.#isCatchingUp) return;
    const { position } = this.audience;
    this.#leave(this.audience);
    this.#replay(position);
  }

  /** Sends the changes committed before the call. Resolves when that is done, or the subscription has ended. [RT241] */
  async flush(): Promise<void> {
    this.#deps.viewFollowers.flush(this.channel.address, this);
    const { head } = this.feed.log;
    while (!this.#isEnded) {
      const wait = this.#waitFor(head);
      if (wait === null) break;
      await wait;
    }
    const { audience, connection } = this;
    if (this.#isEnded || audience.topic.unsent(connection).length === 0) return;
    this.#leave(audience);
    audience.topic.join(connection);
  }

  /** Resolves when a rule whose data changed while it was awaited has been evaluated again; null when that is not needed. */
  settle(): Promise<void> | null {
    return this.#deps.askers.settle(this.asker);
  }

  closeAsSlow(): void {
    this.connection.closeAsSlow();
  }

  end(): void {
    if (this.#isEnded) return;
    this.#isEnded = true;
    const { feeds, views, meter } = this.#deps;
    const own = this.connection.state.subscriptions;
    if (own.get(keyOf(this)) === this) {
      own.delete(keyOf(this));
      meter.ended(this);
    }
    if (this.#view !== null) views.end(this.#view, this.feed.log.head, { isDoubtful: this.#isDoubtful });
    this.#settleRenewed();
    this.#settleCaughtUp();
    this.asker?.remove(this);
    this.#deps.viewFollowers.remove(this.channel.address, this);
    this.audience.topic.leave(this.connection);
    feeds.release(this.feed, this.channel, this.audience);
  }

  /**
   * Adopts these rights. When they show other records, or did for a while (`isAnotherView`), the client's records are outdated:
   * `subscribed` with `resync` is sent first.
   */
  #adopt(access: ReadAccess, { isAnotherView }: { isAnotherView: boolean }): void {
    const viewKey = viewKeyOf(access, this.asker);
    const isSame = viewKey === this.#viewKey && !isAnotherView;
    const isDoubtful = isAnotherView || this.access.kind === "record";
    this.access = access;
    if (isSame) return;
    const { views } = this.#deps;
    if (this.#view !== null) views.end(this.#view, this.feed.log.head, { isDoubtful });
    this.#viewKey = viewKey;
    this.#view = this.#viewNow();
    if (this.#view !== null) views.begin(this.#view, this.audience.position);
    this.#announceView();
  }

  #announceView(): void {
    this.#change({
      announce: (position) => this.connection.send({ ...this.#subscribed(position), resync: true }),
      unsent: "dropped",
    });
  }

  /**
   * Continues from the same position in the audience of the current filters and rights. `announce` tells the client. Unsent
   * messages of the earlier view are sent before that, or dropped.
   */
  #change({ announce, unsent }: { announce(position: number): void; unsent: "sent" | "dropped" }): void {
    const old = this.audience;
    const { position } = old;
    this.audience = this.#acquire().audience;
    if (unsent === "sent") this.#leave(old);
    else old.topic.leave(this.connection);
    announce(position);
    // A replay looks up its audience in each step. Sending may have closed the connection as too slow.
    if (!this.#isCatchingUp && !this.#isEnded) this.#replay(position);
    this.#deps.feeds.release(this.feed, this.channel, old);
  }

  /** Returns the audience of the current filters and rights, to be released. */
  #acquire(): { feed: Feed; audience: Audience } {
    const { channel, access, id } = this;
    const { filter } = this.filters;
    const view = { access, filter };
    const key = JSON.stringify([channel.name, this.#viewKey, filter?.key ?? null]);
    if (id === null) return this.#deps.feeds.acquire(channel, { key, isNamed: false, view });
    // Equal subscriptions of one connection have feeds of their own, since each has its own position.
    const taken = new Set<number>();
    for (const other of this.connection.state.subscriptions.values()) {
      if (other instanceof TableSubscription && other !== this && other.#base === key) taken.add(other.#copy);
    }
    this.#base = key;
    this.#copy = 0;
    while (taken.has(this.#copy)) this.#copy++;
    return this.#deps.feeds.acquire(channel, { key: `${key}${this.#copy}`, isNamed: true, view });
  }

  /** Sends the topic's unsent messages, unless they were meant for the connection's previous user. */
  #leave({ topic }: Audience): void {
    const waiting = topic.unsent(this.connection);
    topic.leave(this.connection);
    if (!this.isOutdated) for (const text of waiting) this.connection.sendText(text);
    else if (waiting.length > 0) this.hasMissedView = true;
  }

  /** Returns a promise for the delivery of the changes up to `head` to the topic; null when nothing delays it. */
  #waitFor(head: number): Promise<void> | null {
    if (this.isOutdated) return this.#untilRenewed();
    if (this.#isCatchingUp) {
      this.#caughtUp ??= Promise.withResolvers();
      return this.#caughtUp.promise;
    }
    return this.audience.position < head ? this.audience.advanced() : null;
  }

  #untilRenewed(): Promise<void> {
    this.#renewed ??= Promise.withResolvers();
    return this.#renewed.promise;
  }

  #settleRenewed(): void {
    this.#renewed?.resolve();
    this.#renewed = null;
  }

  #settleCaughtUp(): void {
    this.#caughtUp?.resolve();
    this.#caughtUp = null;
  }

  /**
   * Sends the changes after `position` at the pace of the client, and joins the audience where the two meet. Every subscription
   * starts here, even one that starts with the next change.
   */
  #replay(position: number): void {
    this.#catchUp(position).catch(() => this.connection.closeAsSlow());
  }

  async #catchUp(position: number): Promise<void> {
    const { connection } = this;
    const { replays } = this.#deps;
    this.#isCatchingUp = true;
    let at = position;
    while (!this.#isEnded && (this.isOutdated || at !== this.audience.position)) {
      const wait = this.#waitToReplay(at);
      if (wait !== null) {
        await wait;
        continue;
      }
      // The bounded log has dropped changes that the replay needs. Only a new subscription can tell the client so.
      if (!this.feed.log.reaches(at)) return connection.closeAsSlow();
      const group = this.feed.log.groupAfter(at);
      const { docId } = this.channel;
      const entries = docId === null ? group : group.filter((entry) => entry.change.id === docId);
      const { audience } = this;
      const types = new ChangeTypes(audience.view, entries);
      while (!types.advance(() => !replays.hasTime)) await replays.whenTime();
      const { all } = types;
      const settled = isPromise(all) ? await all : all;
      if (this.#isEnded) return;
      // Rights or filters have changed meanwhile.
      if (this.audience !== audience || this.isOutdated) continue;
      for (const message of audience.encode(entries, settled)) connection.sendText(message);
      at = group.at(-1)?.seq ?? this.audience.position;
      if (connection.isClosed) return;
      if (connection.waitingBytes > REPLAY_WAITING_MAX_BYTES) await connection.drained();
    }
    if (this.#isEnded) return;
    this.#isCatchingUp = false;
    this.audience.topic.join(connection);
    this.#settleCaughtUp();
  }

  /** Returns a promise for what delays a replay after this change; null when nothing does. */
  #waitToReplay(at: number): Promise<void> | null {
    if (this.isOutdated) return this.#untilRenewed();
    const asked = this.settle();
    if (asked !== null) return asked;
    // The replay is ahead of its audience: if it joined now, it would get changes twice.
    if (at > this.audience.position) return this.audience.advanced();
    return this.#deps.replays.hasTime ? null : this.#deps.replays.whenTime();
  }

  /** Whether the client may have records of a view that the subscription never had. */
  get #mayHaveMissedView(): boolean {
    // In between, the connection may have had another user, for whom the rule was not evaluated.
    return this.hasMissedView || (this.#view !== null && this.connection.identity - this.#identity > 1);
  }

  /** Whether the client of an ending subscription may have records of another view. */
  get #isDoubtful(): boolean {
    if (this.#mayHaveMissedView) return true;
    if (this.asker === null) return false;
    // The records that it shows depend on data that nobody watches from now on.
    if (this.access.kind === "record") return this.asker.right.hasLooked;
    return this.asker.hasMissedView || this.asker.isUnsettled;
  }

  get #names() {
    const { name, id } = this;
    const { feed } = this.audience;
    return { channel: name, ...(id === null ? {} : { id }), ...(feed === null ? {} : { feed }) };
  }

  /** Returns what others who reconnect may resume from; null for relations, which nobody resumes from. */
  #viewNow(): View | null {
    if (isRelated(this.channel)) return null;
    return viewOf(principalOf(this.connection), this.name, this.access);
  }

  #subscribed(seq: number) {
    return { type: "subscribed" as const, ...this.#names, serverFilter: this.filters.filter !== null, seq };
  }
}

const isRelated = ({ related = null }: TableChannel): boolean => related !== null;

/**
 * Returns a key that is equal for rights that show the same records. A rule that looks at records depends on the user and its
 * lookups.
 */
function viewKeyOf(access: ReadAccess, asker: Asker | null): string {
  switch (access.kind) {
    case "all":
      return "all";
    case "filter":
      return `filter ${access.filter.key}`;
    case "record":
      return `record ${asker?.viewSerial ?? ""}`;
    default:
      return unreachable(access);
  }
}
