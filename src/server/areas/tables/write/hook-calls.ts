import { AppError } from "../../../../kernel/errors.ts";
import { plainCopy } from "../../../../kernel/json/copy.ts";
import type { Logger } from "../../../../kernel/logger.ts";
import type { MaybePromise } from "../../../../kernel/maybe-promise.ts";
import { DeadlineError } from "../../../../kernel/time/deadline.ts";
import { authOf } from "../../../access/principal.ts";
import type { AppAccess } from "../../../config/app/index.ts";
import type { Auth, HookContext, TableHooks, TableRecord } from "../../../config/types.ts";
import { hookContext } from "../lookups/hook-context.ts";
import type { Table } from "../records/namespaces.ts";
import { Suspended } from "../rules/decisions.ts";
import type { WriteContext } from "./write-context.ts";

/** An unexpected error of a hook. The client gets 500 without details. [TB143] */
class HookFailure extends Error {
  constructor(table: Table, name: keyof TableHooks, cause: unknown) {
    super(`the ${name} hook of ${table.model.name} failed`, { cause });
  }
}

/** The records of a hook in the order of its parameters. `beforeFailure` may throw what the client gets instead of a 500. */
interface AboutHook<Records extends readonly TableRecord[]> {
  hook: keyof TableHooks;
  records: Records;
  beforeFailure?: () => void;
}

interface HookCalls {
  /** Calls a hook before its write. Errors: its refusal; 503 where it does not settle in time; else `HookFailure`. */
  call<Records extends readonly TableRecord[], T>(
    context: WriteContext,
    table: Table,
    work: (auth: Auth | null, ...rest: [...Records, HookContext]) => MaybePromise<T>,
    about: AboutHook<Records>,
  ): T;
}

export function createHookCalls(deps: { app: () => AppAccess; logger: Logger }): HookCalls {
  return {
    call({ principal, decisions, rules }, table, work, { hook: name, records, beforeFailure }) {
      const ruleCall = rules.call();
      // As many copies as there are records.
      const copies = records.map(plainCopy) as unknown as typeof records;
      try {
        const context = hookContext(deps.app(), ruleCall);
        return decisions.ask(work, [authOf(principal), ...copies, context], records, {
          call: ruleCall,
          phase: "hooks",
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
