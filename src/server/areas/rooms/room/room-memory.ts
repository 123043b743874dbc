import type { Clock, Millis } from "../../../../kernel/clock.ts";
import { reasonOf } from "../../../../kernel/errors.ts";
import type { JsonObject } from "../../../../kernel/json/json.ts";
import type { Logger } from "../../../../kernel/logger.ts";
import { chain, isPromise, type MaybePromise } from "../../../../kernel/maybe-promise.ts";
import { DeadlineError, within } from "../../../../kernel/time/deadline.ts";
import type { TurnBudget } from "../../../../kernel/time/turn-budget.ts";
import type { AppAccess } from "../../../config/app/index.ts";
import type { Player, Room } from "../../../config/types.ts";
import { RoomTimers, SaveSchedule } from "../lifecycle/room-schedules.ts";
import type { RoomStore } from "../lifecycle/store.ts";
import { expiryOf, HANDLER_TIMEOUT_MS, NEVER_EXPIRED, SYNC_AT_ONCE_BYTES } from "../limits.ts";
import { type RoomSnapshot, RoomState } from "../state/room-state.ts";
import { UNSYNCED } from "../state/state.ts";
import { finishNow, restoreSteps, type StateTexts, savedChars, stateTextSteps } from "../state/steps.ts";
import type { PresentPlayer, RoomNamespace, SavedRoom } from "../types.ts";
import { Announcer } from "./announcer.ts";
import { HandlerRoom, type HandlerRoomDeps, type Staged } from "./handler-room.ts";
import { type AllWaitingChars, Mailbox } from "./mailbox.ts";
import type { Members } from "./members.ts";
import { RoomMeter } from "./room-meter.ts";

/** Dependencies of all rooms of a server. */
export interface RoomsCommon {
  turn: TurnBudget;
  texts: StateTexts;
  waiting: AllWaitingChars;
}

export interface RoomMemoryDeps {
  store: RoomStore;
  common: RoomsCommon;
  clock: Clock;
  logger: Logger;
  app: () => AppAccess;
  /** Called when the room has no players and has left memory. */
  onEmpty: () => void;
  /** Called when the room has left memory with a timer set. */
  onTimerLeft: (dueAt: Millis) => void;
}

interface RoomEvents {
  /** Called for each player who was in the room when it was saved. */
  onPresent(present: PresentPlayer): void;
  /** Fires a timer; false when the mailbox has no room for it. */
  onTimer(name: string, dueAt: Millis): boolean;
  onKick(userId: string): void;
}

type Task = (state: RoomState) => MaybePromise<void>;

interface PostOptions {
  /** Called instead of the task when the room cannot be loaded or created. */
  failed?: (cause: unknown) => void;
  /** Length of the message that the task handles. */
  chars?: number;
}

interface HandlerEnd<T> {
  /** A player who is not a member yet, and counts as one for the handler. */
  entering?: Player;
  /** Called when the handler has succeeded, before its messages are sent. */
  committing?: () => void;
  done?: (value: T) => void;
  failed: (cause: unknown) => void;
}

/**
 * State and lifetime of a room: it is loaded or created for the first task, saved, and removed from memory. Tasks run one after
 * another; handlers run on top of the state. `LiveRoom` knows the players and their rights.
 */
export class RoomMemory {
  readonly namespace: RoomNamespace;
  readonly id: string;
  readonly announcer: Announcer;
  readonly timers: RoomTimers;
  readonly saves: SaveSchedule;
  readonly #deps: RoomMemoryDeps;
  readonly #members: Members;
  readonly #events: RoomEvents;
  readonly #mailbox: Mailbox;
  readonly meter: RoomMeter;
  readonly #handlers: HandlerRoomDeps;
  #state: RoomState | null = null;
  #lastActiveAt: Millis = 0;
  #cancelIdle: (() => void) | null = null;
  #hasHibernated = false;
  #isStopping = false;

  constructor(namespace: RoomNamespace, id: string, members: Members, deps: RoomMemoryDeps, events: RoomEvents) {
    this.namespace = namespace;
    this.id = id;
    this.#members = members;
    this.#deps = deps;
    this.#events = events;
    const { common, clock } = deps;
    this.meter = new RoomMeter(common.turn);
    this.#mailbox = new Mailbox(this.meter, common.waiting, (cause) => this.log("task", cause));
    this.#handlers = {
      namespace,
      id,
      members,
      clock,
      app: deps.app,
      meter: this.meter,
      onLate: (what) => this.log(what, "was called by a handler that had ended; it has no effect"),
    };
    this.announcer = new Announcer({ members, clock, meter: this.meter, texts: common.texts });
    this.timers = new RoomTimers(deps.clock, events.onTimer);
    this.saves = new SaveSchedule({
      clock: deps.clock,
      intervalMs: namespace.limits.saveIntervalMs,
      save: () => this.#save(),
    });
  }

  get isStopping(): boolean {
    return this.#isStopping;
  }

  /** State of the room; null while it is not in memory. */
  get state(): RoomState | null {
    return this.#state;
  }

  /** Runs `task` in its turn. false: the mailbox is full, and neither the task nor `failed` runs. */
  post(task: Task, { failed, chars = 0 }: PostOptions = {}): boolean {
    return this.#take(() => {
      if (this.#state !== null) return task(this.#state);
      return chain(this.#obtain(), (state) => (state instanceof Error ? failed?.(state) : task(state)));
    }, chars);
  }

  #obtain(): MaybePromise<RoomState | Error> {
    return this.#state ?? chain(this.#wake(), (state) => state ?? this.#create());
  }

  /** Restores the room from the file, if it was saved. */
  wake(): void {
    this.#take(() => chain(this.#state ?? this.#wake(), () => {}));
  }

  #take(work: () => MaybePromise<void>, chars = 0): boolean {
    if (this.#isStopping) return false;
    return this.#mailbox.post(() => {
      if (this.#isStopping) return;
      this.#lastActiveAt = this.#deps.clock.now();
      const running = work();
      return isPromise(running) ? running.then(() => this.#settle()) : this.#settle();
    }, chars);
  }

  /** Runs a handler on top of the state. Its effects are applied when it succeeds. */
  run<T>(state: RoomState, handler: (room: Room) => MaybePromise<T>, end: HandlerEnd<T>): MaybePromise<void> {
    const { entering = null } = end;
    const room = new HandlerRoom(this.#handlers, state, entering);
    const failed = (cause: unknown): void => {
      room.abandon();
      end.failed(cause);
    };
    const succeeded = (value: T): void => {
      let staged: Staged;
      try {
        staged = room.end();
      } catch (cause) {
        failed(cause);
        return;
      }
      end.committing?.();
      this.#commit(state, staged);
      end.done?.(value);
      // Last: an action that kicks its own sender has been answered by then.
      for (const userId of staged.kicked) this.#events.onKick(userId);
    };
    let value: MaybePromise<T>;
    try {
      value = handler(room);
    } catch (cause) {
      return failed(cause);
    }
    if (!isPromise(value)) return this.meter.measure(() => succeeded(value));
    return within(this.#deps.clock, HANDLER_TIMEOUT_MS, value).then(
      (result) => this.meter.measure(() => succeeded(result)),
      (cause: unknown) => this.meter.measure(() => failed(inTime(cause))),
    );
  }

  /** Starts no further task; resolves when the running one has ended. */
  quiesce(): Promise<void> {
    this.#isStopping = true;
    this.#mailbox.clear();
    return this.#mailbox.whenIdle();
  }

  /** Saves the room, which does nothing afterwards. Call it after `quiesce`. */
  async stop(): Promise<void> {
    this.#rest();
    await this.saves.flush();
    this.saves.stop();
    this.#state = null;
  }

  log(what: string, cause: unknown): void {
    this.#deps.logger.error("room", { namespace: this.namespace.name, room: this.id, what, cause });
  }

  #commit(state: RoomState, staged: Staged): void {
    let isChanged = state.commit(staged);
    for (const [name, timer] of staged.timers) {
      isChanged = true;
      if (timer === null) state.timers.delete(name);
      else state.timers.set(name, timer);
    }
    if (staged.timers.size > 0) this.timers.arm(state);
    if (isChanged) this.saves.changed();
    this.announcer.schedule(state);
    for (const { to, except, text } of staged.messages) {
      for (const connection of this.#members.reached(to, except)) connection.send(text);
    }
    if (staged.wantsSave) void this.saves.flush();
  }

  /** Restores the state from the file; null when it was not saved; an error when it cannot be read. */
  #wake(): MaybePromise<RoomState | Error | null> {
    const failed = (cause: unknown): Error => {
      this.log("loading", cause);
      return new Error("The room cannot be loaded");
    };
    try {
      // A room with players does not expire.
      const now = this.#members.size > 0 ? NEVER_EXPIRED : this.#deps.clock.now();
      const saved = this.#deps.store.load(this.namespace.name, this.id, now);
      if (saved === null) return null;
      const steps = restoreSteps(saved);
      if (savedChars(saved) < SYNC_AT_ONCE_BYTES) return this.#entered(finishNow(steps), saved);
      return this.meter.run(steps).then((state) => this.#entered(state, saved), failed);
    } catch (cause) {
      return failed(cause);
    }
  }

  #entered(state: RoomState, saved: SavedRoom): RoomState {
    this.#state = state;
    this.#armIdle();
    // Only once: later on the players are known here, and one who was saved may have been kicked meanwhile.
    if (!this.#hasHibernated) for (const present of saved.present) this.#events.onPresent(present);
    this.#syncConnected(state);
    this.timers.arm(state);
    return state;
  }

  /** Sends a `sync` to connections that stayed open while the room was not in memory. [RM35] */
  #syncConnected(state: RoomState): void {
    for (const connection of this.#members.connections()) {
      connection.hold();
      this.announcer.requestSync(state, connection);
    }
  }

  /** Creates the room; an error when `onCreate` threw. */
  #create(): MaybePromise<RoomState | Error> {
    const state = new RoomState();
    this.#state = state;
    this.#armIdle();
    const { onCreate } = this.namespace.config;
    let created: RoomState | Error = state;
    if (onCreate === undefined) {
      this.#syncConnected(state);
      return created;
    }
    const running = this.run(state, (room) => onCreate(room), {
      done: () => this.#syncConnected(state),
      failed: (cause) => {
        this.log("onCreate", cause);
        this.#rest();
        this.#state = null;
        created = new Error(reasonOf(cause));
      },
    });
    return chain(running, () => created);
  }

  /** Hibernates a room without players. Called after each task. */
  #settle(): void {
    if (this.#members.size > 0 || this.#mailbox.hasWaiting) return;
    if (this.#state === null) this.#deps.onEmpty();
    else this.#mailbox.post(() => this.#hibernate());
  }

  #armIdle(): void {
    const { clock } = this.#deps;
    const { idleTimeoutMs } = this.namespace.limits;
    this.#cancelIdle?.();
    this.#cancelIdle = clock.after(idleTimeoutMs, () => this.#checkIdle());
  }

  #checkIdle(): void {
    const { clock } = this.#deps;
    const { idleTimeoutMs } = this.namespace.limits;
    const restMs = this.#lastActiveAt + idleTimeoutMs - clock.now();
    this.#cancelIdle = clock.after(restMs > 0 ? restMs : idleTimeoutMs, () => this.#checkIdle());
    if (restMs <= 0) this.#mailbox.post(() => this.#hibernate());
  }

  /** Saves the room and removes it from memory, unless something happens meanwhile. */
  #hibernate(): MaybePromise<void> {
    const state = this.#state;
    if (state === null || this.#isStopping || this.#mailbox.hasWaiting) return;
    const isEmpty = this.#members.size === 0;
    const idleMs = this.#deps.clock.now() - this.#lastActiveAt;
    // A kept place will soon be given up, which is an event of the room.
    if (!isEmpty && (idleMs < this.namespace.limits.idleTimeoutMs || this.#members.hasAbsent)) return;
    if (this.announcer.isMakingSync) return;
    const { onDestroy } = this.namespace.config;
    if (!isEmpty || onDestroy === undefined) return this.#leaveMemory(state);
    const destroyed = this.run(state, (room) => onDestroy(room), { failed: (cause) => this.log("onDestroy", cause) });
    return chain(destroyed, () => this.#leaveMemory(state));
  }

  async #leaveMemory(state: RoomState): Promise<void> {
    // Saved even without a change: its time to live starts anew.
    this.saves.changed();
    // A room that cannot be saved stays: the schedule and the next idle timeout try again.
    if (!(await this.saves.flush()) || this.#isStopping) return;
    this.#rest();
    this.#state = null;
    this.#hasHibernated = true;
    const timer = state.nextTimer();
    if (timer !== null) this.#deps.onTimerLeft(timer.dueAt);
    this.#settle();
  }

  /** Announces the latest changes, and cancels all timers. */
  #rest(): void {
    if (this.#state !== null) this.announcer.flush(this.#state);
    this.announcer.stop();
    this.timers.stop();
    this.saves.stop();
    this.#cancelIdle?.();
    this.#cancelIdle = null;
  }

  async #save(): Promise<boolean> {
    const state = this.#state;
    if (state === null) return true;
    const savedAt = this.#deps.clock.now();
    const expiresAt = expiryOf(this.namespace.limits, savedAt, this.#members.size > 0);
    const [snapshot, present] = [state.snapshot(), this.#members.present()];
    try {
      const texts = await this.#texts(snapshot);
      await this.#deps.store.save({
        namespace: this.namespace.name,
        id: this.id,
        ...texts,
        sharedVersion: snapshot.sharedVersion,
        metadata: snapshot.metadata,
        timers: Object.fromEntries(snapshot.timers),
        present,
        savedAt,
        expiresAt,
      });
      return true;
    } catch (cause) {
      this.log("saving", cause);
      return false;
    }
  }

  /** Returns the JSON of the states; large ones are serialised in slices. */
  async #texts({ shared, server, players }: RoomSnapshot): Promise<Pick<SavedRoom, "shared" | "server" | "players">> {
    const synced = new Set([shared, ...players.map(({ state }) => state)]);
    const texts = await this.#deps.common.texts.of(synced, this.meter);
    const ofPlayers = players.map(({ userId, state, version }) => {
      return `${JSON.stringify(userId)}:{"state":${texts.get(state) ?? "{}"},"version":${version}}`;
    });
    return {
      shared: texts.get(shared) ?? "{}",
      server: await this.meter.run(stateTextSteps(server, UNSYNCED)),
      players: `{${ofPlayers.join()}}`,
    };
  }

  /** Metadata of the room; null while it is not in memory. */
  get metadata(): JsonObject | null {
    return this.#state?.metadata ?? null;
  }
}

/** Returns the cause, with a message for players when it is a timeout. */
const inTime = (cause: unknown): unknown =>
  cause instanceof DeadlineError ? new Error(`The handler took longer than ${HANDLER_TIMEOUT_MS} ms`) : cause;
