import { Immer } from "immer";
import type { AppAccess } from "../../config/app-access.ts";
import type { Player, Room } from "../../config/types.ts";
import type { Clock } from "../../kernel/clock.ts";
import type { JsonObject, JsonValue } from "../../kernel/json.ts";
import { jsonText, roomMessage } from "../connection/messages.ts";
import { MESSAGES_PER_HANDLER_MAX, METADATA_MAX_BYTES, STATE_CEILING_BYTES, TIMER_DELAY_MAX_MS } from "../limits.ts";
import type { RoomMeter } from "../pace/room-meter.ts";
import type { RoomState, StateChanges } from "../state/room-state.ts";
import { adoptState, isFlat, type StateKind, SYNCED, stateBytes, UNSYNCED } from "../state/state.ts";
import type { RoomNamespace, StoredTimer } from "../types.ts";

type Next = JsonObject | ((state: JsonObject) => JsonObject);

/** A message that goes out if the handler succeeds. */
export interface Outgoing {
  /** null: everybody but `except`. */
  to: string | null;
  except: readonly string[];
  text: string;
}

/** Everything that a handler asked for. */
export interface Staged extends StateChanges {
  messages: readonly Outgoing[];
  kicked: ReadonlySet<string>;
  /** null clears. */
  timers: ReadonlyMap<string, StoredTimer | null>;
  wantsSave: boolean;
}

interface HandlerRoomDeps {
  namespace: RoomNamespace;
  id: string;
  state: RoomState;
  /** Those in the room while this handler runs. */
  players: () => readonly Player[];
  clock: Clock;
  app: () => AppAccess;
  meter: RoomMeter;
  /** A handler that has ended still asks for something. */
  onLate: (what: string) => void;
}

/**
 * The `room` of one handler. It works on top of the room's state and changes nothing: what the handler asked for stands in
 * `staged` and counts only if the handler succeeds. After `end()` it is deaf, so that what a handler does later is lost.
 */
export class HandlerRoom implements Room {
  readonly #deps: HandlerRoomDeps;
  #hasEnded = false;
  #shared: JsonObject | null = null;
  #server: JsonObject | null = null;
  #metadata: JsonObject | null = null;
  readonly #players = new Map<string, JsonObject>();
  readonly #messages: Outgoing[] = [];
  readonly #kicked = new Set<string>();
  readonly #timers = new Map<string, StoredTimer | null>();
  #wantsSave = false;

  constructor(deps: HandlerRoomDeps) {
    this.#deps = deps;
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
    return this.#shared ?? this.#deps.state.shared;
  }

  setShared(next: Next): void {
    if (!this.#listens("setShared")) return;
    this.#shared = this.#follow(next, this.shared, SYNCED);
  }

  player(userId: string): JsonObject {
    return this.#players.get(userId) ?? this.#deps.state.player(userId);
  }

  setPlayer(userId: string, next: Next): void {
    if (!this.#listens("setPlayer")) return;
    if (typeof userId !== "string" || userId === "") throw new Error("setPlayer: a user id is required");
    this.#players.set(userId, this.#follow(next, this.player(userId), SYNCED));
  }

  players(): Player[] {
    return this.#deps.players().filter(({ userId }) => !this.#kicked.has(userId));
  }

  get server(): JsonObject {
    return this.#server ?? this.#deps.state.server;
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
    if (this.#listens("kick")) this.#kicked.add(userId);
  }

  get metadata(): JsonObject {
    return this.#metadata ?? this.#deps.state.metadata;
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
    // Handlers are the user's own code, which need not have been through a type checker.
    const given: unknown = ms;
    if (typeof given !== "number" || !(given >= 0 && given <= TIMER_DELAY_MAX_MS)) {
      throw new Error(`setTimer: ms must be a number from 0 to ${TIMER_DELAY_MAX_MS}, got ${String(given)}`);
    }
    // A copy by way of JSON: what the handler does to its object afterwards is not the timer's.
    this.#timers.set(name, { dueAt: clock.now() + Math.ceil(given), data: JSON.parse(jsonText(data)) });
  }

  clearTimer(name: string): void {
    if (this.#listens("clearTimer")) this.#timers.set(name, null);
  }

  save(): void {
    if (this.#listens("save")) this.#wantsSave = true;
  }

  /** Ends the handler's say. Errors: the state would be over its limit. */
  end(): Staged {
    this.#hasEnded = true;
    const staged: Staged = {
      shared: this.#shared,
      server: this.#server,
      metadata: this.#metadata,
      players: this.#players,
      messages: this.#messages,
      kicked: this.#kicked,
      timers: this.#timers,
      wantsSave: this.#wantsSave,
    };
    if (this.#shared !== null || this.#players.size > 0) {
      const { state, namespace } = this.#deps;
      // A state that an older config allowed may shrink step by step.
      const maxBytes = Math.max(namespace.limits.stateMaxBytes, state.bytes);
      limitBytes("The state of the room", state.bytesAfter(staged), maxBytes);
    }
    return staged;
  }

  /** Ends it without effect: the handler has failed. */
  abandon(): void {
    this.#hasEnded = true;
  }

  /** The state after `before`. Charged to the room also where the handler has awaited something. */
  #follow(next: Next, before: JsonObject, kind: StateKind): JsonObject {
    return this.#deps.meter.measure(() => adoptState(resolve(next, before, kind), kind, before));
  }

  #message(outgoing: Outgoing): void {
    if (!this.#listens("send")) return;
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

/** Freezing is for `adoptState`, which copies: what the handler puts into a draft stays its own. */
const immer = new Immer({ autoFreeze: false });

/** An updater may return another state, or change the one it gets, which is a draft. */
function resolve(next: Next, state: JsonObject, kind: StateKind): unknown {
  if (typeof next !== "function") return next;
  // A draft of immer takes a microsecond for each member that is read; a state without objects needs none.
  if (isFlat(state, kind)) {
    const copy = { ...state };
    const result: JsonObject | undefined = next(copy);
    return result === undefined ? copy : result;
  }
  const draft: JsonObject = immer.createDraft(state);
  const result: JsonObject | undefined = next(draft);
  // Without a return value the draft is what was meant.
  return result === undefined || result === draft ? immer.finishDraft(draft) : result;
}

function limitBytes(what: string, bytes: number, maxBytes: number): void {
  if (bytes > maxBytes) throw new Error(`${what} must be at most ${maxBytes} bytes of JSON, got ${bytes}`);
}
