import type { Clock } from "../../../../kernel/clock.ts";
import { Refusal, reasonOf } from "../../../../kernel/errors.ts";
import { plainCopy } from "../../../../kernel/json/copy.ts";
import type { JsonObject, JsonValue } from "../../../../kernel/json/json.ts";
import { chain, isPromise, type MaybePromise } from "../../../../kernel/maybe-promise.ts";
import type { Lookups } from "../../../access/lookups/lookups.ts";
import type { LeaveReason, Player, Room } from "../../../config/types.ts";
import { CLOSE } from "../../../sockets/limits.ts";
import { actionError, actionResult, CLOSE_KICKED, isCleanClose, jsonText, KICKED } from "../messages.ts";
import type { RoomState } from "../state/room-state.ts";
import type { JoinOutcome, Member, PresentAuth, RoomConnection, RoomNamespace } from "../types.ts";
import { Members } from "./members.ts";
import { PlayerList } from "./player-list.ts";
import { RoomMemory, type RoomMemoryDeps } from "./room-memory.ts";

export interface RoomDeps extends Omit<RoomMemoryDeps, "onEmpty"> {
  onEmpty: (room: LiveRoom) => void;
  presentAuth: PresentAuth;
  /** Lookups for the context of the action rule. */
  lookups: Lookups;
}

interface Action {
  type: string;
  payload: JsonValue;
  requestId: string;
  /** Length of the message. */
  chars: number;
}

const BUSY = "The room is busy";
const LEFT = "No longer in the room";

/** A room from the view of its connections: players, joins, leaves and actions. Rules: SPEC.md. */
export class LiveRoom {
  readonly namespace: RoomNamespace;
  readonly id: string;
  readonly #clock: Clock;
  readonly #lookups: Lookups;
  readonly #members: Members;
  readonly #memory: RoomMemory;
  readonly #list: PlayerList;

  constructor(namespace: RoomNamespace, id: string, deps: RoomDeps) {
    this.namespace = namespace;
    this.id = id;
    this.#clock = deps.clock;
    this.#lookups = deps.lookups;
    this.#members = new Members(deps.presentAuth);
    const memoryDeps = { ...deps, onEmpty: () => deps.onEmpty(this) };
    this.#memory = new RoomMemory(namespace, id, this.#members, memoryDeps, {
      onPresent: (present) => {
        if (this.#members.get(present.player.userId) === undefined) this.#keepPlace(this.#members.add(present));
      },
      onTimer: (name, dueAt) => this.#fireTimer(name, dueAt),
      onKick: (userId) => this.#kick(userId),
    });
    this.#list = new PlayerList({ members: this.#members, clock: deps.clock, meter: this.#memory.meter });
  }

  get isInMemory(): boolean {
    return this.#memory.state !== null;
  }

  /** State of the room; null while it hibernates. */
  get state(): RoomState | null {
    return this.#memory.state;
  }

  get playerCount(): number {
    return this.#members.size;
  }

  members(): Iterable<Member> {
    return this.#members.all();
  }

  /** Whether the room has a player, connected or with a kept place. */
  get isOccupied(): boolean {
    return this.#members.size > 0;
  }

  /** Metadata of the room; null while it hibernates. */
  get metadata(): JsonObject | null {
    return this.#memory.metadata;
  }

  /** Joins a connection that the join rule has allowed. Resolves when it has joined or was refused. */
  join(connection: RoomConnection): Promise<JoinOutcome> {
    return new Promise((resolve) => {
      const deny = (cause: unknown): void => resolve({ kind: "denied", message: reasonOf(cause) });
      const wasPosted = this.#memory.post((state) => this.#admit(state, connection, resolve), { failed: deny });
      if (!wasPosted) deny(BUSY);
    });
  }

  /** Answers a second `join` of a connection with another `sync`. */
  resync(connection: RoomConnection): void {
    this.#memory.post((state) => {
      if (this.#memberOf(connection) === null) return;
      connection.hold();
      this.#memory.announcer.requestSync(state, connection);
      this.#listTo(connection);
    });
  }

  /** Schedules a list of players. Call it when the role or another fact of a player may have changed. */
  userChanged(): void {
    this.#list.changed();
  }

  act(connection: RoomConnection, action: Action): void {
    const fail = (cause: unknown): void => connection.send(actionError(action.requestId, reasonOf(cause)));
    const work = (state: RoomState): MaybePromise<void> => {
      // An ended session may not act, and its connection receives no answer.
      if (connection.closeCode === CLOSE.sessionEnded) return;
      if (this.#members.get(connection.userId) === undefined) return fail(LEFT);
      // Serialised before the effects are applied: a result without JSON is an error like any other.
      return this.#memory.run(state, (room) => chain(this.#runAction(room, connection, action), jsonText), {
        done: (text) => connection.send(actionResult(action.requestId, text)),
        failed: (cause) => {
          this.#logBug(`action ${action.type}`, cause);
          fail(cause);
        },
      });
    };
    const wasPosted = this.#memory.post(work, { failed: fail, chars: action.chars });
    if (!wasPosted) fail(BUSY);
  }

  /** Handles the end of a connection, for whatever reason. */
  connectionClosed(connection: RoomConnection, code: number): void {
    const member = this.#memberOf(connection);
    if (member === null || this.#memory.isStopping) return;
    member.player = connection.player();
    member.sessionId = connection.sessionId;
    this.#forget(member, connection);
    if (member.connections.size > 0) return;
    if (isCleanClose(code)) this.#postLeave(member, "leave");
    else this.#keepPlace(member);
  }

  /** Removes a connection that has lost its right to the room. Its player leaves with the last one. */
  expel(connection: RoomConnection): void {
    const member = this.#memberOf(connection);
    if (member === null) return;
    member.player = connection.player();
    this.#forget(member, connection);
    if (member.connections.size > 0) return;
    this.#members.remove(member);
    this.#postKicked(member);
  }

  /** Kicks a player for an administrator, connected or with a kept place. false: there is no such player. */
  kick(userId: string): boolean {
    if (this.#memory.isStopping || this.#members.get(userId) === undefined) return false;
    this.#kick(userId);
    return true;
  }

  /** Restores the room for its timers. */
  wake(): void {
    this.#memory.wake();
  }

  /** Finishes the running task and starts no other. From then on, players whose connections close keep their places. */
  quiesce(): Promise<void> {
    for (const member of this.#members.all()) member.cancelGrace?.();
    return this.#memory.quiesce();
  }

  /** Saves the room with its players. Call it after `quiesce`. */
  stop(): Promise<void> {
    this.#list.stop();
    return this.#memory.stop();
  }

  #admit(state: RoomState, connection: RoomConnection, resolve: (outcome: JoinOutcome) => void): MaybePromise<void> {
    const { config, limits } = this.namespace;
    if (connection.closeCode !== null) return resolve({ kind: "denied", message: "The connection has closed" });
    const greet = (): void => {
      this.#memory.announcer.requestSync(state, connection);
      this.#listTo(connection);
      resolve({ kind: "joined" });
      // The connection may have closed while onJoin ran, before the room knew it.
      if (connection.closeCode !== null) this.connectionClosed(connection, connection.closeCode);
    };
    const present = this.#members.get(connection.userId);
    if (present !== undefined) {
      this.#seat(present, connection);
      return greet();
    }
    if (this.#members.size >= limits.maxPlayers) return resolve({ kind: "full", maxPlayers: limits.maxPlayers });
    const player = connection.player();
    return this.#memory.run(state, (room) => config.onJoin?.(room, player), {
      entering: player,
      // A member before the messages of onJoin are sent; its `sync` has the changes of onJoin.
      committing: () => this.#seat(this.#members.add({ player, sessionId: connection.sessionId }), connection),
      done: () => {
        this.#memory.saves.changed();
        greet();
      },
      failed: (cause) => {
        this.#logBug("onJoin", cause);
        resolve({ kind: "denied", message: reasonOf(cause) });
      },
    });
  }

  #seat(member: Member, connection: RoomConnection): void {
    member.cancelGrace?.();
    member.cancelGrace = null;
    member.connections.add(connection);
    connection.hold();
    this.#list.changed();
  }

  /** Sends the list of players behind the `sync`, for which the connection is held. */
  #listTo(connection: RoomConnection): void {
    if (connection.wantsPlayers) this.#list.add(connection);
    else this.#list.forget(connection);
  }

  /** Returns the member of a connection; null when it is not in the room. */
  #memberOf(connection: RoomConnection): Member | null {
    const member = this.#members.get(connection.userId);
    return member?.connections.has(connection) === true ? member : null;
  }

  #forget(member: Member, connection: RoomConnection): void {
    member.connections.delete(connection);
    this.#list.forget(connection);
    this.#list.changed();
    this.#memory.announcer.forget(connection);
  }

  #keepPlace(member: Member): void {
    member.cancelGrace?.();
    member.cancelGrace = this.#clock.after(this.namespace.limits.reconnectTimeoutMs, () => {
      this.#postLeave(member, "disconnect");
    });
  }

  #postLeave(member: Member, reason: LeaveReason): void {
    const wasPosted = this.#memory.post((state) => {
      const isBack = member.connections.size > 0;
      if (!isBack && this.#members.remove(member)) return this.#left(state, member, reason);
    });
    // The mailbox is full: the player leaves later.
    if (!wasPosted && !this.#memory.isStopping) this.#keepPlace(member);
  }

  #left(state: RoomState, member: Member, reason: LeaveReason): MaybePromise<void> {
    this.#list.changed();
    this.#memory.saves.changed();
    const { onLeave } = this.namespace.config;
    if (onLeave === undefined) return;
    return this.#memory.run(state, (room) => onLeave(room, this.#members.playerOf(member), reason), {
      failed: (cause) => this.#memory.log("onLeave", cause),
    });
  }

  #kick(userId: string): void {
    const member = this.#members.get(userId);
    if (member === undefined) return;
    this.#members.remove(member);
    for (const connection of member.connections) {
      this.#memory.announcer.forget(connection);
      this.#list.forget(connection);
      connection.end(CLOSE_KICKED, "Kicked", KICKED);
    }
    member.connections.clear();
    this.#postKicked(member);
  }

  #postKicked(member: Member): void {
    const wasPosted = this.#memory.post((state) => this.#left(state, member, "kicked"));
    if (!wasPosted && !this.#memory.isStopping) this.#memory.log("onLeave", BUSY);
  }

  #runAction(room: Room, connection: RoomConnection, action: Action): MaybePromise<unknown> {
    const handler = this.namespace.config.actions?.[action.type];
    // Read when the action starts: a role that was set while it waited counts.
    const player = connection.player();
    if (this.namespace.config.access?.action === undefined) return handler?.(room, player, action.payload);
    return chain(this.#mayAct(player, action), (isAllowed) => {
      if (!isAllowed) throw new Error("Access denied");
      // The player may have left while the rule was awaited. [RM223]
      const isPresent = this.#members.get(connection.userId) !== undefined;
      if (!isPresent || connection.closeCode === CLOSE.sessionEnded) throw new Error(LEFT);
      if (connection.player().auth !== player.auth) return this.#runAction(room, connection, action);
      return handler?.(room, player, action.payload);
    });
  }

  /** Evaluates the action rule. One that throws denies; a `Refusal` provides the message. [RM23] */
  #mayAct(player: Player, { type, payload }: Action): MaybePromise<boolean> {
    const deny = (cause: unknown): boolean => {
      if (cause instanceof Refusal) throw cause;
      this.#memory.log(`access.action of ${type}`, cause);
      return false;
    };
    const rule = this.namespace.config.access?.action;
    try {
      // Evaluated for each action, as a subscription's rule is for each change: too many lookups deny.
      const context = this.#lookups.begin({ for: "subscription" }).context(null);
      const answer: MaybePromise<unknown> = rule?.(player.auth, this.id, type, plainCopy(payload), context);
      return isPromise(answer) ? answer.then((said) => said === true, deny) : answer === true;
    } catch (cause) {
      return deny(cause);
    }
  }

  #fireTimer(name: string, dueAt: number): boolean {
    const handler = this.namespace.config.timers?.[name];
    return this.#memory.post((state) => {
      this.#memory.timers.taken(name, dueAt);
      const timer = state.timers.get(name);
      // The timer was cleared or set anew while the task waited.
      if (timer?.dueAt !== dueAt) return;
      state.timers.delete(name);
      this.#memory.saves.changed();
      if (handler === undefined) return this.#memory.log(`timer ${name}`, "is no longer declared");
      return this.#memory.run(state, (room) => handler(room, timer.data), {
        failed: (cause) => this.#memory.log(`timer ${name}`, cause),
      });
    });
  }

  /** Logs programming errors. Other errors of an action or onJoin are refusals. */
  #logBug(what: string, cause: unknown): void {
    const isBug = cause instanceof TypeError || cause instanceof ReferenceError || cause instanceof RangeError;
    if (isBug) this.#memory.log(what, cause);
  }
}
