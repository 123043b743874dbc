import type { JsonObject, JsonValue } from "../../kernel/json/json.ts";
import type { PlatformError } from "../transport/errors.ts";

export interface RoomPlayer {
  userId: string;
  /** Of an open connection; of the last one while the player is away. */
  connectionId: string;
  role: string;
}

/** `offline`: the connection is lost, and comes back by itself to the same player. `left`: it is over; `join` again. */
export type RoomStatus = "joined" | "offline" | "left";

/** The payload, which is `{}` where it is left out: that has to be one that the action takes. */
type PayloadOf<Action> = Action extends (...given: infer Given) => unknown
  ? Given extends [unknown, unknown, infer Payload, ...unknown[]]
    ? Record<never, never> extends Payload
      ? [payload?: Payload]
      : [payload: Payload]
    : []
  : [payload?: JsonValue];

/** What an action returns; null for nothing. */
type ResultOf<Action> = Action extends (...given: never) => infer Result ? JsonOf<Awaited<Result>> : JsonValue;
type JsonOf<Value> = Value extends JsonValue ? Value : Value extends object ? Value : null;

/** The actions of a room by their names, as its config declares them. */
export type AnyActions = Record<string, unknown>;
type ActionsOf<Actions> = unknown extends Actions ? AnyActions : Actions;

/** A room that this client is in. */
export interface Room<Actions = AnyActions> {
  readonly id: string;
  readonly status: RoomStatus;
  /** Why the room was left, where this client did not leave by itself: it was kicked, or may not be there any more. */
  readonly error: PlatformError | null;
  /** The state that all players share. Never changed: parts that are the same stay the same objects. */
  readonly shared: JsonObject;
  /** The state that this user's connections alone are sent. */
  readonly mine: JsonObject;
  /** At most 1,000 of them. */
  readonly players: readonly RoomPlayer[];
  /** Calls the listener after each change of the state, the players or the status. The function ends that. */
  subscribe(listener: () => void): () => void;
  /**
   * Runs an action of the room's config, and gives its result. While the connection is lost it waits up to 10 s for it; one
   * whose answer was lost is not sent again. Errors: `PlatformError`; `invalid` with the action's message where it throws.
   */
  act<Name extends keyof ActionsOf<Actions> & string>(
    type: Name,
    ...payload: PayloadOf<ActionsOf<Actions>[Name]>
  ): Promise<ResultOf<ActionsOf<Actions>[Name]>>;
  /** Calls the listener with the data of each such message of the room. The function ends that. */
  on<Data = JsonValue>(messageType: string, listener: (data: Data) => void): () => void;
  /** Leaves at once. */
  leave(): void;
}

/** The rooms of one kind. */
export interface Rooms<Actions = AnyActions> {
  readonly name: string;
  /**
   * Joins a room, which is made if it does not exist. It needs a signed-in user. Errors: `PlatformError`: `forbidden`,
   * `conflict` for a full room, `not_found` for rooms that the config does not declare, `network`.
   */
  join(id: string): Promise<Room<Actions>>;
}
