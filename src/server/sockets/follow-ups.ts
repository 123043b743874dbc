import { isPromise, type MaybePromise } from "../../kernel/maybe-promise.ts";
import type { Turns } from "../../kernel/time/turns.ts";
import type { SessionLookup } from "../access/sessions.ts";
import type { Answers } from "./answers.ts";
import { presentUser } from "./authentication.ts";
import type { Connection, Visiting } from "./connection.ts";
import type { Protocol, Steps } from "./protocol.ts";
import type { SessionIndex } from "./session-index.ts";

/** What connections may, asked again where their user is another one. All of them share the time of a turn. */
export interface Reviews<State> {
  /** Answers an `auth` that refreshes. */
  refresh(connection: Connection<State>, principal: Visiting): MaybePromise<void>;
  /** Takes the steps that follow the end of a connection. */
  closed(connection: Connection<State>, steps: Steps | null): void;
  /** The connections of this user follow what the user is now. */
  userChanged(userId: string): void;
}

export function createReviews<State, Code extends string>(deps: {
  protocol: Protocol<State, Code>;
  answers: Answers<State, Code>;
  index: SessionIndex<Connection<State>>;
  sessions: SessionLookup;
  followUps: Turns;
}): Reviews<State> {
  const { protocol, answers, index, sessions, followUps } = deps;
  /** Their users have changed since the last batch began. */
  const changed = new Set<Connection<State>>();

  const failed = (connection: Connection<State>, cause: unknown): void => {
    answers.crashed(connection, cause);
    // It would be sent nothing by the rights that have not been asked, and others would wait with it.
    connection.closeAsSlow();
  };
  function* review(connection: Connection<State>): Generator<void, void> {
    const { principal } = connection;
    if (connection.isClosed || principal === null) return;
    try {
      const steps = protocol.userChanged(connection, principal);
      const reviewed = steps === null ? null : yield* steps;
      if (isPromise(reviewed)) reviewed.catch((cause: unknown) => failed(connection, cause));
    } catch (cause) {
      failed(connection, cause);
    }
  }
  /** A batch, so that an `auth` does not wait for changes that follow it. */
  function* reviewChanged(): Generator<void, void> {
    const batch = [...changed];
    changed.clear();
    for (const connection of batch) {
      yield* review(connection);
      yield;
    }
  }
  return {
    refresh(connection, principal) {
      const steps = protocol.refreshed(connection, principal);
      if (steps === null) return;
      const refreshed = followUps.run(inObject(steps)).then(({ result }) => result);
      return refreshed.catch((cause: unknown) => failed(connection, cause));
    },
    closed(connection, steps) {
      if (steps === null) return;
      followUps.run(inObject(steps)).catch((cause: unknown) => answers.crashed(connection, cause));
    },
    userChanged(userId) {
      const isAwaited = changed.size > 0;
      for (const connection of index.ofUser(userId)) {
        if (connection.principal?.kind !== "user") continue;
        const present = presentUser(sessions, connection.principal);
        if (present === null || present === connection.principal) continue;
        // At once: from now on nothing is sent by what was allowed before.
        connection.principal = present;
        changed.add(connection);
      }
      if (!isAwaited && changed.size > 0) void followUps.run(reviewChanged());
    },
  };
}

/** In an object, because the next work does not wait for what is awaited. */
function* inObject(steps: Steps): Generator<void, { result: MaybePromise<void> }> {
  return { result: yield* steps };
}
