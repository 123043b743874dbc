import type { Turns } from "../../kernel/time/turns.ts";
import type { Answers } from "./answers.ts";
import { CLOSE } from "./close-codes.ts";
import type { Connection } from "./connection.ts";
import type { Protocol } from "./protocol.ts";

/** Ends connections whose session or key has ended. */
export type EndConnections<State> = (connections: readonly Connection<State>[]) => void;

/** All of them are silent at once. They are closed one after another, in turns that all follow-ups share. [SK225] */
export function createEndings<State, Code extends string>(deps: {
  protocol: Pick<Protocol<State, Code>, "errorText">;
  answers: Pick<Answers<State, Code>, "crashed">;
  followUps: Turns;
}): EndConnections<State> {
  const { protocol, answers, followUps } = deps;
  const failure = { code: "SESSION_REVOKED", message: "The session has ended" } as const;
  function* close(silent: readonly Connection<State>[]): Generator<void, void> {
    for (const connection of silent) {
      try {
        connection.finish(protocol.errorText(failure, null, connection), failure.message);
      } catch (cause) {
        answers.crashed(connection, cause);
      }
      yield;
    }
  }
  return (connections) => {
    const silent = connections.filter((connection) => connection.silence(CLOSE.sessionEnded));
    if (silent.length > 0) void followUps.run(close(silent));
  };
}
