import type { Clock, Millis } from "../../../../kernel/clock.ts";
import type { JsonValue } from "../../../../kernel/json/json.ts";
import type { Logger } from "../../../../kernel/logger.ts";
import { chain, type MaybePromise } from "../../../../kernel/maybe-promise.ts";
import { ANY_INSTANCE, type LookupWatch, type RuleAddress } from "../../../access/lookups/lookups.ts";
import { authOf } from "../../../access/principal.ts";
import type { AccessOptions, ReadAccess, Sight, TableAddress } from "../../../access/table-door.ts";
import type { Visiting } from "../../../sockets/connection.ts";
import type { RightOwner, StandingRight, StandingRights } from "../../../sockets/standing-rights.ts";
import type { Audience } from "../changes/audience.ts";
import type { Held } from "../changes/feeds.ts";
import type { TableChannel } from "../channel.ts";
import { ASKER_MEMBERS_MAX, RESYNC_INTERVAL_MS, RESYNC_SUBSCRIPTIONS } from "../limits.ts";
import type { Rights } from "../rights.ts";

/** Answer of a table's rule, and the standing right that follows its lookups. */
export interface Asked {
  readonly access: ReadAccess;
  /** The right. Pass it to `join`, or end it. */
  readonly right: StandingRight;
}

/** An asker's view of a subscription. */
export interface Member {
  readonly access: ReadAccess;
  readonly audience: Audience;
  /** Whether the user has changed, and the rule has yet to be evaluated for the current one. */
  readonly isOutdated: boolean;
  /** Whether the client may have records of a view that the subscription never had. */
  hasMissedView: boolean;
  /**
   * Adopts the rule's current answer; null when it denies. `isAnotherView`: the client's records may be others, although the
   * answer is equal.
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

/** Askers of one table. */
class AskedTable {
  /** Askers by the rule's view of the user. */
  readonly byAuth = new Map<string, Asker[]>();
  /** Askers whose rule returned a filter without a lookup. */
  readonly unwatched = new Set<Asker>();
  /** Askers whose answers may be outdated. */
  readonly pending = new Set<Asker>();
  subscriptionCount = 0;
  readonly #onEmpty: () => void;

  constructor(onEmpty: () => void) {
    this.#onEmpty = onEmpty;
  }

  /** Returns an asker with room for another subscription, or null. */
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
 * Evaluates a table's rule once for all subscriptions whose users are equal to the rule: at most ASKER_MEMBERS_MAX; further ones
 * have another asker.
 */
export class Asker implements RightOwner {
  readonly #deps: AskersDeps;
  readonly #table: AskedTable;
  readonly #principal: Visiting;
  readonly #channel: TableChannel;
  readonly #members = new Set<Member>();
  /** The rule's view of the user, as JSON, and the channel's record when the rule looks at records. */
  readonly auth: string;
  /** Standing right that follows the rule's lookups. */
  readonly right: StandingRight;
  /** The latest answer. An equal filter is not compiled again. */
  access: ReadAccess;
  /** Serial of the view, which changes with each view that equal answers do not prove to be the same. */
  viewSerial: number;
  /** Whether the records may have been others between two equal answers, of which the subscriptions have not been told. */
  hasMissedView = false;
  /** Value of `right.commitCount` when the latest evaluation began. */
  #askedAt = 0;
  /** Time at which the subscriptions were last told of another view. The first one is told at once. */
  #toldAt: Millis = Number.NEGATIVE_INFINITY;
  /** Cancels the wait for the next telling; null when none is scheduled. */
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

  /** Whether the answer may be outdated. */
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

  /** Removes a subscription. The asker ends with the last one. */
  remove(member: Member): void {
    if (this.#members.delete(member)) this.#table.subscriptionCount--;
    if (this.#members.size > 0) return;
    this.#cancelTelling?.();
    this.right.end();
    this.#table.delete(this);
  }

  // RightOwner

  ask(watch: StandingRight["watch"]): ReturnType<RightOwner["ask"]> {
    // The last subscription may have ended meanwhile.
    if (this.#members.size === 0) return null;
    const { right, access: before } = this;
    const sight = { ...sightOf(this.#principal, this.#channel, right), isKnown: before.kind === "record" };
    const askedAt = this.#askedAt;
    this.#askedAt = right.commitCount;
    const related = relatedOf(this.#channel, right);
    const asked = this.#deps.rights.readTable(this.#principal, this.#channel, { before, watch, sight, ...related });
    return chain(asked, (access) => () => {
      // After the first of two commits, the rule may have shown other records to a list that the client has requested. The second
      // one may have changed data that the rule looks up only since the first.
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
    // A different answer itself tells that the records are others.
    if (access === null || !isEqual(access, this.access)) this.hasMissedView = false;
    this.access = access ?? this.access;
    const isAnotherView = access?.kind === "record" || this.hasMissedView;
    const isTold = isAnotherView && this.#waitMs() === 0;
    if (isTold) this.#told();
    else if (isAnotherView) this.#tellSoon();
    if (access !== null) this.#classify();
    for (const member of [...this.#members]) {
      // The usual case: nothing has changed.
      if (member.access === access && !isTold) continue;
      if (member.isOutdated) {
        member.hasMissedView = true;
        continue;
      }
      try {
        member.follow(access, { isAnotherView: isTold });
      } catch (cause) {
        this.#deps.logger.error("realtime: a subscription could not apply its rule's result", { cause });
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

  /**
   * Evaluates the rule again, throttled, and then tells the subscriptions of another view, so that no client reloads its list
   * again and again. [RT227]
   */
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
 * Askers of all tables. Rules are evaluated again before changes are delivered: one with lookups when these change, one that
 * returned a filter without a lookup with each change of its table. [RT37, RT224]
 */
export class Askers {
  readonly #deps: AskersDeps;
  readonly #tables = new Map<string, AskedTable>();

  constructor(deps: AskersDeps) {
    this.#deps = deps;
  }

  /**
   * Evaluates the rule for a subscription; null when it denies. `before`: as for `TableDoor.readAccess`. `refused`: called with what is
   * wrong with the filters of the channel.
   */
  ask(
    principal: Visiting,
    channel: TableChannel,
    before: ReadAccess | null = null,
    refused: (message: string) => void = () => {},
  ): MaybePromise<Asked | null> {
    const right = this.#deps.standing.begin();
    const sight = { ...sightOf(principal, channel, right), isKnown: false };
    const options = { before, watch: right.watch, sight, ...relatedOf(channel, right, refused) };
    return chain(this.#deps.rights.readTable(principal, channel, options), (access) => {
      if (access !== null) return { access, right };
      right.end();
      return null;
    });
  }

  /**
   * Returns the asker of a subscription, whose answer may be an earlier, equal one; null when it needs none. `current`: the asker
   * that the subscription has, if any.
   */
  join(principal: Visiting, channel: TableChannel, asked: Asked, current: Asker | null = null): Asker | null {
    const { access, right } = asked;
    if (!right.hasLooked && access.kind !== "record" && !isFilter(access)) {
      right.end();
      return null;
    }
    // A rule that looks at records may look up other data for each channel's record.
    const facts = access.kind === "record" ? [authOf(principal), channel.docId] : [authOf(principal)];
    const filters = channel.related ?? null;
    const auth = JSON.stringify(filters === null ? facts : [...facts, filters.text, keyNameOf(principal)]);
    const table = this.#tableOf(channel.address);
    const known = current?.auth === auth ? current : table.withRoom(auth);
    if (known !== null && !known.right.isStale && isEqual(known.access, access)) {
      right.end();
      return known;
    }
    const asker = new Asker({ principal, channel, auth, table }, asked, this.#deps);
    // The answer has changed, so that the other members' answer is outdated.
    known?.right.touch();
    if (known !== null) void this.#deps.standing.review([known.right]);
    return asker;
  }

  /**
   * Evaluates outdated rules before changes of the table are delivered. Returns the audiences to hold; null when all answers are
   * current.
   */
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

  /** Resolves when the rights of a subscription with this asker are current; null when they are. */
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

// Unambiguous: neither a namespace, nor an instance's id, nor a table has a slash.
const keyOf = ({ namespace, instanceId, table }: TableAddress): string => `${namespace}/${instanceId ?? ""}/${table}`;

const isFilter = (access: ReadAccess): boolean =>
  access.kind === "filter" || (access.kind === "all" && access.saidBy === "filter");

/** Records what the rule looks up with the channel's record, or with each record of the table. */
function sightOf(principal: Visiting, { address, docId }: TableChannel, right: StandingRight): Omit<Sight, "isKnown"> {
  if (docId !== null) return { about: docId, watch: () => right.sight };
  return { about: null, watch: () => sightWatch(right.sight, address, authOf(principal)?.id ?? null) };
}

/** Keys ask by their scopes, and are no users. */
const keyNameOf = (principal: Visiting): string | null => (principal.kind === "serviceKey" ? principal.name : null);

/** Returns the filters that are part of the right to a channel. A record that cannot be judged is one of another view. */
function relatedOf(
  { related = null }: TableChannel,
  right: StandingRight,
  refused: (message: string) => void = () => {},
): Pick<AccessOptions, "related"> {
  if (related === null) return {};
  return { related: { all: related.all, any: related.any, refused, undecided: () => right.owner?.sightTouched?.() } };
}

/** Whether both answers show the same records to the same user. */
function isEqual(one: ReadAccess, other: ReadAccess): boolean {
  if (one.kind === "filter" && other.kind === "filter") return one.filter.key === other.filter.key;
  if (one.kind === "all" && other.kind === "all") return one.saidBy === other.saidBy;
  return one.kind === "record" && other.kind === "record";
}

/**
 * Creates a watch that generalizes a rule's lookups for one record to those for any record: to the records of the same table that
 * have the user's id in the same field, or, for a lookup without the user's id, to the whole table. Files other than `own` are
 * watched in all instances of their namespace.
 */
export function sightWatch(watch: LookupWatch, own: RuleAddress, userId: string | null): LookupWatch {
  return {
    lookedAt({ namespace, instanceId, table, fields, values }) {
      const isOwn = namespace === own.namespace && instanceId === own.instanceId;
      const place = { namespace, instanceId: instanceId === null || isOwn ? instanceId : ANY_INSTANCE, table };
      const at = userId === null ? -1 : values.indexOf(userId as JsonValue);
      const field = fields[at];
      if (field === undefined) watch.lookedAt({ ...place, fields: [], values: [] });
      else watch.lookedAt({ ...place, fields: [field], values: [userId] });
    },
  };
}
