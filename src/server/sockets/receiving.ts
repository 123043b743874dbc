import type { Clock, Millis } from "../../kernel/clock.ts";
import {
  describeFault,
  isJsonObject,
  type JsonFault,
  type JsonObject,
  type JsonValue,
} from "../../kernel/json/json.ts";
import { JsonRefused, parseInSlices } from "../../kernel/json/slices.ts";
import { jsonTextFault } from "../../kernel/json/text.ts";
import { chain, isPromise, type MaybePromise } from "../../kernel/maybe-promise.ts";
import type { Scheduler } from "../../kernel/time/scheduler.ts";
import { SLICED_LENGTH_MIN } from "../http/limits.ts";
import type { Clients } from "./clients.ts";
import type { Connection } from "./connection.ts";
import {
  CHARACTER_MAX_BYTES,
  CLOSE,
  LONG_MESSAGE_MIN_CHARS,
  TYPE_SHOWN_LENGTH,
  UNAUTHENTICATED_MESSAGE_MAX_CHARS,
} from "./limits.ts";
import type { MessageTurns } from "./message-turns.ts";
import type { Answers, Failure, Protocol } from "./protocol.ts";

const OVER_RATE: Failure<"RATE_LIMITED"> = { code: "RATE_LIMITED", message: "Too many messages; this one is dropped" };
const OVER_CHARS: Failure<"RATE_LIMITED"> = {
  code: "RATE_LIMITED",
  message: "Too many long messages; this one is dropped",
};
const WAITING: Failure<"RATE_LIMITED"> = {
  code: "RATE_LIMITED",
  message: "Too many messages wait; this one is dropped",
};
const FLOOD: Failure<"RATE_LIMITED"> = { code: "RATE_LIMITED", message: "Far too many messages; the connection ends" };
const NOT_AUTHENTICATED: Failure<"NOT_AUTHENTICATED"> = {
  code: "NOT_AUTHENTICATED",
  message: "The first message must be auth",
};
const INVALID_JSON: Failure<"INVALID_JSON"> = { code: "INVALID_JSON", message: "The message is not valid JSON" };

/** Handles a parsed message of `chars` characters. */
type Judge<State> = (connection: Connection<State>, said: MessageText, chars: number) => MaybePromise<void>;

/** Receives the messages of connections: counts, queues and parses them, and calls the handler of their type. */
export function createReceiving<State>(deps: {
  protocol: Protocol<State>;
  answers: Answers<State>;
  authenticate(connection: Connection<State>, message: JsonObject): MaybePromise<void>;
  clients: Clients;
  turns: MessageTurns;
  slices: Scheduler;
  clock: Clock;
}): (connection: Connection<State>, raw: string | Buffer) => void {
  const { protocol, answers, clients, turns, clock } = deps;
  const types = new Map(protocol.messages.map((declared) => [declared.type, declared]));

  const invalid = (connection: Connection<State>, message: JsonObject, text: string): void =>
    answers.fail(connection, { code: "INVALID_MESSAGE", message: text }, message);
  const dispatch = (connection: Connection<State>, message: JsonObject, chars: number): MaybePromise<void> => {
    const { type } = message;
    if (type === "ping") return protocol.pinged(connection);
    if (type === "auth") return deps.authenticate(connection, message);
    if (typeof type !== "string") return invalid(connection, message, "type is required");
    const declared = types.get(type);
    if (declared === undefined) {
      return invalid(connection, message, `There is no message "${type.slice(0, TYPE_SHOWN_LENGTH)}"`);
    }
    const problem = declared.problemOf(message);
    if (problem !== null) return invalid(connection, message, problem);
    const { principal } = connection;
    if (principal === null) return;
    // The message holds to the schema that declares the parameter of `handle`.
    const failed = declared.handle(connection, message as never, principal, chars);
    if (failed === null) return;
    return chain(failed, (failure) => {
      if (failure !== null) answers.fail(connection, failure, message);
    });
  };

  /** Answers a message over the rate. It is parsed only for the error, which names the message that it answers. */
  const refuseOverRate: Judge<State> = (connection, said) => {
    if (!said.isJson) return answers.failAndClose(connection, INVALID_JSON);
    answers.fail(connection, OVER_RATE, isJsonObject(said.value) ? said.value : null);
  };
  const judge: Judge<State> = (connection, said, chars) => {
    if (!said.isJson) return answers.failAndClose(connection, INVALID_JSON);
    const message = isJsonObject(said.value) ? said.value : null;
    const isOpen = message?.["type"] === "auth" || message?.["type"] === "ping";
    if (connection.principal === null && !isOpen) return answers.failAndClose(connection, NOT_AUTHENTICATED);
    if (said.fault !== null) {
      const text = describeFault("The message", said.fault);
      return answers.fail(connection, { code: "INVALID_MESSAGE", message: text }, message);
    }
    if (message !== null) return dispatch(connection, message, chars);
    const text = "A message must be a JSON object in a text frame";
    return answers.fail(connection, { code: "INVALID_MESSAGE", message: text });
  };

  const handle = (connection: Connection<State>, raw: string | Buffer, then: Judge<State>): MaybePromise<void> => {
    if (connection.isClosed) return;
    try {
      // A binary frame is refused like a message that is no JSON object.
      const text = typeof raw === "string" ? raw : "null";
      const said = parseMessage(text, deps.slices);
      const handled = isPromise(said)
        ? said.then((later) => (connection.isClosed ? undefined : then(connection, later, text.length)))
        : then(connection, said, text.length);
      if (isPromise(handled)) return handled.catch((cause) => answers.crashed(connection, cause));
    } catch (cause) {
      return answers.crashed(connection, cause);
    }
  };

  const refuseTooLarge = (connection: Connection<State>, maxBytes: number): void => {
    const message = `A message must have at most ${maxBytes} bytes`;
    const isOverRate = !connection.takeMessage(clock.now());
    answers.fail(connection, isOverRate ? OVER_RATE : { code: "MESSAGE_TOO_LARGE", message });
  };

  return (connection, raw) => {
    const { messageMaxBytes } = connection.limits;
    const chars = raw.length;
    const isUnknown = connection.principal === null && !turns.has(connection);
    if (isUnknown && chars > UNAUTHENTICATED_MESSAGE_MAX_CHARS) {
      return answers.failAndClose(connection, NOT_AUTHENTICATED);
    }
    if (chars * CHARACTER_MAX_BYTES > messageMaxBytes && Buffer.byteLength(raw) > messageMaxBytes) {
      return refuseTooLarge(connection, messageMaxBytes);
    }
    const now = clock.now();
    if (!connection.takeChars(chars, now) || !clients.takeChars(connection.client, chars)) {
      if (!isFlood(answers, connection, now)) answers.fail(connection, OVER_CHARS);
      return;
    }
    const isOverRate = !connection.takeMessage(now);
    if (isOverRate && isFlood(answers, connection, now)) return;
    // A ping asks whether the connection lives: it does not wait for messages in progress.
    if (!isOverRate && chars < LONG_MESSAGE_MIN_CHARS && typeof raw === "string" && isPing(raw)) {
      return protocol.pinged(connection);
    }
    const isTaken = isOverRate
      ? turns.take(connection.refusals, chars, () => handle(connection, raw, refuseOverRate))
      : turns.take(connection, chars, () => handle(connection, raw, judge));
    if (!isTaken && (isOverRate || !isFlood(answers, connection, now))) answers.fail(connection, WAITING);
  };
}

/** Counts a message that is about to be dropped; true when too many were, and the connection is closed. [SK222] */
function isFlood<State>(answers: Answers<State>, connection: Connection<State>, now: Millis): boolean {
  if (connection.takeDropped(now)) return false;
  answers.failAndClose(connection, FLOOD, CLOSE.flood);
  return true;
}

/** A parsed message. `fault`: forbidden content; `value` is null when it was found before the end. */
type MessageText = { isJson: false } | { isJson: true; value: JsonValue; fault: JsonFault | null };

const NOT_JSON: MessageText = { isJson: false };

/** Parses a message; a long one over several turns of the event loop. */
function parseMessage(text: string, turns: Scheduler): MaybePromise<MessageText> {
  if (text.length >= SLICED_LENGTH_MIN && /^[ \t\n\r]*[[{]/.test(text)) {
    return turns.run(parseInSlices(text)).then((value) => ({ isJson: true, value, fault: null }), refused);
  }
  try {
    const value: JsonValue = JSON.parse(text);
    return { isJson: true, value, fault: jsonTextFault(text, value) };
  } catch {
    return NOT_JSON;
  }
}

function refused(cause: unknown): MessageText {
  if (!(cause instanceof JsonRefused)) throw cause;
  return cause.fault === null ? NOT_JSON : { isJson: true, value: null, fault: cause.fault };
}

/** Whether a short message asks for a `pong`. Nearly all others are told apart without being parsed. */
function isPing(text: string): boolean {
  if (!text.includes('"ping"')) return false;
  try {
    const message: unknown = JSON.parse(text);
    return isJsonObject(message) && message["type"] === "ping";
  } catch {
    return false;
  }
}
