import type { AppAccess } from "../../config/app-access.ts";
import type { TableHooks } from "../../config/types.ts";
import type { Clock } from "../../kernel/clock.ts";
import { UNDER_WAY_MAX_MS } from "../../kernel/limits.ts";
import type { Logger } from "../../kernel/logger.ts";
import { endsWithin } from "../../kernel/stop.ts";
import { HOOKS_NAMED_MAX } from "../limits.ts";

/** A hook to run once its write is on disk. */
export interface AfterHook {
  table: string;
  name: keyof TableHooks;
  run(app: AppAccess): unknown;
}

/** Hooks after writes: nobody's request waits for them, but a stop does. */
export interface AfterHooks {
  /** One after another; what they throw is logged. */
  run(hooks: readonly AfterHook[]): void;
  /** Waits for those that run, and for those that their own writes set off. After UNDER_WAY_MAX_MS they are left, and logged. */
  ended(): Promise<void>;
}

export function createAfterHooks(deps: { app: () => AppAccess; clock: Clock; logger: Logger }): AfterHooks {
  const { clock, logger } = deps;
  const running = new Set<AfterHook>();
  let whenIdle: (() => void)[] = [];

  const runOne = async (hook: AfterHook): Promise<void> => {
    try {
      await hook.run(deps.app());
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
