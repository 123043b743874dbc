import type { Player } from "../../config/types.ts";
import { SLICED_LENGTH_MIN } from "../../http/limits.ts";
import type { Clock } from "../../kernel/clock.ts";
import { AppError, unreachable } from "../../kernel/errors.ts";
import { describeFault, isJsonObject, type JsonObject, type JsonValue } from "../../kernel/json.ts";
import { jsonTextFault } from "../../kernel/json-text.ts";
import type { Logger } from "../../kernel/logger.ts";
import { isPromise, type MaybePromise } from "../../kernel/maybe-promise.ts";
import type { Turns } from "../../kernel/turns.ts";
import { LONG_MESSAGE_MIN_CHARS } from "../../sockets/limits.ts";
import { isPing, parseMessage } from "../../sockets/messages/message-text.ts";
import type { MessageTurns, Source } from "../../sockets/messages/message-turns.ts";
import { TokenBucket } from "../../sockets/messages/token-bucket.ts";
import type { Socket, SocketHandler, SocketServer } from "../../sockets/server/socket-server.ts";
import { CHARS_PER_SECOND_MAX, MESSAGE_VALUES_MAX, UNAUTHENTICATED_MESSAGE_MAX_CHARS } from "../limits.ts";
import type { LoopShare } from "../pace/loop-share.ts";
import type { LiveRoom } from "../room/room.ts";
import type { RoomAddress, RoomsService } from "../service.ts";
import type { RoomConnection } from "../types.ts";
import { type ActionMessage, countValues, type MessageFault, parseClientMessage } from "./client-messages.ts";
import { CLOSE_GOING_AWAY, CLOSE_PROTOCOL, CLOSE_SESSION_REVOKED, CLOSE_TRY_LATER } from "./close-codes.ts";
import type { Connections, UserPrincipal } from "./connections.ts";
import { createMessageRate, type MessageRate } from "./message-rate.ts";
import { authRefreshed, authSuccess, errorMessage, PONG, type RoomErrorCode } from "./messages.ts";
import { Outbox } from "./outbox.ts";
import type { SyncTurns } from "./sync-turns.ts";

interface RoomSocketDeps {
  address: RoomAddress;
  id: string;
  service: RoomsService;
  connections: Connections;
  sockets: Pick<SocketServer, "waitingBytes" | "drop">;
  share: LoopShare;
  syncs: SyncTurns;
  turns: MessageTurns;
  /** Long messages are parsed in its steps. */
  slices: Turns;
  /** The client's network. */
  client: string;
  clock: Clock;
  logger: Logger;
}

type Stage =
  | { kind: "pending"; cancelTimeout: () => void }
  | { kind: "authenticated"; principal: UserPrincipal }
  | { kind: "joined"; principal: UserPrincipal; room: LiveRoom };

const TOO_MANY = "Too many messages; this one is dropped";
const JOIN_FIRST = "join must come first";
const NO_MEMBERS: JsonObject = {};

/** One WebSocket and its protocol. Spec: States / Room connection, Events; decisions 9. */
export class RoomSocket implements SocketHandler, RoomConnection, Source {
  readonly id: string;
  readonly client: string;
  closeCode: number | null = null;
  readonly #deps: RoomSocketDeps;
  readonly #rate: MessageRate;
  readonly #charRate: TokenBucket;
  #socket: Socket | null = null;
  #stage: Stage;
  readonly #outbox: Outbox;
  #player: Player | null = null;
  #isDeaf = false;

  constructor(deps: RoomSocketDeps) {
    const { namespace } = deps.address;
    this.id = deps.id;
    this.client = deps.client;
    this.#deps = deps;
    this.#rate = createMessageRate(namespace.limits.messagesPerSecond, deps.clock);
    const charLimits = { perSecond: CHARS_PER_SECOND_MAX, atOnce: namespace.limits.messageMaxChars };
    this.#charRate = new TokenBucket(charLimits, deps.clock.now());
    const cancelTimeout = deps.clock.after(namespace.limits.authTimeoutMs, () => {
      this.#fail("AUTH_TIMEOUT", `No auth message within ${namespace.limits.authTimeoutMs} ms`);
    });
    this.#stage = { kind: "pending", cancelTimeout };
    this.#outbox = new Outbox({
      share: deps.share,
      syncs: deps.syncs,
      charsMax: namespace.limits.backlogMaxBytes,
      write: (text) => this.#write(text),
      onFull: () => this.tooSlow(),
    });
  }

  // The socket's events

  open(socket: Socket): void {
    this.#socket = socket;
    if (this.closeCode !== null) socket.close(this.closeCode);
  }

  message(_socket: Socket, raw: string | Buffer): void {
    if (this.closeCode !== null || this.#isDeaf) return;
    const charsMax =
      this.#stage.kind === "pending"
        ? UNAUTHENTICATED_MESSAGE_MAX_CHARS
        : this.#deps.address.namespace.limits.messageMaxChars;
    if (raw.length > charsMax) {
      this.#refuseLong(charsMax);
      return;
    }
    if (!this.#charRate.take(raw.length, this.#deps.clock.now())) {
      this.#error("RATE_LIMITED", "Too many long messages; this one is dropped");
      return;
    }
    const text = typeof raw === "string" ? raw : raw.toString();
    const isAdmitted = this.#rate.admit();
    if (isAdmitted && text.length < LONG_MESSAGE_MIN_CHARS && isPing(text)) {
      // It says that the connection lives, and so does not wait for what is under way on it.
      this.send(PONG);
      return;
    }
    if (!this.#deps.turns.take(this, text.length, () => this.#read(text, isAdmitted))) {
      this.#error("RATE_LIMITED", "Too many messages wait; this one is dropped");
    }
  }

  drain(socket: Socket): void {
    if (this.#deps.sockets.waitingBytes(socket) === 0) this.#outbox.drained();
  }

  close(_socket: Socket, code: number): void {
    const room = this.#stage.kind === "joined" ? this.#stage.room : null;
    if (this.#stage.kind === "pending") this.#stage.cancelTimeout();
    this.closeCode ??= code;
    this.#socket = null;
    this.#outbox.clear();
    this.#deps.turns.drop(this);
    this.#deps.connections.remove(this);
    room?.connectionClosed(this, code);
  }

  // For the room

  /** Only after `auth`; before it, the empty text. */
  get userId(): string {
    return this.#stage.kind === "pending" ? "" : this.#stage.principal.auth.id;
  }

  get sessionId(): string {
    return this.#stage.kind === "pending" ? "" : this.#stage.principal.sessionId;
  }

  player(): Player {
    if (this.#stage.kind === "pending") throw new Error("a connection without a user has no player");
    // A role set by an administrator counts at once. Decisions 6.
    const present = this.#deps.connections.present(this.#stage.principal);
    if (present !== null && present !== this.#stage.principal) {
      this.#stage.principal = present;
      this.#player = null;
    }
    const { auth } = this.#stage.principal;
    this.#player ??= Object.freeze({ userId: auth.id, connectionId: this.id, role: auth.role, auth });
    return this.#player;
  }

  send(text: string): void {
    if (this.#socket !== null && this.closeCode === null) this.#outbox.send(text);
  }

  sendDelta(text: string): void {
    if (this.#socket !== null && this.closeCode === null) this.#outbox.send(text, "delta");
  }

  tooSlow(): void {
    this.end(CLOSE_TRY_LATER, "Too slow");
  }

  hold(): void {
    if (this.closeCode === null) this.#outbox.hold();
  }

  release(syncText: string): void {
    if (this.#socket !== null && this.closeCode === null) this.#outbox.release(syncText);
  }

  end(code: number, reason: string, text?: string): void {
    if (this.closeCode !== null) return;
    if (code === CLOSE_TRY_LATER) this.#outbox.clear();
    else this.#outbox.finish();
    if (text !== undefined) this.#write(text);
    if (this.#stage.kind === "pending") this.#stage.cancelTimeout();
    this.closeCode = code;
    if (this.#socket === null) return;
    if (code === CLOSE_TRY_LATER) this.#deps.sockets.drop(this.#socket);
    else this.#socket.close(code, reason);
  }

  /** Gives the bytes that wait for the client to read. */
  #write(text: string): number {
    if (this.#socket === null || this.closeCode !== null) return 0;
    // -1: it waits for the client to read; 0: it was dropped, and what follows would not fit what the client knows.
    const sent = this.#socket.send(text);
    if (sent > 0) return 0;
    const waitingBytes = this.#deps.sockets.waitingBytes(this.#socket);
    const { backlogMaxBytes } = this.#deps.address.namespace.limits;
    if (sent === 0 || waitingBytes + this.#outbox.chars > backlogMaxBytes) this.tooSlow();
    return waitingBytes;
  }

  // For the connections

  revoke(): void {
    this.end(CLOSE_SESSION_REVOKED, "Session revoked", errorMessage("SESSION_REVOKED", "The session has ended"));
  }

  refuse(): void {
    this.#isDeaf = true;
  }

  goAway(): void {
    this.end(CLOSE_GOING_AWAY, "The server is stopping");
  }

  // The protocol

  /** `isAdmitted`: it is within the rate. Neither throws nor rejects. */
  #read(text: string, isAdmitted: boolean): MaybePromise<void> {
    const crashed = (cause: unknown): void => this.#crashed(cause);
    try {
      const reading =
        text.length < SLICED_LENGTH_MIN ? this.#readShort(text, isAdmitted) : this.#readLong(text, isAdmitted);
      return isPromise(reading) ? reading.catch(crashed) : undefined;
    } catch (cause) {
      crashed(cause);
    }
  }

  #readShort(text: string, isAdmitted: boolean): MaybePromise<void> {
    if (this.closeCode !== null) return;
    let message: JsonValue;
    try {
      message = JSON.parse(text);
    } catch {
      return this.#fail("INVALID_JSON", "The message is not valid JSON");
    }
    const { type, requestId } = isJsonObject(message) ? message : NO_MEMBERS;
    if (!isAdmitted) return this.send(errorMessage("RATE_LIMITED", TOO_MANY, requestId));
    if (type === "ping") return this.send(PONG);
    if (this.#stage.kind === "pending" && type !== "auth")
      return this.#fail("NOT_AUTHENTICATED", "auth must come first");
    const fault = jsonTextFault(text, message);
    if (fault === null) return this.#answer(message, text);
    this.send(errorMessage("INVALID_MESSAGE", describeFault("The message", fault), requestId));
  }

  /** Over several turns of the event loop. Only `auth` may come before authentication, and is not so long. */
  async #readLong(text: string, isAdmitted: boolean): Promise<void> {
    if (!isAdmitted) return this.#error("RATE_LIMITED", TOO_MANY);
    const parsed = await parseMessage(text, this.#deps.slices);
    if (this.closeCode !== null) return;
    if (!parsed.isJson) return this.#fail("INVALID_JSON", "The message is not valid JSON");
    if (parsed.fault === null) return this.#answer(parsed.value, text);
    this.#error("INVALID_MESSAGE", describeFault("The message", parsed.fault));
  }

  #answer(message: JsonValue, text: string): MaybePromise<void> {
    if (!isJsonObject(message)) return this.#error("INVALID_MESSAGE", "A message must be a JSON object");
    if (message["type"] === "ping") return this.send(PONG);
    const parsed = parseClientMessage(message);
    if ("kind" in parsed) return this.#refuse(parsed, message["requestId"]);
    switch (parsed.type) {
      case "auth":
        return this.#authenticate(parsed.token);
      case "join":
        return this.#join();
      case "send":
        return this.#act(parsed, text);
      default:
        return unreachable(parsed);
    }
  }

  #refuse({ kind, type, message }: MessageFault, requestId: JsonValue | undefined): MaybePromise<void> {
    if (kind === "unknown") return this.send(errorMessage("INVALID_MESSAGE", message, requestId));
    if (type === "auth")
      return this.#error(this.#stage.kind === "pending" ? "AUTH_FAILED" : "AUTH_REFRESH_FAILED", message);
    const isJoined = this.#stage.kind === "joined";
    this.send(errorMessage(isJoined ? "INVALID_ACTION" : "NOT_JOINED", isJoined ? message : JOIN_FIRST, requestId));
  }

  async #authenticate(token: string): Promise<void> {
    const principal = await this.#identify(token);
    if (this.closeCode !== null) return;
    const before = this.#stage;
    if (typeof principal === "string") {
      return this.#error(before.kind === "pending" ? "AUTH_FAILED" : "AUTH_REFRESH_FAILED", principal);
    }
    const userId = principal.auth.id;
    if (before.kind !== "pending" && before.principal.auth.id !== userId) {
      return this.#error("AUTH_REFRESH_FAILED", "The token is another user's");
    }
    this.#deps.connections.authenticated(this, principal.sessionId);
    this.#player = null;
    if (before.kind === "pending") {
      before.cancelTimeout();
      this.#stage = { kind: "authenticated", principal };
      this.#rate.reset();
      return this.send(authSuccess(userId, this.id));
    }
    before.principal = principal;
    this.send(authRefreshed(userId, this.id));
  }

  /** The user, or what is wrong with the token. */
  async #identify(token: string): Promise<UserPrincipal | string> {
    try {
      const principal = await this.#deps.connections.identify(token);
      // It may have ended in the meantime, when this connection was not known as one of its own.
      return this.#deps.connections.present(principal) ?? "Invalid token";
    } catch (cause) {
      if (cause instanceof AppError) return cause.message;
      this.#crashed(cause);
      return "Invalid token";
    }
  }

  #join(): MaybePromise<void> {
    if (this.#stage.kind === "joined") return this.#stage.room.resync(this);
    return this.#enter();
  }

  async #enter(): Promise<void> {
    const { service, address } = this.#deps;
    const { room, outcome } = await service.join(address, this, this.player().auth);
    if (room === null || outcome.kind !== "joined") {
      if (outcome.kind === "full") {
        return this.#error("ROOM_FULL", `The room has its ${outcome.maxPlayers} players`);
      }
      return this.#error("JOIN_DENIED", outcome.kind === "denied" ? outcome.message : "Access denied");
    }
    if (this.#stage.kind === "authenticated") {
      this.#stage = { kind: "joined", principal: this.#stage.principal, room };
      this.#rate.reset();
    }
    // It closed before it knew its room.
    if (this.closeCode !== null) room.connectionClosed(this, this.closeCode);
  }

  #act({ actionType, payload = {}, requestId }: ActionMessage, text: string): MaybePromise<void> {
    const refuse = (code: RoomErrorCode, message: string): void => this.send(errorMessage(code, message, requestId));
    if (this.#stage.kind !== "joined") return refuse("NOT_JOINED", JOIN_FIRST);
    if (!Object.hasOwn(this.#deps.address.namespace.config.actions ?? {}, actionType)) {
      return refuse("NO_HANDLER", `There is no action "${actionType}"`);
    }
    // A value takes one character and a comma at least.
    if (text.length > 2 * MESSAGE_VALUES_MAX && countValues(text) > MESSAGE_VALUES_MAX) {
      return refuse("INVALID_MESSAGE", `An action must hold at most ${MESSAGE_VALUES_MAX} values`);
    }
    this.#stage.room.act(this, { type: actionType, payload, requestId, chars: text.length });
  }

  #refuseLong(charsMax: number): void {
    if (this.#stage.kind === "pending") {
      this.#fail("NOT_AUTHENTICATED", "auth must come first");
      return;
    }
    if (this.#rate.admit()) {
      this.#error("INVALID_MESSAGE", `A message must be at most ${charsMax} characters`);
      return;
    }
    this.#error("RATE_LIMITED", TOO_MANY);
  }

  #error(code: RoomErrorCode, message: string): void {
    this.send(errorMessage(code, message));
  }

  /** An error that ends the connection. */
  #fail(code: RoomErrorCode, message: string): void {
    this.end(CLOSE_PROTOCOL, code, errorMessage(code, message));
  }

  #crashed(cause: unknown): void {
    const { namespace, id } = this.#deps.address;
    this.#deps.logger.error("room connection", { namespace: namespace.name, room: id, cause });
  }
}
