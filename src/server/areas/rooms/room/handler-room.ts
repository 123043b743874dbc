import { Immer } from "immer";
import type { Clock } from "../../../../kernel/clock.ts";
import type { JsonObject, JsonValue } from "../../../../kernel/json/json.ts";
import type { AppAccess } from "../../../config/app/index.ts";
import type { Player, Room } from "../../../config/types.ts";
import { METADATA_MAX_BYTES, STATE_CEILING_BYTES, TIMER_DELAY_MAX_MS } from "../limits.ts";
import { jsonText, roomMessage } from "../messages.ts";
import type { RoomState, StateChanges } from "../state/room-state.ts";
import { adoptState, isFlat, type StateKind, SYNCED, stateBytes, UNSYNCED } from "../state/state.ts";
import type { RoomNamespace, StoredTimer } from "../types.ts";
import type { Members } from "./members.ts";
import type { RoomMeter } from "./room-meter.ts";

/** Messages that one handler may send. */
const MESSAGES_PER_HANDLER_MAX = 1_000;

type Next = JsonObject | ((state: JsonObject) => JsonObject);

/** A message that is sent if the handler succeeds. */
export interface Outgoing {
  /** User who gets the message; null for all users but those in `except`. */
  to: string | null;
  except: readonly string[];
  text: string;
}

/** All effects of a handler. */
export interface Staged extends StateChanges {
  messages: readonly Outgoing[];
  kicked: ReadonlySet<string>;
  /** Timers by name; null clears one. */
  timers: ReadonlyMap<string, StoredTimer | null>;
  wantsSave: boolean;
}

const NO_PLAYERS: Staged["players"] = new Map();
const NO_MESSAGES: Staged["messages"] = [];
const NO_KICKED: Staged["kicked"] = new Set();
const NO_TIMERS: Staged["timers"] = new Map();

/** Dependencies of all handlers of a room. */
export interface HandlerRoomDeps {
  namespace: RoomNamespace;
  id: string;
  members: Pick<Members, "players">;
  clock: Clock;
  app: () => AppAccess;
  meter: RoomMeter;
  /** Called when a handler that has ended calls a method; `what` is the method's name. */
  onLate: (what: string) => void;
}

/**
 * The `room` of one handler. Records the handler's effects on top of the room's state, which is applied only when the handler
 * succeeds. After `end()`, calls have no effect.
 */
export class HandlerRoom implements Room {
  readonly #deps: HandlerRoomDeps;
  readonly #state: RoomState;
  readonly #entering: Player | null;
  #hasEnded = false;
  #shared: JsonObject | null = null;
  #server: JsonObject | null = null;
  #metadata: JsonObject | null = null;
  // Created with the first player state: most handlers change the shared state only.
  #players: Map<string, JsonObject> | null = null;
  #messages: Outgoing[] | null = null;
  #kicked: Set<string> | null = null;
  #timers: Map<string, StoredTimer | null> | null = null;
  #wantsSave = false;

  /** `entering`: a player who is not a member yet, and counts as one for this handler. */
  constructor(deps: HandlerRoomDeps, state: RoomState, entering: Player | null) {
    this.#deps = deps;
    this.#state = state;
    this.#entering = entering;
  }

  get namespace(): string {
    return this.#deps.namespace.name;
  }

  get id(): string {
    return this.#deps.id;
  }

  get app(): AppAccess {
    return this.#deps.app();
  }

  get shared(): JsonObject {
    return this.#shared ?? this.#state.shared;
  }

  setShared(next: Next): void {
    if (!this.#listens("setShared")) return;
    this.#shared = this.#follow(next, this.shared, SYNCED);
  }

  player(userId: string): JsonObject {
    return this.#players?.get(userId) ?? this.#state.player(userId);
  }

  setPlayer(userId: string, next: Next): void {
    if (!this.#listens("setPlayer")) return;
    if (typeof userId !== "string" || userId === "") throw new Error("setPlayer: a user id is required");
    const state = this.#follow(next, this.player(userId), SYNCED);
    this.#players ??= new Map();
    this.#players.set(userId, state);
  }

  players(): Player[] {
    const players = this.#deps.members.players();
    if (this.#entering !== null) players.push(this.#entering);
    return this.#kicked === null ? players : players.filter(({ userId }) => this.#kicked?.has(userId) !== true);
  }

  get server(): JsonObject {
    return this.#server ?? this.#state.server;
  }

  setServer(next: Next): void {
    if (!this.#listens("setServer")) return;
    const state = this.#follow(next, this.server, UNSYNCED);
    limitBytes("The server state", stateBytes(state, UNSYNCED), STATE_CEILING_BYTES);
    this.#server = state;
  }

  send(messageType: string, data: JsonValue, options: { except?: readonly string[] } = {}): void {
    this.#message({ to: null, except: options.except ?? [], text: roomMessage(messageType, data) });
  }

  sendTo(userId: string, messageType: string, data: JsonValue): void {
    this.#message({ to: userId, except: [], text: roomMessage(messageType, data) });
  }

  kick(userId: string): void {
    if (!this.#listens("kick")) return;
    this.#kicked ??= new Set();
    this.#kicked.add(userId);
  }

  get metadata(): JsonObject {
    return this.#metadata ?? this.#state.metadata;
  }

  setMetadata(metadata: JsonObject): void {
    if (!this.#listens("setMetadata")) return;
    const adopted = adoptState(metadata, UNSYNCED);
    limitBytes("The metadata", stateBytes(adopted, UNSYNCED), METADATA_MAX_BYTES);
    this.#metadata = adopted;
  }

  setTimer(name: string, ms: number, data?: JsonValue): void {
    if (!this.#listens("setTimer")) return;
    const { namespace, clock } = this.#deps;
    if (!Object.hasOwn(namespace.config.timers ?? {}, name)) {
      throw new Error(`setTimer: rooms.${namespace.name}.timers has no "${name}"`);
    }
    // Handlers may be JavaScript, which no type checker has seen.
    const given: unknown = ms;
    if (typeof given !== "number" || !(given >= 0 && given <= TIMER_DELAY_MAX_MS)) {
      throw new Error(`setTimer: ms must be a number from 0 to ${TIMER_DELAY_MAX_MS}, got ${String(given)}`);
    }
    // A copy: later changes of the handler to its object must not change the timer.
    this.#setTimer(name, { dueAt: clock.now() + Math.ceil(given), data: JSON.parse(jsonText(data)) });
  }

  clearTimer(name: string): void {
    if (this.#listens("clearTimer")) this.#setTimer(name, null);
  }

  save(): void {
    if (this.#listens("save")) this.#wantsSave = true;
  }

  /** Ends the handler and returns its effects. Errors: the state exceeds its limit. */
  end(): Staged {
    this.#hasEnded = true;
    const staged: Staged = {
      shared: this.#shared,
      server: this.#server,
      metadata: this.#metadata,
      players: this.#players ?? NO_PLAYERS,
      messages: this.#messages ?? NO_MESSAGES,
      kicked: this.#kicked ?? NO_KICKED,
      timers: this.#timers ?? NO_TIMERS,
      wantsSave: this.#wantsSave,
    };
    if (this.#shared !== null || this.#players !== null) {
      const { namespace } = this.#deps;
      // A state that an earlier config allowed may shrink step by step.
      const maxBytes = Math.max(namespace.limits.stateMaxBytes, this.#state.bytes);
      limitBytes("The state of the room", this.#state.bytesAfter(staged), maxBytes);
    }
    return staged;
  }

  /** Ends the handler without effects. */
  abandon(): void {
    this.#hasEnded = true;
  }

  /** Returns the state after `before`. The time is charged to the room, even after the handler has awaited something. */
  #follow(next: Next, before: JsonObject, kind: StateKind): JsonObject {
    return this.#deps.meter.measure(() => adoptState(resolve(next, before, kind), kind, before));
  }

  #setTimer(name: string, timer: StoredTimer | null): void {
    this.#timers ??= new Map();
    this.#timers.set(name, timer);
  }

  #message(outgoing: Outgoing): void {
    if (!this.#listens("send")) return;
    this.#messages ??= [];
    if (this.#messages.length >= MESSAGES_PER_HANDLER_MAX) {
      throw new Error(`A handler sends at most ${MESSAGES_PER_HANDLER_MAX} messages`);
    }
    this.#messages.push(outgoing);
  }

  #listens(what: string): boolean {
    if (this.#hasEnded) this.#deps.onLate(what);
    return !this.#hasEnded;
  }
}

/** Does not freeze: objects that a handler puts into a draft stay its own, and `adoptState` copies and freezes. */
const immer = new Immer({ autoFreeze: false });

/** Returns the state that a handler sets: an updater returns a new one, or changes its draft. */
function resolve(next: Next, state: JsonObject, kind: StateKind): unknown {
  if (typeof next !== "function") return next;
  // Reading a member of an immer draft takes a microsecond. A state without objects needs only a copy.
  if (isFlat(state, kind)) {
    const copy = { ...state };
    const result: JsonObject | undefined = next(copy);
    return result === undefined ? copy : result;
  }
  const draft: JsonObject = immer.createDraft(state);
  const result: JsonObject | undefined = next(draft);
  // Without a return value, the draft is the state.
  return result === undefined || result === draft ? immer.finishDraft(draft) : result;
}

function limitBytes(what: string, bytes: number, maxBytes: number): void {
  if (bytes > maxBytes) throw new Error(`${what} must be at most ${maxBytes} bytes of JSON, got ${bytes}`);
}
