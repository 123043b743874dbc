import { type Static, type TObject, type TProperties, Type } from "typebox";
import type { JsonObject } from "../../kernel/json/json.ts";
import type { MaybePromise } from "../../kernel/maybe-promise.ts";
import { createParser, type Parser } from "../../kernel/schema/parser.ts";
import type { Connection, Visiting } from "./connection.ts";
import { PROBLEM_SHOWN_LENGTH } from "./limits.ts";

/** Codes of errors that have the same meaning in every area. */
export type CommonErrorCode =
  | "AUTH_FAILED"
  | "AUTH_REFRESH_FAILED"
  | "AUTH_TIMEOUT"
  | "INTERNAL"
  | "INVALID_JSON"
  | "INVALID_MESSAGE"
  | "MESSAGE_TOO_LARGE"
  | "NOT_AUTHENTICATED"
  | "RATE_LIMITED"
  | "SESSION_REVOKED";

/** Why a message was not done. */
export interface Failure<Code extends string> {
  code: Code;
  message: string;
}

/** What a client can send, and what is done with it. */
export interface MessageType<State, Code extends string> {
  readonly type: string;
  /** What is wrong with its members; null: nothing. */
  problemOf(message: JsonObject): string | null;
  // Takes messages without a problem. `chars`: of the message's text.
  handle(
    connection: Connection<State>,
    message: never,
    principal: Visiting,
    chars: number,
  ): MaybePromise<Failure<Code | CommonErrorCode> | null>;
}

/**
 * What follows when a connection has ended, or its user is another one, where that takes long: each step is about one right,
 * and what is returned may still be awaited. What `connection.identity` of before was allowed is of no use meanwhile.
 */
export type Steps = Generator<void, MaybePromise<void>>;

/** What one area says over its WebSockets. `auth`, and everything before it, is the same for all. */
export interface Protocol<State, Code extends string> {
  /** For the log. */
  readonly name: string;
  readonly messages: readonly MessageType<State, Code>[];
  /** Members that any message may have. */
  readonly envelope: TProperties;
  /** The text of an error. `about`: the message that it answers; null where it answers none, or one that was not parsed. */
  errorText(failure: Failure<Code | CommonErrorCode>, about: JsonObject | null, connection: Connection<State>): string;
  /** Whether a connection may authenticate without a user: as nobody, or with a service key's ticket. */
  readonly allowsAnonymous: boolean;
  /** Answers the first `auth` that is accepted. */
  authenticated(connection: Connection<State>, principal: Visiting): void;
  /** Answers another `auth` of the same user, or of the user of a connection that had none. */
  refreshed(connection: Connection<State>, principal: Visiting): Steps | null;
  /** The user's role, email or its verification has changed. */
  userChanged(connection: Connection<State>, principal: Visiting): Steps | null;
  /** Answers a `ping`, also before authentication and while an earlier message is under way. */
  pinged(connection: Connection<State>): void;
  /** The connection has ended. 1006: it was lost without a close frame. */
  closed(connection: Connection<State>, code: number): Steps | null;
}

/** A parser of messages with these members. Other members are refused, but for those of the envelope. */
export function messageParser<Members extends TProperties>(
  type: string,
  members: Members,
  envelope: TProperties,
): Parser<TObject<Members>> {
  const schema = Type.Object({ ...envelope, type: Type.Literal(type), ...members });
  // The members of `schema` are those of `Members` and others that handlers do not read.
  return createParser(schema, { member: `a member of "${type}"` }) as unknown as Parser<TObject<Members>>;
}

/** Declares the messages of one protocol: each with its members and what is done with it. */
export function declareMessages<State, Code extends string>(envelope: TProperties) {
  return <Members extends TProperties>(
    type: string,
    members: Members,
    handle: (
      connection: Connection<State>,
      message: Static<TObject<Members>>,
      principal: Visiting,
      chars: number,
    ) => MaybePromise<Failure<Code | CommonErrorCode> | null>,
  ): MessageType<State, Code> => {
    const parser = messageParser(type, members, envelope);
    return { type, problemOf: (message) => problemWith(parser, message), handle };
  };
}

/** The first thing that is wrong with the message; null: nothing is. */
export function problemWith(parser: Parser<TObject>, message: JsonObject): string | null {
  const problems = parser.problemsOf(message);
  if (problems === null) return null;
  const [first] = Object.values(problems);
  // A name that the client chose may be as long as its message.
  return (first?.message ?? "The message is not valid").slice(0, PROBLEM_SHOWN_LENGTH);
}
