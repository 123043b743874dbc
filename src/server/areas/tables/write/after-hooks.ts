import type { Clock } from "../../../../kernel/clock.ts";
import { UNDER_WAY_MAX_MS } from "../../../../kernel/limits.ts";
import type { Logger } from "../../../../kernel/logger.ts";
import { endsWithin } from "../../../../kernel/time/stop.ts";
import type { AppAccess } from "../../../config/app/index.ts";
import type { HookContext, TableHooks } from "../../../config/types.ts";
import { HOOKS_NAMED_MAX } from "../limits.ts";
import type { RuleScope } from "../lookups/calls.ts";
import { hookContext } from "../lookups/hook-context.ts";

/** A hook to run once its write is on disk. */
export interface AfterHook {
  table: string;
  name: keyof TableHooks;
  /** Those of its write, whose lookups it does not share. */
  rules: RuleScope;
  run(context: HookContext): unknown;
}

/** Hooks after writes. Requests do not wait for them; a stop does. */
export interface AfterHooks {
  /** Runs them one after another; errors are logged. */
  run(hooks: readonly AfterHook[]): void;
  /** Waits for running hooks and those that their writes cause, at most UNDER_WAY_MAX_MS; then logs the rest. */
  ended(): Promise<void>;
}

export function createAfterHooks(deps: { app: () => AppAccess; clock: Clock; logger: Logger }): AfterHooks {
  const { clock, logger } = deps;
  const running = new Set<AfterHook>();
  let whenIdle: (() => void)[] = [];

  const runOne = async (hook: AfterHook): Promise<void> => {
    try {
      await hook.run(hookContext(deps.app(), hook.rules.afresh().call()));
    } catch (cause) {
      logger.error("a hook failed after its write", { table: hook.table, hook: hook.name, cause });
    }
    running.delete(hook);
    if (running.size > 0) return;
    for (const resolve of whenIdle) resolve();
    whenIdle = [];
  };
  const idle = (): Promise<void> =>
    running.size === 0 ? Promise.resolve() : new Promise((resolve) => whenIdle.push(resolve));

  return {
    run(hooks) {
      for (const hook of hooks) running.add(hook);
      void (async () => {
        for (const hook of hooks) await runOne(hook);
      })();
    },
    async ended() {
      if (await endsWithin(idle(), UNDER_WAY_MAX_MS, clock)) return;
      const hooks = [...new Set([...running].map(({ table, name }) => `${table}.${name}`))].slice(0, HOOKS_NAMED_MAX);
      logger.error("hooks after writes had not ended when the server stopped", { count: running.size, hooks });
    },
  };
}
