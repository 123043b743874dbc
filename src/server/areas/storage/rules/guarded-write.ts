import { conflict } from "../../../../kernel/errors.ts";
import { isPromise } from "../../../../kernel/maybe-promise.ts";
import type { FileFacts } from "../../../config/types.ts";
import { RULE_ATTEMPTS_MAX } from "../limits.ts";
import type { ObjectVersion, StorageStore, StorageWrite } from "../store/store.ts";
import type { Gate, ObjectAddress, StoredObject } from "../model/types.ts";

export interface GuardedWork<T> {
  /** What the rule is asked about. May throw (404). */
  facts(present: StoredObject | null): FileFacts;
  /** Runs inside the write, with the version of the file that the rule has seen. */
  write(storage: StorageWrite, present: ObjectVersion | null): T;
}

const CHANGED = Symbol("the file changed while an asynchronous rule was asked");

/**
 * Asks the rule and writes; rule and write see the same file, [ST45], and the same records, [ST215]. Where these change in between, a synchronous rule is
 * asked again inside the write, and an asynchronous one by starting over. Errors: 401, 403; 409 when the file keeps changing.
 */
export async function guardedWrite<T>(
  store: StorageStore,
  gate: Gate,
  address: ObjectAddress,
  work: GuardedWork<T>,
): Promise<T> {
  if (gate.verdict !== null) {
    // Before the file is looked for: who may delete none learns of none.
    gate.enforce(gate.verdict);
    return store.write((storage) => work.write(storage, storage.version(address)));
  }
  for (let attempt = 0; attempt < RULE_ATTEMPTS_MAX; attempt++) {
    const seen = store.find(address);
    const { answer, isStale, end } = gate.askWatched(work.facts(seen));
    try {
      gate.enforce(isPromise(answer) ? await answer : answer);
      const outcome = await store.write((storage): { value: T } | typeof CHANGED => {
        if (!isStale() && isSame(seen, storage.version(address))) return { value: work.write(storage, seen) };
        const present = storage.find(address);
        const again = gate.ask(work.facts(present));
        if (isPromise(again)) {
          // It is awaited again; what it throws now is not.
          again.catch(() => {});
          return CHANGED;
        }
        gate.enforce(again);
        return { value: work.write(storage, present) };
      });
      if (outcome !== CHANGED) return outcome.value;
    } finally {
      end();
    }
  }
  throw conflict(`"${address.key}" kept changing while the rule was asked about it`);
}

const isSame = (seen: ObjectVersion | null, present: ObjectVersion | null): boolean =>
  seen?.fileId === present?.fileId && seen?.revision === present?.revision;
