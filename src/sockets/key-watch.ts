import type { Principals } from "../access/principals.ts";
import type { Clock } from "../kernel/clock.ts";
import type { Answers } from "./answers.ts";
import { CLOSE } from "./close-codes.ts";
import type { Connection } from "./connection.ts";
import { KEYS_CHECKED_EVERY_MS } from "./limits.ts";

/** Ends connections of service keys with their key, or its session. */
export interface KeyWatch {
  /** There is such a connection. */
  begin(): void;
  stop(): void;
}

/** It has a timer only while there are `connections`: few servers have any. */
export function createKeyWatch<State, Code extends string>(deps: {
  connections: ReadonlySet<Connection<State>>;
  answers: Answers<State, Code>;
  principals: Pick<Principals, "isPresent">;
  clock: Clock;
}): KeyWatch {
  const { connections, answers, principals, clock } = deps;
  let cancel: (() => void) | null = null;
  const check = (): void => {
    cancel = null;
    for (const connection of [...connections]) {
      const { principal } = connection;
      if (principal?.kind === "serviceKey" && !principals.isPresent(principal)) endSession(answers, connection);
    }
    if (connections.size > 0) watch.begin();
  };
  const watch: KeyWatch = {
    begin() {
      cancel ??= clock.after(KEYS_CHECKED_EVERY_MS, check);
    },
    stop: () => cancel?.(),
  };
  return watch;
}

export function endSession<State, Code extends string>(
  answers: Answers<State, Code>,
  connection: Connection<State>,
): void {
  const failure = { code: "SESSION_REVOKED", message: "The session has ended" } as const;
  answers.failAndClose(connection, failure, CLOSE.sessionEnded);
}
