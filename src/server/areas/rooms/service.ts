import type { Clock } from "../../../kernel/clock.ts";
import { notFound } from "../../../kernel/errors.ts";
import type { JsonObject } from "../../../kernel/json/json.ts";
import type { Logger } from "../../../kernel/logger.ts";
import { isPromise, type MaybePromise } from "../../../kernel/maybe-promise.ts";
import { within } from "../../../kernel/time/deadline.ts";
import type { TurnBudget } from "../../../kernel/time/turn-budget.ts";
import type { Lookups, LookupWatch } from "../../access/lookups/lookups.ts";
import type { AppAccess } from "../../config/app/index.ts";
import type { Auth, RoomsConfig } from "../../config/types.ts";
import { PendingPlaces } from "../../sockets/pending-places.ts";
import type { StandingRight, StandingRights } from "../../sockets/standing-rights.ts";
import { startSweep, WakeSchedule } from "./lifecycle/schedules.ts";
import type { ExpiringRoom, RoomStore } from "./lifecycle/store.ts";
import { expiryOf, HANDLER_TIMEOUT_MS, LIVE_ROOMS_MAX, NEVER_EXPIRED, roomLimits } from "./limits.ts";
import { LiveRoom } from "./room/room.ts";
import type { RoomsCommon } from "./room/room-memory.ts";
import { StateTexts } from "./state/steps.ts";
import type { JoinOutcome, PresentAuth, RoomAddress, RoomConnection, RoomNamespace } from "./types.ts";

/** Result of a join. `right`: that of the join rule, evaluated for `auth`; ended unless the connection has joined. */
export type Joining = { room: LiveRoom | null; outcome: JoinOutcome; right: StandingRight; auth: Auth };

interface RoomsServiceDeps {
  config: RoomsConfig;
  store: RoomStore;
  standing: StandingRights;
  presentAuth: PresentAuth;
  app: () => AppAccess;
  lookups: Lookups;
  clock: Clock;
  logger: Logger;
  turn: TurnBudget;
}

// Unambiguous: neither a namespace nor an id has a slash.
const keyOf = (namespace: string, id: string): string => `${namespace}/${id}`;

/** Rooms in memory, and the way in for connections. */
export class RoomsService {
  readonly #deps: RoomsServiceDeps;
  readonly #namespaces = new Map<string, RoomNamespace>();
  readonly #rooms = new Map<string, LiveRoom>();
  readonly #common: RoomsCommon;
  readonly #wakes: WakeSchedule;
  readonly #stopSweep: () => Promise<void>;
  #isStopping = false;

  constructor(deps: RoomsServiceDeps) {
    const { store, clock, logger } = deps;
    this.#deps = deps;
    this.#common = { turn: deps.turn, texts: new StateTexts(), waiting: { chars: 0 } };
    for (const [name, config] of Object.entries(deps.config)) {
      const limits = roomLimits(config);
      const pending = new PendingPlaces(clock, limits.pendingPerAddress);
      this.#namespaces.set(name, { name, config, limits, pending });
    }
    this.#wakes = new WakeSchedule({
      store,
      clock,
      namespaces: this.namespaces,
      isInMemory: ({ namespace, id }) => this.#rooms.get(keyOf(namespace, id))?.isInMemory === true,
      wake: ({ namespace, id }) => {
        const declared = this.#namespaces.get(namespace);
        const room = declared === undefined ? null : this.#obtain({ namespace: declared, id });
        room?.wake();
        return room !== null;
      },
      onFailure: (cause) => logger.error("rooms: reading rooms with due timers failed", { cause }),
    });
    this.#stopSweep = startSweep({ store, occupied: () => this.#occupied(), clock, logger });
    if (this.#namespaces.size > 0) this.#wakes.expect(clock.now());
  }

  /** The declared namespaces. */
  get namespaces(): readonly string[] {
    return [...this.#namespaces.keys()];
  }

  /** Returns the address of a room. Errors: 404 for an undeclared namespace. */
  address({ namespace, id }: { namespace: string; id: string }): RoomAddress {
    const declared = this.#namespaces.get(namespace);
    if (declared === undefined) throw notFound(`There is no room namespace "${namespace}"`);
    return { namespace: declared, id };
  }

  /** Evaluates the join rule, and loads or creates the room. */
  async join(address: RoomAddress, connection: RoomConnection): Promise<Joining> {
    const right = this.#deps.standing.begin();
    const { auth } = connection.player();
    const denied = (message: string): Joining => {
      right.end();
      return { room: null, outcome: { kind: "denied", message }, right, auth };
    };
    const isAllowed = await this.mayJoin(address, auth, right.watch);
    if (connection.player().auth !== auth) {
      // The answer is about the previous user.
      right.end();
      return this.join(address, connection);
    }
    if (!isAllowed) return denied("Access denied");
    const room = this.#obtain(address);
    if (room === null) return denied("The server has too many rooms");
    const outcome = await room.join(connection);
    if (outcome.kind !== "joined") right.end();
    return { room, outcome, right, auth };
  }

  /**
   * Evaluates the join rule, and reports its lookups to `watch`. An absent rule, one that throws and one that takes too long
   * deny. [RM12]
   */
  mayJoin({ namespace, id }: RoomAddress, auth: Auth, watch: LookupWatch): MaybePromise<boolean> {
    const { lookups, clock, logger } = this.#deps;
    const rule = namespace.config.access?.join;
    if (typeof rule !== "function") return rule === true;
    const failed = (cause: unknown): boolean => {
      logger.error("rooms: a join rule failed", { namespace: namespace.name, room: id, cause });
      return false;
    };
    try {
      const call = lookups.begin({ for: "subscription", watch });
      const answer: MaybePromise<unknown> = rule(auth, id, call.context(null));
      if (!isPromise(answer)) return answer === true;
      return within(clock, HANDLER_TIMEOUT_MS, answer).then((said) => said === true, failed);
    } catch (cause) {
      return failed(cause);
    }
  }

  /**
   * Re-evaluates the right of a join when data or the user has changed meanwhile, and releases it. The right must have its owner.
   */
  follow(right: StandingRight): void {
    if (!right.hasLooked && !right.isStale) right.end();
    else if (this.#deps.standing.settle(right) === null) right.release();
  }

  /** Returns the metadata of a room; `{}` when none is set. */
  metadata({ namespace, id }: RoomAddress): JsonObject {
    const { store, clock } = this.#deps;
    const live = this.#rooms.get(keyOf(namespace.name, id));
    const now = live?.isOccupied === true ? NEVER_EXPIRED : clock.now();
    return live?.metadata ?? store.metadata(namespace.name, id, now) ?? {};
  }

  /** Counts rooms with a place in memory, including hibernating rooms with connections. */
  get liveRooms(): number {
    return this.#rooms.size;
  }

  /** Returns the live rooms, in order of arrival. */
  all(): Iterable<LiveRoom> {
    return this.#rooms.values();
  }

  /** Returns a live room; null when it has no place in memory. */
  live({ namespace, id }: RoomAddress): LiveRoom | null {
    return this.#rooms.get(keyOf(namespace.name, id)) ?? null;
  }

  /** Starts no further task; resolves when the running tasks of all rooms have ended. */
  async quiesce(): Promise<void> {
    this.#isStopping = true;
    this.#wakes.stop();
    await Promise.all(Array.from(this.#rooms.values(), (room) => room.quiesce()));
  }

  /** Saves every room. Call it after `quiesce`. */
  async stop(): Promise<void> {
    await Promise.all([this.#stopSweep(), ...Array.from(this.#rooms.values(), (room) => room.stop())]);
    this.#rooms.clear();
  }

  /** Returns the live room, creating it if necessary; null when LIVE_ROOMS_MAX rooms are in memory, or the server stops. */
  #obtain({ namespace, id }: RoomAddress): LiveRoom | null {
    const key = keyOf(namespace.name, id);
    const known = this.#rooms.get(key);
    if (known !== undefined) return known;
    if (this.#rooms.size >= LIVE_ROOMS_MAX || this.#isStopping) return null;
    const room = new LiveRoom(namespace, id, {
      ...this.#deps,
      common: this.#common,
      onTimerLeft: (dueAt) => this.#wakes.expect(dueAt),
      onEmpty: (empty) => {
        if (this.#rooms.get(key) === empty) this.#rooms.delete(key);
      },
    });
    this.#rooms.set(key, room);
    return room;
  }

  #occupied(): ExpiringRoom[] {
    const now = this.#deps.clock.now();
    const occupied: ExpiringRoom[] = [];
    for (const { isOccupied, namespace, id } of this.#rooms.values()) {
      if (isOccupied)
        occupied.push({ namespace: namespace.name, id, expiresAt: expiryOf(namespace.limits, now, true) });
    }
    return occupied;
  }
}
