import { type Static, type TObject, type TProperties, Type } from "typebox";
import type { JsonObject } from "../../kernel/json/json.ts";
import type { Logger } from "../../kernel/logger.ts";
import type { MaybePromise } from "../../kernel/maybe-promise.ts";
import { createParser, type Parser } from "../../kernel/schema/parser.ts";
import type { Connection, Visiting } from "./connection.ts";
import { CLOSE, PROBLEM_SHOWN_LENGTH } from "./limits.ts";

/** Error codes that have the same meaning in every area. */
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

/** Code and message of a refusal. */
export interface Failure<Code extends string> {
  code: Code;
  message: string;
}

/** A message that clients may send, and its handler. */
export interface MessageType<State, Code extends string = string> {
  readonly type: string;
  /** Returns a problem of the message's members, or null when they are valid. */
  problemOf(message: JsonObject): string | null;
  // Handles a message without problems. `chars`: the length of the message's text.
  handle(
    connection: Connection<State>,
    message: never,
    principal: Visiting,
    chars: number,
  ): MaybePromise<Failure<Code | CommonErrorCode> | null>;
}

/**
 * Work that follows the end of a connection or a change of its user, one right in each step. The returned promise may be pending.
 * Until it resolves, rights of the previous `connection.identity` are void.
 */
export type Steps = Generator<void, MaybePromise<void>>;

/** The messages of one area. `auth`, and everything before it, is common to all areas. */
export interface Protocol<State, Code extends string = string> {
  /** Names the protocol in the log. */
  readonly name: string;
  readonly messages: readonly MessageType<State, Code>[];
  /** Optional members of every message. */
  readonly envelope: TProperties;
  /**
   * Returns the text of an error. `about`: the message that it answers; null when it answers none, or one that could not be
   * parsed.
   */
  errorText(failure: Failure<Code | CommonErrorCode>, about: JsonObject | null, connection: Connection<State>): string;
  /** Whether a connection may authenticate without a user: anonymously, or with a service key's ticket. */
  readonly allowsAnonymous: boolean;
  /** Answers the first accepted `auth`. */
  authenticated(connection: Connection<State>, principal: Visiting): void;
  /** Answers a later `auth` of the same user, or the first one of a user on an anonymous connection. */
  refreshed(connection: Connection<State>, principal: Visiting): Steps | null;
  /** Follows a change of the user's role, email or email verification. */
  userChanged(connection: Connection<State>, principal: Visiting): Steps | null;
  /** Answers a `ping`, also before authentication and while an earlier message is being handled. */
  pinged(connection: Connection<State>): void;
  /** Follows the end of the connection. Code 1006: lost without a close frame. */
  closed(connection: Connection<State>, code: number): Steps | null;
}

/** Returns a parser of messages with these members and those of the envelope. Other members are refused. */
export function messageParser<Members extends TProperties>(
  type: string,
  members: Members,
  envelope: TProperties,
): Parser<TObject<Members>> {
  const schema = Type.Object({ ...envelope, type: Type.Literal(type), ...members });
  // `schema` has the members of `Members` and others that handlers do not read.
  return createParser(schema, { member: `a member of "${type}"` }) as unknown as Parser<TObject<Members>>;
}

/** Declares the messages of one protocol: each with its members and its handler. */
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

/** Returns the first problem of the message, or null when it is valid. */
export function problemWith(parser: Parser<TObject>, message: JsonObject): string | null {
  const problems = parser.problemsOf(message);
  if (problems === null) return null;
  const [first] = Object.values(problems);
  // The problem may quote a member name, which is as long as the client likes.
  return (first?.message ?? "The message is not valid").slice(0, PROBLEM_SHOWN_LENGTH);
}

/** Sends errors to connections, in the form of their protocol. */
export class Answers<State> {
  readonly #protocol: Pick<Protocol<State>, "name" | "errorText">;
  readonly #logger: Logger;

  constructor(protocol: Pick<Protocol<State>, "name" | "errorText">, logger: Logger) {
    this.#protocol = protocol;
    this.#logger = logger;
  }

  fail(connection: Connection<State>, failure: Failure<string>, about: JsonObject | null = null): void {
    connection.sendText(this.#protocol.errorText(failure, about, connection));
  }

  failAndClose(
    connection: Connection<State>,
    failure: Failure<CommonErrorCode>,
    closeCode: number = CLOSE.protocol,
  ): void {
    this.fail(connection, failure);
    connection.end(closeCode, failure.message);
  }

  /** Logs a fault of the server, and answers without internals. */
  crashed(connection: Connection<State>, cause: unknown): void {
    this.#logger.error(`A ${this.#protocol.name} message failed`, { cause });
    this.fail(connection, { code: "INTERNAL", message: "Internal error" });
  }
}
