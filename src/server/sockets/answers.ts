import type { JsonObject } from "../../kernel/json/json.ts";
import type { Logger } from "../../kernel/logger.ts";
import { CLOSE } from "./close-codes.ts";
import type { Connection } from "./connection.ts";
import type { CommonErrorCode, Failure, Protocol } from "./protocol.ts";

/** The errors that a connection is sent. */
export interface Answers<State, Code extends string> {
  fail(connection: Connection<State>, failure: Failure<Code | CommonErrorCode>, about?: JsonObject | null): void;
  /** An error that ends the connection. */
  failAndClose(connection: Connection<State>, failure: Failure<CommonErrorCode>, closeCode?: number): void;
  /** Something that is no client's fault. */
  crashed(connection: Connection<State>, cause: unknown): void;
}

export function createAnswers<State, Code extends string>(
  protocol: Protocol<State, Code>,
  logger: Logger,
): Answers<State, Code> {
  const fail: Answers<State, Code>["fail"] = (connection, failure, about = null) =>
    connection.sendText(protocol.errorText(failure, about, connection));
  return {
    fail,
    failAndClose(connection, failure, closeCode = CLOSE.protocol) {
      fail(connection, failure);
      connection.end(closeCode, failure.message);
    },
    crashed(connection, cause) {
      logger.error(`A ${protocol.name} message failed`, { cause });
      fail(connection, { code: "INTERNAL", message: "Internal error" });
    },
  };
}
