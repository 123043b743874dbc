import type { Clock } from "../../../kernel/clock.ts";
import { notFound } from "../../../kernel/errors.ts";
import type { JsonObject } from "../../../kernel/json/json.ts";
import type { Logger } from "../../../kernel/logger.ts";
import { chain, type MaybePromise } from "../../../kernel/maybe-promise.ts";
import type { Lookups, LookupWatch } from "../../access/lookups/lookups.ts";
import type { AppAccess } from "../../config/app/index.ts";
import type { Auth, RoomsConfig } from "../../config/types.ts";
import { PendingPlaces } from "../../sockets/pending-places.ts";
import type { StandingRight } from "../../sockets/standing-rights.ts";
import type { StandingRights } from "../../sockets/standing-rights.ts";
import type { ExpiringRoom, RoomStore } from "./lifecycle/store.ts";
import { startSweep } from "./lifecycle/sweep.ts";
import { createWakeSchedule } from "./lifecycle/schedules.ts";
import { expiryOf, HANDLER_TIMEOUT_MS, LIVE_ROOMS_MAX, NEVER_EXPIRED, roomLimits } from "./limits.ts";
import type { LoopShare } from "./pace/loop-share.ts";
import { type Outcome, runBounded } from "./room/outcome.ts";
import { LiveRoom } from "./room/room.ts";
import { StateTexts } from "./state/steps.ts";
import type { JoinOutcome, PresentAuth, RoomConnection, RoomNamespace } from "./types.ts";

export interface RoomAddress {
  namespace: RoomNamespace;
  id: string;
}

export interface RoomsService {
  /** Errors: 404 for an undeclared namespace. */
  address(room: { namespace: string; id: string }): RoomAddress;
  /** Checks the join rule, and loads or creates the room. */
  join(address: RoomAddress, connection: RoomConnection): Promise<Joining>;
  /** The join rule alone. `watch` learns what it looks at. */
  mayJoin(address: RoomAddress, auth: Auth, watch: LookupWatch): MaybePromise<boolean>;
  /** The right of a join has its owner. Asks it again where data, or the user, changed meanwhile, and releases it. */
  follow(right: StandingRight): void;
  /** `{}` when none is set. */
  metadata(address: RoomAddress): JsonObject;
  /** Rooms that have a place in memory; hibernating rooms with connections are included. */
  readonly liveRooms: number;
  /** The same rooms, in order of their arrival. */
  all(): Iterable<LiveRoom>;
  /** null: it has no place in memory. */
  live(address: RoomAddress): LiveRoom | null;
  /** Those that are declared. */
  readonly namespaces: readonly string[];
  /** Starts nothing more; resolves when the running tasks of all rooms have ended. */
  quiesce(): Promise<void>;
  /** Call it after `quiesce`: saves every room. */
  stop(): Promise<void>;
}

/** `right`: of the join rule, asked about `auth`. Ended where the connection has not joined. */
export type Joining = { room: LiveRoom | null; outcome: JoinOutcome; right: StandingRight; auth: Auth };

export function createRoomsService(deps: {
  config: RoomsConfig;
  store: RoomStore;
  standing: StandingRights;
  presentAuth: PresentAuth;
  app: () => AppAccess;
  lookups: Lookups;
  clock: Clock;
  logger: Logger;
  share: LoopShare;
}): RoomsService {
  const { store, standing, clock } = deps;
  const namespaces = new Map<string, RoomNamespace>();
  for (const [name, config] of Object.entries(deps.config)) {
    const limits = roomLimits(config);
    const pending = new PendingPlaces(deps.clock, limits.pendingPerAddress);
    namespaces.set(name, { name, config, limits, pending });
  }
  const rooms = new Map<string, LiveRoom>();
  const common = { share: deps.share, texts: new StateTexts(), waiting: { chars: 0 } };
  // Neither a namespace nor an id has a slash: a key means one room.
  const keyOf = (namespace: string, id: string): string => `${namespace}/${id}`;

  const occupied = (): ExpiringRoom[] =>
    [...rooms.values()]
      .filter((room) => room.isOccupied)
      .map(({ namespace, id }) => ({
        namespace: namespace.name,
        id,
        expiresAt: expiryOf(namespace.limits, clock.now(), true),
      }));

  const wakes = createWakeSchedule({
    store,
    clock,
    namespaces: [...namespaces.keys()],
    isInMemory: ({ namespace, id }) => rooms.get(keyOf(namespace, id))?.isInMemory === true,
    wake({ namespace, id }) {
      const declared = namespaces.get(namespace);
      const room = declared === undefined ? null : obtain({ namespace: declared, id });
      room?.wake();
      return room !== null;
    },
    onFailure: (cause) => deps.logger.error("The rooms with due timers cannot be read", { cause }),
  });

  let isStopping = false;
  /** null: LIVE_ROOMS_MAX rooms are in memory, or the server stops. */
  const obtain = ({ namespace, id }: RoomAddress): LiveRoom | null => {
    const key = keyOf(namespace.name, id);
    const known = rooms.get(key);
    if (known !== undefined) return known;
    if (rooms.size >= LIVE_ROOMS_MAX || isStopping) return null;
    const room = new LiveRoom(namespace, id, {
      ...deps,
      common,
      onTimerLeft: wakes.expect,
      onEmpty: (empty) => {
        if (rooms.get(key) === empty) rooms.delete(key);
      },
    });
    rooms.set(key, room);
    return room;
  };

  const stopSweep = startSweep({ store, occupied, clock, logger: deps.logger });
  if (namespaces.size > 0) wakes.expect(clock.now());

  return {
    address({ namespace, id }) {
      const declared = namespaces.get(namespace);
      if (declared === undefined) throw notFound(`There is no room namespace "${namespace}"`);
      return { namespace: declared, id };
    },
    join: createJoin(deps, obtain),
    mayJoin: (address, auth, watch) => mayJoin(address, auth, { ...deps, watch }),
    follow(right) {
      if (!right.hasLooked && !right.isStale) right.end();
      else if (standing.settle(right) === null) right.release();
    },
    metadata({ namespace, id }) {
      const live = rooms.get(keyOf(namespace.name, id));
      const now = live?.isOccupied === true ? NEVER_EXPIRED : clock.now();
      return live?.metadata ?? store.metadata(namespace.name, id, now) ?? {};
    },
    get liveRooms() {
      return rooms.size;
    },
    all: () => rooms.values(),
    live: ({ namespace, id }) => rooms.get(keyOf(namespace.name, id)) ?? null,
    namespaces: [...namespaces.keys()],
    async quiesce() {
      isStopping = true;
      wakes.stop();
      await Promise.all([...rooms.values()].map((room) => room.quiesce()));
    },
    async stop() {
      await Promise.all([stopSweep(), ...[...rooms.values()].map((room) => room.stop())]);
      rooms.clear();
    },
  };
}

function createJoin(
  deps: Parameters<typeof createRoomsService>[0],
  obtain: (address: RoomAddress) => LiveRoom | null,
): RoomsService["join"] {
  const join: RoomsService["join"] = async (address, connection) => {
    const right = deps.standing.begin();
    const { auth } = connection.player();
    const denied = (message: string): Joining => {
      right.end();
      return { room: null, outcome: { kind: "denied", message }, right, auth };
    };
    const isAllowed = await mayJoin(address, auth, { ...deps, watch: right.watch });
    if (connection.player().auth !== auth) {
      // The answer is about who the user was.
      right.end();
      return join(address, connection);
    }
    if (!isAllowed) return denied("Access denied");
    const room = obtain(address);
    if (room === null) return denied("The server has too many rooms");
    const outcome = await room.join(connection);
    if (outcome.kind !== "joined") right.end();
    return { room, outcome, right, auth };
  };
  return join;
}

/** An absent rule, a rule that throws and a rule that takes too long deny. [RM12] */
function mayJoin(
  { namespace, id }: RoomAddress,
  auth: Auth,
  deps: { lookups: Lookups; watch: LookupWatch; clock: Clock; logger: Logger },
): MaybePromise<boolean> {
  const rule = namespace.config.access?.join;
  if (typeof rule !== "function") return rule === true;
  let outcome: Outcome<boolean> = { ok: true, value: false };
  const call = deps.lookups.begin({ for: "subscription", watch: deps.watch });
  const isTrue = () => chain(rule(auth, id, call.context(null)), (answer: unknown) => answer === true);
  const running = runBounded(deps.clock, HANDLER_TIMEOUT_MS, isTrue, (result) => {
    outcome = result;
  });
  return chain(running, () => read(outcome));

  function read(result: Outcome<boolean>): boolean {
    if (result.ok) return result.value;
    deps.logger.error("A join rule failed", { namespace: namespace.name, room: id, cause: result.cause });
    return false;
  }
}
