import type { Clock } from "../../kernel/clock.ts";
import type { Principal } from "../access/principal.ts";
import type { Principals } from "../access/principals.ts";
import { KEYS_CHECKED_EVERY_MS } from "./limits.ts";

/** Ends connections with the service key behind them, or its session. */
export interface KeyWatch {
  /** There is such a connection. */
  begin(): void;
  stop(): void;
}

/** It has a timer only while there are `connections`: few servers have any. */
export function createKeyWatch<Connection extends { readonly principal: Principal | null }>(deps: {
  connections: ReadonlySet<Connection>;
  principals: Pick<Principals, "isPresent">;
  clock: Clock;
  /** The keys of these connections no longer count. */
  end(connections: readonly Connection[]): void;
}): KeyWatch {
  const { connections, principals, clock } = deps;
  let cancel: (() => void) | null = null;
  const check = (): void => {
    cancel = null;
    deps.end([...connections].filter(({ principal }) => principal !== null && !principals.isPresent(principal)));
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
