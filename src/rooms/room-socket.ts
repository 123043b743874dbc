import type { Player } from "../config/types.ts";
import type { Clock } from "../kernel/clock.ts";
import { AppError } from "../kernel/errors.ts";
import { describeFault, isJsonObject, type JsonObject, type JsonValue } from "../kernel/json.ts";
import { jsonTextFault } from "../kernel/json-text.ts";
import type { Logger } from "../kernel/logger.ts";
import { isPromise, type MaybePromise } from "../kernel/maybe-promise.ts";
import type { Socket, SocketHandler, SocketServer } from "../sockets/server/socket-server.ts";
import { CLOSE_GOING_AWAY, CLOSE_PROTOCOL, CLOSE_SESSION_REVOKED, CLOSE_TRY_LATER } from "./close-codes.ts";
import type { Connections, UserPrincipal } from "./connections.ts";
import { CHARS_PER_SECOND_MAX, UNAUTHENTICATED_MESSAGE_MAX_CHARS, WAITING_MESSAGES_MAX } from "./limits.ts";
import type { LoopShare } from "./loop-share.ts";
import { unknownMember } from "./message-members.ts";
import { CharRate, createMessageRate, type MessageRate } from "./message-rate.ts";
import { authRefreshed, authSuccess, errorMessage, PONG, type RoomErrorCode } from "./messages.ts";
import { Outbox } from "./outbox.ts";
import type { LiveRoom } from "./room.ts";
import type { RoomAddress, RoomsService } from "./service.ts";
import type { SyncTurns } from "./sync-turns.ts";
import type { RoomConnection } from "./types.ts";

interface RoomSocketDeps {
  address: RoomAddress;
  id: string;
  service: RoomsService;
  connections: Connections;
  sockets: Pick<SocketServer, "waitingBytes" | "drop">;
  share: LoopShare;
  syncs: SyncTurns;
  clock: Clock;
  logger: Logger;
}

/** A message with the characters of its text. */
interface Received {
  message: JsonObject;
  chars: number;
}

type Stage =
  | { kind: "pending"; cancelTimeout: () => void }
  | { kind: "authenticated"; principal: UserPrincipal }
  | { kind: "joined"; principal: UserPrincipal; room: LiveRoom };

/** One WebSocket and its protocol. Spec: States / Room connection, Events; decisions 9. */
export class RoomSocket implements SocketHandler, RoomConnection {
  readonly id: string;
  closeCode: number | null = null;
  readonly #deps: RoomSocketDeps;
  readonly #rate: MessageRate;
  readonly #charRate: CharRate;
  #socket: Socket | null = null;
  #stage: Stage;
  /** Messages behind an `auth` or `join` that is not answered yet; null when there is none. */
  #waiting: Received[] | null = null;
  readonly #outbox: Outbox;
  #player: Player | null = null;
  #isDeaf = false;

  constructor(deps: RoomSocketDeps) {
    const { namespace } = deps.address;
    this.id = deps.id;
    this.#deps = deps;
    this.#rate = createMessageRate(namespace.limits.messagesPerSecond, deps.clock);
    this.#charRate = new CharRate(CHARS_PER_SECOND_MAX, namespace.limits.messageMaxChars, deps.clock.now());
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
    if (!this.#charRate.admit(raw.length, this.#deps.clock.now())) {
      this.#error("RATE_LIMITED", "Too many long messages; this one is dropped");
      return;
    }
    const text = typeof raw === "string" ? raw : raw.toString();
    let message: unknown;
    try {
      message = JSON.parse(text);
    } catch {
      this.#fail("INVALID_JSON", "The message is not valid JSON");
      return;
    }
    const { type, requestId } = isJsonObject(message) ? message : { type: undefined, requestId: undefined };
    if (!this.#rate.admit()) {
      this.send(errorMessage("RATE_LIMITED", "Too many messages; this one is dropped", requestId));
      return;
    }
    // It answers a question about the connection, and so does not wait for what is under way on it.
    if (type === "ping") {
      this.send(PONG);
      return;
    }
    if (this.#stage.kind === "pending" && type !== "auth" && this.#waiting === null) {
      this.#fail("NOT_AUTHENTICATED", "auth must come first");
      return;
    }
    if (!isJsonObject(message)) {
      this.#error("INVALID_MESSAGE", "A message must be a JSON object");
      return;
    }
    const fault = jsonTextFault(text, message);
    if (fault !== null) {
      this.send(errorMessage("INVALID_MESSAGE", describeFault("The message", fault), requestId));
      return;
    }
    this.#enqueue({ message, chars: raw.length });
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

  #enqueue(received: Received): void {
    if (this.#waiting !== null) {
      if (this.#waiting.length < WAITING_MESSAGES_MAX) this.#waiting.push(received);
      else this.send(errorMessage("RATE_LIMITED", "Too many messages wait", received.message["requestId"]));
      return;
    }
    const answering = this.#answer(received);
    if (isPromise(answering)) void this.#waitFor(answering);
  }

  /** Answers what comes in meanwhile afterwards, in its order. */
  async #waitFor(answering: Promise<void>): Promise<void> {
    const waiting: Received[] = [];
    this.#waiting = waiting;
    await answering.catch((cause: unknown) => this.#crashed(cause));
    for (let next = waiting.shift(); next !== undefined && this.closeCode === null; next = waiting.shift()) {
      try {
        await this.#answer(next);
      } catch (cause) {
        this.#crashed(cause);
      }
    }
    this.#waiting = null;
  }

  #answer({ message, chars }: Received): MaybePromise<void> {
    if (this.#stage.kind === "pending" && message["type"] !== "auth") {
      return this.#fail("NOT_AUTHENTICATED", "auth must come first");
    }
    const unknown = unknownMember(message);
    if (unknown !== null) {
      const text = `There is no member "${unknown}" in "${String(message["type"])}"`;
      return this.send(errorMessage("INVALID_MESSAGE", text, message["requestId"]));
    }
    switch (message["type"]) {
      case "auth":
        return this.#authenticate(message["token"]);
      case "join":
        return this.#join();
      case "send":
        return this.#act(message, chars);
      default:
        return this.send(
          errorMessage("INVALID_MESSAGE", "type must be auth, join, send or ping", message["requestId"]),
        );
    }
  }

  async #authenticate(token: JsonValue | undefined): Promise<void> {
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
  async #identify(token: JsonValue | undefined): Promise<UserPrincipal | string> {
    if (typeof token !== "string") return "token is required";
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

  #act(message: JsonObject, chars: number): void {
    const { actionType, requestId, payload = {} } = message;
    const refuse = (code: RoomErrorCode, text: string): void => this.send(errorMessage(code, text, requestId));
    if (this.#stage.kind !== "joined") {
      refuse("NOT_JOINED", "join must come first");
      return;
    }
    if (typeof actionType !== "string" || actionType === "") {
      refuse("INVALID_ACTION", "actionType is required, and must be a string");
      return;
    }
    if (typeof requestId !== "string") {
      refuse("INVALID_ACTION", "requestId is required, and must be a string");
      return;
    }
    if (!Object.hasOwn(this.#deps.address.namespace.config.actions ?? {}, actionType)) {
      refuse("NO_HANDLER", `There is no action "${actionType}"`);
      return;
    }
    this.#stage.room.act(this, { type: actionType, payload, requestId, chars });
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
    this.#error("RATE_LIMITED", "Too many messages; this one is dropped");
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
