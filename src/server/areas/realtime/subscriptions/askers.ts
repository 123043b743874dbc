import type { Clock, Millis } from "../../../../kernel/clock.ts";
import type { Logger } from "../../../../kernel/logger.ts";
import { chain, type MaybePromise } from "../../../../kernel/maybe-promise.ts";
import { sightWatch } from "../../../access/lookups/sight.ts";
import { authOf } from "../../../access/principal.ts";
import type { ReadAccess, Sight, TableAddress } from "../../../access/table-door.ts";
import type { Visiting } from "../../../sockets/connection.ts";
import type { StandingRight } from "../../../sockets/standing-rights.ts";
import type { StandingRights } from "../../../sockets/standing-rights.ts";
import type { Audience } from "../changes/audience.ts";
import type { Held } from "../changes/feeds.ts";
import { SIGHT_RESYNC_MS, SIGHT_RESYNC_SUBSCRIPTIONS } from "../limits.ts";
import { type Asker, isOutdated, type RealtimeConnection, type TableChannel, type TableSubscription } from "./model.ts";
import type { Rights } from "../rights.ts";
import { type AskedTables, createAskedTables, isFilter } from "./asked-tables.ts";

/** The answer of a table's rule, and what it rests on. */
export interface Asked {
  readonly access: ReadAccess;
  /** To be given to `join`, or ended. */
  readonly right: StandingRight;
}

/**
 * Rules of tables that are asked again, before changes are delivered: one that looked something up when that changes, one that
 * returned a filter without a lookup with each change of its table. [RT37, RT224]
 */
export interface Askers {
  /** Asks the rule for a subscription; null: it denies. `before`: as for `TableDoor.readAccess`. */
  ask(principal: Visiting, channel: TableChannel, before?: ReadAccess | null): MaybePromise<Asked | null>;
  /**
   * The asker of a subscription, whose answer may be an earlier one that is equal; null: it needs none. `current`: the asker
   * that the subscription has, if any.
   */
  join(principal: Visiting, channel: TableChannel, asked: Asked, current?: Asker | null): Asker | null;
  add(asker: Asker, connection: RealtimeConnection, subscription: TableSubscription): void;
  remove(asker: Asker, subscription: TableSubscription): void;
  /** Asks those whose answers are not of now. `isChanged`: the table itself has changed. null: all answers are of now. */
  review(address: TableAddress, about: { isChanged: boolean }): Held | null;
  /** Resolves when this subscription has the rights of now; null: it has them. */
  settle(subscription: TableSubscription): Promise<void> | null;
}

/**
 * Takes what the rule returns now; null: it denies. `isAnotherView`: the client's records may be others, although the answer is
 * equal.
 */
export type OnAnswer = (
  connection: RealtimeConnection,
  subscription: TableSubscription,
  access: ReadAccess | null,
  about: { isAnotherView: boolean },
) => void;

export function createAskers(deps: {
  rights: Pick<Rights, "readTable">;
  standing: StandingRights;
  onAnswer: OnAnswer;
  clock: Clock;
  logger: Logger;
}): Askers {
  const { rights, standing } = deps;
  const tables = createAskedTables();
  const { settle, own } = createOwning(deps, tables);

  return {
    ask(principal, channel, before = null) {
      const right = standing.begin();
      const options = { before, watch: right.watch, sight: { ...sightOf(principal, channel, right), isKnown: false } };
      return chain(rights.readTable(principal, channel, options), (access) => {
        if (access !== null) return { access, right };
        right.end();
        return null;
      });
    },
    join(principal, channel, { access, right }, current = null) {
      if (!right.hasLooked && access.kind !== "record" && !isFilter(access)) {
        right.end();
        return null;
      }
      // With a rule that looks at records, what it looks at depends on the channel's record.
      const facts = access.kind === "record" ? [authOf(principal), channel.docId] : [authOf(principal)];
      const auth = JSON.stringify(facts);
      const known = current?.auth === auth ? current : tables.withRoom(channel.address, auth);
      if (known !== null && !known.right.isStale && isEqual(known.access, access)) {
        right.end();
        return known;
      }
      // It answers otherwise now: the others are asked again.
      known?.right.touch();
      const view = { serial: 0, hasMissedView: false, viewedAt: Number.NEGATIVE_INFINITY, cancelView: null };
      const asker: Asker = { auth, principal, channel, right, access, askedAt: 0, ...view, members: new Map() };
      own(asker, right);
      settle(asker, access);
      // The first change of what it looks up is told at once.
      asker.viewedAt = Number.NEGATIVE_INFINITY;
      if (known !== null) void standing.review([known.right]);
      return asker;
    },
    add(asker, connection, subscription) {
      if (!asker.members.has(subscription)) tables.count(asker.channel.address, 1);
      asker.members.set(subscription, connection);
    },
    remove(asker, subscription) {
      if (asker.members.delete(subscription)) tables.count(asker.channel.address, -1);
      if (asker.members.size > 0) return;
      asker.cancelView?.();
      asker.right.end();
      tables.delete(asker);
    },
    review(address, { isChanged }) {
      const askers = tables.find(address);
      if (askers === null) return null;
      if (isChanged) for (const asker of askers.unwatched) asker.right.touch();
      if (askers.pending.size === 0) return null;
      const ready = standing.review(Array.from(askers.pending, ({ right }) => right));
      const audiences = new Set<Audience>();
      for (const asker of askers.pending) {
        if (!asker.right.isStale && asker.right.asking === null) askers.pending.delete(asker);
        else for (const { audience } of asker.members.keys()) audiences.add(audience);
      }
      return ready === null ? null : { ready, audiences };
    },
    settle: ({ asker }) => (asker === null ? null : standing.settle(asker.right)),
  };
}

/** How an asker gets a right, and applies its answers. */
function createOwning(deps: Parameters<typeof createAskers>[0], tables: AskedTables) {
  let serial = 0;
  /** How long another view of records has to wait, so that one client is not told to load its list again and again. [RT227] */
  const waitOf = (asker: Asker): Millis => {
    const now = deps.clock.now();
    // The clock may have been set back.
    asker.viewedAt = Math.min(asker.viewedAt, now);
    const crowd = Math.max(1, tables.subscriptionCount(asker.channel.address) / SIGHT_RESYNC_SUBSCRIPTIONS);
    return Math.max(0, asker.viewedAt + SIGHT_RESYNC_MS * crowd - now);
  };
  const viewSoon = (asker: Asker): void => {
    if (asker.members.size === 0 || asker.cancelView !== null) return;
    const ask = (): void => {
      asker.cancelView = null;
      deps.standing.askSoon(asker.right);
    };
    const wait = waitOf(asker);
    if (wait === 0) ask();
    else asker.cancelView = deps.clock.after(wait, ask);
  };
  const settle = (asker: Asker, access: ReadAccess | null): void => {
    // Another answer tells by itself that the records are others.
    if (access === null || !isEqual(access, asker.access)) asker.hasMissedView = false;
    asker.access = access ?? asker.access;
    const isAnotherView = access?.kind === "record" || asker.hasMissedView;
    const isTold = isAnotherView && waitOf(asker) === 0;
    if (isTold) {
      asker.serial = ++serial;
      asker.hasMissedView = false;
      asker.viewedAt = deps.clock.now();
      asker.cancelView?.();
      asker.cancelView = null;
    } else if (isAnotherView) viewSoon(asker);
    if (access !== null) tables.classify(asker);
    for (const [subscription, connection] of [...asker.members]) {
      // Nearly always: nothing has changed.
      if (subscription.access === access && !isTold) continue;
      // The answer is about who the user was. The rule is about to be asked for who it is.
      if (isOutdated(connection, subscription)) {
        subscription.hasMissedView = true;
        continue;
      }
      try {
        deps.onAnswer(connection, subscription, access, { isAnotherView: isTold });
      } catch (cause) {
        deps.logger.error("A subscription could not adopt its rule's answer", { cause });
        connection.closeAsSlow();
      }
    }
  };
  const own = (asker: Asker, right: StandingRight): void => {
    asker.right = right;
    const sight = sightOf(asker.principal, asker.channel, right);
    // Found once: a commit may touch thousands in one turn.
    const pending = tables.pendingOf(asker.channel.address);
    right.owner = {
      ask(watch) {
        // Its last subscription may have ended meanwhile.
        if (asker.members.size === 0) return null;
        const options = {
          before: asker.access,
          watch,
          sight: { ...sight, isKnown: asker.access.kind === "record" },
        };
        const { askedAt } = asker;
        asker.askedAt = right.commitCount;
        const asked = deps.rights.readTable(asker.principal, asker.channel, options);
        return chain(asked, (access) => () => {
          // After the first of two commits the rule may have shown other records, to a list that the client has asked for. What the
          // first one has made it look at, the second one may have changed.
          if (right.commitCount - askedAt > 1 || right.looksElsewhere) asker.hasMissedView = true;
          settle(asker, access);
        });
      },
      touched: () => void pending.add(asker),
      sightTouched: () => viewSoon(asker),
    };
    if (right.isStale) pending.add(asker);
  };
  return { settle, own };
}

/** Learns what the rule looks at with the record of the channel, or with each record of the table. */
function sightOf(principal: Visiting, { address, docId }: TableChannel, right: StandingRight): Omit<Sight, "isKnown"> {
  if (docId !== null) return { about: docId, watch: () => right.sight };
  return { about: null, watch: () => sightWatch(right.sight, address, authOf(principal)?.id ?? null) };
}

/** Whether both show the same records to the same user. */
function isEqual(one: ReadAccess, other: ReadAccess): boolean {
  if (one.kind === "filter" && other.kind === "filter") return one.filter.key === other.filter.key;
  if (one.kind === "all" && other.kind === "all") return one.saidBy === other.saidBy;
  return one.kind === "record" && other.kind === "record";
}
