import type { Clock } from "../../../../kernel/clock.ts";
import { AppError } from "../../../../kernel/errors.ts";
import { plainCopy } from "../../../../kernel/json/copy.ts";
import { UNDER_WAY_MAX_MS } from "../../../../kernel/limits.ts";
import type { Logger } from "../../../../kernel/logger.ts";
import type { MaybePromise } from "../../../../kernel/maybe-promise.ts";
import { DeadlineError } from "../../../../kernel/time/deadline.ts";
import { endsWithin } from "../../../../kernel/time/stop.ts";
import { authOf } from "../../../access/principal.ts";
import type { AppAccess } from "../../../config/app/index.ts";
import type { Auth, HookContext, TableHooks, TableRecord } from "../../../config/types.ts";
import { HOOKS_NAMED_MAX } from "../limits.ts";
import { hookContext } from "../lookups/calls.ts";
import type { Table } from "../records/namespaces.ts";
import { Suspended } from "../rules/decisions.ts";
import type { AfterHook, WriteContext } from "./write-context.ts";

/** Unexpected error of a hook. The client gets 500 without details. [TB143] */
class HookFailure extends Error {
  constructor(table: Table, name: keyof TableHooks, cause: unknown) {
    super(`the ${name} hook of ${table.model.name} failed`, { cause });
  }
}

/** Records of a hook in the order of its parameters. `beforeFailure` may throw an error that the client gets instead of a 500. */
interface AboutHook<Records extends readonly TableRecord[]> {
  hook: keyof TableHooks;
  records: Records;
  beforeFailure?: () => void;
}

export function createHookCalls(deps: { app: () => AppAccess; logger: Logger }) {
  return {
    /** Calls a hook before its write. Errors: its refusal; 503 when it does not settle in time; else `HookFailure`. */
    call<Records extends readonly TableRecord[], T>(
      { principal, decisions, rules }: WriteContext,
      table: Table,
      work: (auth: Auth | null, ...rest: [...Records, HookContext]) => MaybePromise<T>,
      { hook: name, records, beforeFailure }: AboutHook<Records>,
    ): T {
      const ruleCall = rules.call();
      // As many copies as records, in the same order.
      const copies = records.map(plainCopy) as unknown as typeof records;
      try {
        const context = hookContext(deps.app(), ruleCall);
        return decisions.ask(work, [authOf(principal), ...copies, context], records, {
          call: ruleCall,
          phase: "hooks",
          name: `${table.model.namespace}.${table.model.name} ${name}`,
        });
      } catch (cause) {
        if (cause instanceof Suspended || cause instanceof AppError) throw cause;
        rules.check();
        beforeFailure?.();
        if (!(cause instanceof DeadlineError)) throw new HookFailure(table, name, cause);
        deps.logger.error("a hook did not settle in time", { table: table.model.name, hook: name, cause });
        throw new AppError(503, `The ${name} hook of ${table.model.name} took too long`);
      }
    },
  };
}

export function later(
  { afterCommit, principal, rules }: WriteContext,
  { model }: Table,
  name: keyof TableHooks,
  run: (auth: Auth | null, context: HookContext) => unknown,
): void {
  afterCommit.push({ table: model.name, name, rules, run: (context) => run(authOf(principal), context) });
}

export const hook = <Name extends keyof TableHooks>(table: Table, name: Name): TableHooks[Name] | undefined =>
  table.model.config.hooks?.[name];

/** Hooks after writes. Requests do not wait for them; a stop does. */
export type AfterHooks = ReturnType<typeof createAfterHooks>;

export function createAfterHooks(deps: { app: () => AppAccess; clock: Clock; logger: Logger }) {
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
    /** Runs them one after another; errors are logged. */
    run(hooks: readonly AfterHook[]): void {
      for (const hook of hooks) running.add(hook);
      void (async () => {
        for (const hook of hooks) await runOne(hook);
      })();
    },
    /** Waits for running hooks and those caused by their writes, at most UNDER_WAY_MAX_MS; then logs the rest. */
    async ended(): Promise<void> {
      if (await endsWithin(idle(), UNDER_WAY_MAX_MS, clock)) return;
      const hooks = [...new Set([...running].map(({ table, name }) => `${table}.${name}`))].slice(0, HOOKS_NAMED_MAX);
      logger.error("hooks after writes had not ended when the server stopped", { count: running.size, hooks });
    },
  };
}
