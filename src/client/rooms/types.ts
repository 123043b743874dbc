import type { JsonObject, JsonValue } from "../../kernel/json/json.ts";
import type { PlatformError } from "../transport/errors.ts";

export interface RoomPlayer {
  userId: string;
  /** Id of an open connection; of the last one while the player is away. */
  connectionId: string;
  role: string;
}

/**
 * Status of a room. `offline`: the connection is lost, and reconnects automatically as the same player. `left`: final; `join`
 * again.
 */
export type RoomStatus = "joined" | "offline" | "left";

/** Payload of an action. It may be left out if `{}` is a valid payload. */
type PayloadOf<Action> = Action extends (...given: infer Given) => unknown
  ? Given extends [unknown, unknown, infer Payload, ...unknown[]]
    ? Record<never, never> extends Payload
      ? [payload?: Payload]
      : [payload: Payload]
    : []
  : [payload?: JsonValue];

/** Result of an action; null if it returns nothing. */
type ResultOf<Action> = Action extends (...given: never) => infer Result ? JsonOf<Awaited<Result>> : JsonValue;
type JsonOf<Value> = Value extends JsonValue ? Value : Value extends object ? Value : null;

/** Actions of a room by name, as its config declares them. */
export type AnyActions = Record<string, unknown>;
type ActionsOf<Actions> = unknown extends Actions ? AnyActions : Actions;

/** Room that this client has joined. */
export interface Room<Actions = AnyActions> {
  readonly id: string;
  readonly status: RoomStatus;
  /** Reason why the room was left, unless this client left by itself: it was kicked, or may no longer be there. */
  readonly error: PlatformError | null;
  /** State shared by all players. Immutable: unchanged parts stay the same objects. */
  readonly shared: JsonObject;
  /** State that only this user's connections receive. */
  readonly mine: JsonObject;
  /** Players, at most 1,000. */
  readonly players: readonly RoomPlayer[];
  /** Calls the listener after each change of the state, the players or the status. Returns a function that unsubscribes. */
  subscribe(listener: () => void): () => void;
  /**
   * Runs an action of the room's config, and returns its result. Without a connection it waits up to 10 s for one. An action
   * whose response was lost is not retried. Errors: `PlatformError`; `invalid` with the action's message where it throws.
   */
  act<Name extends keyof ActionsOf<Actions> & string>(
    type: Name,
    ...payload: PayloadOf<ActionsOf<Actions>[Name]>
  ): Promise<ResultOf<ActionsOf<Actions>[Name]>>;
  /** Calls the listener with the data of each such message of the room. Returns a function that unsubscribes. */
  on<Data = JsonValue>(messageType: string, listener: (data: Data) => void): () => void;
  /** Leaves the room at once. */
  leave(): void;
}

/** Rooms of one kind. */
export interface Rooms<Actions = AnyActions> {
  readonly name: string;
  /**
   * Joins a room, and creates it if it does not exist. Needs a signed-in user. Errors: `PlatformError`: `forbidden`, `conflict`
   * for a full room, `not_found` for rooms that the config does not declare, `network`.
   */
  join(id: string): Promise<Room<Actions>>;
}
