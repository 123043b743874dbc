import type { Clock, Millis } from "../../../../kernel/clock.ts";
import type { Logger } from "../../../../kernel/logger.ts";
import { chain, type MaybePromise } from "../../../../kernel/maybe-promise.ts";
import { sightWatch } from "../../../access/lookups/sight.ts";
import { authOf } from "../../../access/principal.ts";
import type { ReadAccess, Sight, TableAddress } from "../../../access/table-door.ts";
import type { Visiting } from "../../../sockets/connection.ts";
import type { RightOwner, StandingRight, StandingRights } from "../../../sockets/standing-rights.ts";
import type { Audience } from "../changes/audience.ts";
import type { Held } from "../changes/feeds.ts";
import type { TableChannel } from "../channel.ts";
import { ASKER_MEMBERS_MAX, RESYNC_INTERVAL_MS, RESYNC_SUBSCRIPTIONS } from "../limits.ts";
import type { Rights } from "../rights.ts";

/** The answer of a table's rule, and the right that follows what it looked up. */
export interface Asked {
  readonly access: ReadAccess;
  /** To be given to `join`, or ended. */
  readonly right: StandingRight;
}

/** A subscription, as an asker sees it. */
export interface Member {
  readonly access: ReadAccess;
  readonly audience: Audience;
  /** Its user has changed, and its rule is about to be asked for the present one. */
  readonly isOutdated: boolean;
  /** The client may have records of a view that the subscription has not had. */
  hasMissedView: boolean;
  /**
   * Takes what the rule returns now; null: it denies. `isAnotherView`: the client's records may be others, although the answer
   * is equal.
   */
  follow(access: ReadAccess | null, about: { isAnotherView: boolean }): void;
  /** Ends a subscription that cannot follow its rule. */
  closeAsSlow(): void;
}

interface AskersDeps {
  rights: Pick<Rights, "readTable">;
  standing: StandingRights;
  clock: Clock;
  logger: Logger;
}

/** The askers of one table. */
class AskedTable {
  /** By what the rule sees of the user. */
  readonly byAuth = new Map<string, Asker[]>();
  /** Those that return filters without having looked anything up. */
  readonly unwatched = new Set<Asker>();
  /** Those whose answers may be outdated. */
  readonly pending = new Set<Asker>();
  subscriptionCount = 0;
  readonly #onEmpty: () => void;

  constructor(onEmpty: () => void) {
    this.#onEmpty = onEmpty;
  }

  /** Returns an asker with room for another subscription; null: there is none. */
  withRoom(auth: string): Asker | null {
    return this.byAuth.get(auth)?.find((asker) => asker.hasRoom) ?? null;
  }

  add(asker: Asker): void {
    const equal = this.byAuth.get(asker.auth);
    if (equal === undefined) this.byAuth.set(asker.auth, [asker]);
    else equal.push(asker);
  }

  delete(asker: Asker): void {
    this.unwatched.delete(asker);
    this.pending.delete(asker);
    const equal = (this.byAuth.get(asker.auth) ?? []).filter((other) => other !== asker);
    if (equal.length > 0) this.byAuth.set(asker.auth, equal);
    else this.byAuth.delete(asker.auth);
    if (this.byAuth.size === 0) this.#onEmpty();
  }
}

/**
 * Subscriptions to a table, of users that are equal to its rule: it is asked again once for all of them. At most
 * ASKER_MEMBERS_MAX; further ones have another asker.
 */
export class Asker implements RightOwner {
  readonly #deps: AskersDeps;
  readonly #table: AskedTable;
  readonly #principal: Visiting;
  readonly #channel: TableChannel;
  readonly #members = new Set<Member>();
  /** What its rule sees of the user, as JSON, and the channel's record where the rule looks at records. */
  readonly auth: string;
  /** Follows what the rule looked up. */
  readonly right: StandingRight;
  /** The last answer: an equal filter is not compiled again. */
  access: ReadAccess;
  /** Changes with each view that equal answers do not show to be the same. */
  viewSerial: number;
  /** Its records may have been others between two equal answers, and its subscriptions have not been told. */
  hasMissedView = false;
  /** `right.commitCount` when the latest question began. */
  #askedAt = 0;
  /** When the subscriptions were told of another view last. The first one is told at once. */
  #toldAt: Millis = Number.NEGATIVE_INFINITY;
  /** Ends the wait for the next time; null: none is due. */
  #cancelTelling: (() => void) | null = null;
  static #serial = 0;

  constructor(
    about: { principal: Visiting; channel: TableChannel; auth: string; table: AskedTable },
    { access, right }: Asked,
    deps: AskersDeps,
  ) {
    this.#deps = deps;
    this.#table = about.table;
    this.#principal = about.principal;
    this.#channel = about.channel;
    this.auth = about.auth;
    this.access = access;
    this.right = right;
    this.viewSerial = ++Asker.#serial;
    right.owner = this;
    this.#table.add(this);
    this.#classify();
    if (right.isStale) this.touched();
  }

  get hasRoom(): boolean {
    return this.#members.size < ASKER_MEMBERS_MAX;
  }

  /** Whether its answer may be outdated. */
  get isUnsettled(): boolean {
    return this.right.isStale || this.right.asking !== null;
  }

  get members(): Iterable<Member> {
    return this.#members;
  }

  add(member: Member): void {
    if (!this.#members.has(member)) this.#table.subscriptionCount++;
    this.#members.add(member);
  }

  /** Ends with its last member. */
  remove(member: Member): void {
    if (this.#members.delete(member)) this.#table.subscriptionCount--;
    if (this.#members.size > 0) return;
    this.#cancelTelling?.();
    this.right.end();
    this.#table.delete(this);
  }

  // For its right

  ask(watch: StandingRight["watch"]): ReturnType<RightOwner["ask"]> {
    // Its last subscription may have ended meanwhile.
    if (this.#members.size === 0) return null;
    const { right, access: before } = this;
    const sight = { ...sightOf(this.#principal, this.#channel, right), isKnown: before.kind === "record" };
    const askedAt = this.#askedAt;
    this.#askedAt = right.commitCount;
    const asked = this.#deps.rights.readTable(this.#principal, this.#channel, { before, watch, sight });
    return chain(asked, (access) => () => {
      // After the first of two commits the rule may have shown other records, to a list that the client has asked for. What the
      // first one has made it look at, the second one may have changed.
      if (right.commitCount - askedAt > 1 || right.looksElsewhere) this.hasMissedView = true;
      this.#follow(access);
    });
  }

  touched(): void {
    this.#table.pending.add(this);
  }

  sightTouched(): void {
    this.#tellSoon();
  }

  #follow(access: ReadAccess | null): void {
    // Another answer tells by itself that the records are others.
    if (access === null || !isEqual(access, this.access)) this.hasMissedView = false;
    this.access = access ?? this.access;
    const isAnotherView = access?.kind === "record" || this.hasMissedView;
    const isTold = isAnotherView && this.#waitMs() === 0;
    if (isTold) this.#told();
    else if (isAnotherView) this.#tellSoon();
    if (access !== null) this.#classify();
    for (const member of [...this.#members]) {
      // Nearly always: nothing has changed.
      if (member.access === access && !isTold) continue;
      if (member.isOutdated) {
        member.hasMissedView = true;
        continue;
      }
      try {
        member.follow(access, { isAnotherView: isTold });
      } catch (cause) {
        this.#deps.logger.error("A subscription could not adopt its rule's answer", { cause });
        member.closeAsSlow();
      }
    }
  }

  #told(): void {
    this.viewSerial = ++Asker.#serial;
    this.hasMissedView = false;
    this.#toldAt = this.#deps.clock.now();
    this.#cancelTelling?.();
    this.#cancelTelling = null;
  }

  /** Asks again, and tells the subscriptions of another view then, so that no client loads its list again and again. [RT227] */
  #tellSoon(): void {
    if (this.#members.size === 0 || this.#cancelTelling !== null) return;
    const ask = (): void => {
      this.#cancelTelling = null;
      this.#deps.standing.askSoon(this.right);
    };
    const waitMs = this.#waitMs();
    if (waitMs === 0) ask();
    else this.#cancelTelling = this.#deps.clock.after(waitMs, ask);
  }

  #waitMs(): Millis {
    const now = this.#deps.clock.now();
    // The clock may have been set back.
    this.#toldAt = Math.min(this.#toldAt, now);
    const crowd = Math.max(1, this.#table.subscriptionCount / RESYNC_SUBSCRIPTIONS);
    return Math.max(0, this.#toldAt + RESYNC_INTERVAL_MS * crowd - now);
  }

  #classify(): void {
    if (isFilter(this.access) && !this.right.hasLooked) this.#table.unwatched.add(this);
    else this.#table.unwatched.delete(this);
  }
}

/**
 * Rules of tables that are asked again, before changes are delivered: one that looked something up when that changes, one that
 * returned a filter without a lookup with each change of its table. [RT37, RT224]
 */
export class Askers {
  readonly #deps: AskersDeps;
  readonly #tables = new Map<string, AskedTable>();

  constructor(deps: AskersDeps) {
    this.#deps = deps;
  }

  /** Asks the rule for a subscription; null: it denies. `before`: as for `TableDoor.readAccess`. */
  ask(principal: Visiting, channel: TableChannel, before: ReadAccess | null = null): MaybePromise<Asked | null> {
    const right = this.#deps.standing.begin();
    const options = { before, watch: right.watch, sight: { ...sightOf(principal, channel, right), isKnown: false } };
    return chain(this.#deps.rights.readTable(principal, channel, options), (access) => {
      if (access !== null) return { access, right };
      right.end();
      return null;
    });
  }

  /**
   * Returns the asker of a subscription, whose answer may be an earlier one that is equal; null: it needs none. `current`: the
   * asker that the subscription has, if any.
   */
  join(principal: Visiting, channel: TableChannel, asked: Asked, current: Asker | null = null): Asker | null {
    const { access, right } = asked;
    if (!right.hasLooked && access.kind !== "record" && !isFilter(access)) {
      right.end();
      return null;
    }
    // With a rule that looks at records, what it looks at depends on the channel's record.
    const facts = access.kind === "record" ? [authOf(principal), channel.docId] : [authOf(principal)];
    const auth = JSON.stringify(facts);
    const table = this.#tableOf(channel.address);
    const known = current?.auth === auth ? current : table.withRoom(auth);
    if (known !== null && !known.right.isStale && isEqual(known.access, access)) {
      right.end();
      return known;
    }
    const asker = new Asker({ principal, channel, auth, table }, asked, this.#deps);
    // It answers otherwise now: the others are asked again.
    known?.right.touch();
    if (known !== null) void this.#deps.standing.review([known.right]);
    return asker;
  }

  /** Asks those whose answers are outdated, before changes of the table are delivered. null: all answers are current. */
  review(address: TableAddress): Held | null {
    const table = this.#tables.get(keyOf(address));
    if (table === undefined) return null;
    for (const asker of table.unwatched) asker.right.touch();
    if (table.pending.size === 0) return null;
    const ready = this.#deps.standing.review(Array.from(table.pending, ({ right }) => right));
    const audiences = new Set<Audience>();
    for (const asker of table.pending) {
      if (!asker.isUnsettled) table.pending.delete(asker);
      else for (const { audience } of asker.members) audiences.add(audience);
    }
    return ready === null ? null : { ready, audiences };
  }

  /** Resolves when a subscription with this asker has its present rights; null: it has them. */
  settle(asker: Asker | null): Promise<void> | null {
    return asker === null ? null : this.#deps.standing.settle(asker.right);
  }

  #tableOf(address: TableAddress): AskedTable {
    const key = keyOf(address);
    const table = this.#tables.get(key) ?? new AskedTable(() => this.#tables.delete(key));
    this.#tables.set(key, table);
    return table;
  }
}

// Neither a namespace, nor an instance's id, nor a table has a slash.
const keyOf = ({ namespace, instanceId, table }: TableAddress): string => `${namespace}/${instanceId ?? ""}/${table}`;

const isFilter = (access: ReadAccess): boolean =>
  access.kind === "filter" || (access.kind === "all" && access.saidBy === "filter");

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
