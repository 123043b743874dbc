import { isPromise, type MaybePromise } from "../../kernel/maybe-promise.ts";
import type { Scheduler } from "../../kernel/time/scheduler.ts";
import type { SessionLookup } from "../access/sessions.ts";
import { presentUser } from "./authentication.ts";
import type { Connection, Visiting } from "./connection.ts";
import { CLOSE } from "./limits.ts";
import type { Answers, Protocol, Steps } from "./protocol.ts";
import type { SessionIndex } from "./session-index.ts";

const SESSION_ENDED = { code: "SESSION_REVOKED", message: "The session has ended" } as const;

interface FollowUpsDeps<State> {
  protocol: Pick<Protocol<State>, "errorText" | "refreshed" | "userChanged">;
  answers: Pick<Answers<State>, "crashed">;
  index: SessionIndex<Connection<State>>;
  sessions: SessionLookup;
  /** Scheduler of all areas. */
  followUps: Pick<Scheduler, "run">;
}

/**
 * Follows changes of users, and the ends of sessions and connections. Thousands of connections may be affected at the same
 * moment: each is silenced at once, and the rest happens step by step, in the order of the events. [SK223] [SK224] [SK225]
 */
export class FollowUps<State> {
  readonly #deps: FollowUpsDeps<State>;
  /** Connections whose users have changed since the last batch began. */
  readonly #changed = new Set<Connection<State>>();
  /** Connections that have ended since the last batch began: thousands may end in one turn. */
  #ended: { readonly connection: Connection<State>; readonly steps: Steps }[] = [];

  constructor(deps: FollowUpsDeps<State>) {
    this.#deps = deps;
  }

  /** Handles an `auth` that refreshes. */
  refresh(connection: Connection<State>, principal: Visiting): MaybePromise<void> {
    const steps = this.#deps.protocol.refreshed(connection, principal);
    if (steps === null) return;
    const refreshed = this.#deps.followUps.run(inObject(steps)).then(({ result }) => result);
    return refreshed.catch((cause: unknown) => this.#failed(connection, cause));
  }

  /** Queues the steps that follow the end of a connection. */
  closed(connection: Connection<State>, steps: Steps | null): void {
    if (steps === null) return;
    this.#ended.push({ connection, steps });
    if (this.#ended.length === 1) void this.#deps.followUps.run(this.#finishEnded());
  }

  /** Updates the principal of this user's connections, and re-evaluates their rights. */
  userChanged(userId: string): void {
    const { index, sessions, followUps } = this.#deps;
    const isAwaited = this.#changed.size > 0;
    for (const connection of index.ofUser(userId)) {
      if (connection.principal?.kind !== "user") continue;
      const present = presentUser(sessions, connection.principal);
      if (present === null || present === connection.principal) continue;
      connection.principal = present;
      this.#changed.add(connection);
    }
    if (!isAwaited && this.#changed.size > 0) void followUps.run(this.#reviewChanged());
  }

  /** Ends connections whose session or key has ended. */
  end(connections: readonly Connection<State>[]): void {
    const silent = connections.filter((connection) => connection.silence(CLOSE.sessionEnded));
    if (silent.length > 0) void this.#deps.followUps.run(this.#close(silent));
  }

  *#finishEnded(): Generator<void, void> {
    const batch = this.#ended;
    this.#ended = [];
    for (const { connection, steps } of batch) {
      const crashed = (cause: unknown): void => this.#deps.answers.crashed(connection, cause);
      try {
        const finished = yield* steps;
        if (isPromise(finished)) finished.catch(crashed);
      } catch (cause) {
        crashed(cause);
      }
      yield;
    }
  }

  *#close(silent: readonly Connection<State>[]): Generator<void, void> {
    const { protocol, answers } = this.#deps;
    for (const connection of silent) {
      try {
        connection.finish(protocol.errorText(SESSION_ENDED, null, connection), SESSION_ENDED.message);
      } catch (cause) {
        answers.crashed(connection, cause);
      }
      yield;
    }
  }

  /** Reviews a batch, so that an `auth` does not wait for later changes. */
  *#reviewChanged(): Generator<void, void> {
    const batch = [...this.#changed];
    this.#changed.clear();
    for (const connection of batch) {
      yield* this.#review(connection);
      yield;
    }
  }

  *#review(connection: Connection<State>): Generator<void, void> {
    const { principal } = connection;
    if (connection.isClosed || principal === null) return;
    try {
      const steps = this.#deps.protocol.userChanged(connection, principal);
      const reviewed = steps === null ? null : yield* steps;
      if (isPromise(reviewed)) reviewed.catch((cause: unknown) => this.#failed(connection, cause));
    } catch (cause) {
      this.#failed(connection, cause);
    }
  }

  #failed(connection: Connection<State>, cause: unknown): void {
    this.#deps.answers.crashed(connection, cause);
    // Its unevaluated rights would deliver nothing, and other connections would wait with it.
    connection.closeAsSlow();
  }
}

/** Wraps the result of steps: the next work must not wait for a promise in it. */
function* inObject(steps: Steps): Generator<void, { result: MaybePromise<void> }> {
  return { result: yield* steps };
}
