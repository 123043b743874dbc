import { isPromise } from "../../../../kernel/maybe-promise.ts";
import type { Principal } from "../../../access/principal.ts";
import type { DatabaseTransaction } from "../../../config/app/index.ts";
import type { FileAddress, Sources } from "../query/sources.ts";
import type { Asking } from "../write/asking.ts";
import type { Mutations } from "../write/mutations.ts";
import type { Writes } from "../write/writes.ts";
import { createTransactionHandle, type PrepareJob } from "./handle.ts";

/** Transactions of the server's own code. */
export interface AppTransactions {
  /** Runs `work` with the rights of `principal`. Errors: those of its operations; what `work` throws. [TB310] */
  transaction<T>(principal: Principal, address: FileAddress, work: (tx: DatabaseTransaction) => T): Promise<T>;
}

export function createAppTransactions(deps: {
  sources: Sources;
  writes: Writes;
  mutations: Mutations;
  asking: Asking;
  prepareJob: PrepareJob;
}): AppTransactions {
  return {
    async transaction(principal, address, work) {
      const { tables, file, rules } = await deps.sources.forTransaction(principal, address);
      return deps.writes.run(file, { principal, rules }, (context) => {
        const handle = createTransactionHandle(deps, context, tables);
        try {
          const result = work(handle.tx);
          if (!isPromise(result)) return result;
          // Its own error would be reported as unhandled.
          result.catch(() => {});
          throw new Error("The function of a transaction must be synchronous, and it returned a promise");
        } finally {
          handle.end();
        }
      });
    },
  };
}
