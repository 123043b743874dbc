import type { TableRecord } from "../../../config/types.ts";
import type { Transaction } from "../../../db/index.ts";
import { GOING_LOOKUPS_MAX } from "../limits.ts";
import type { TableModel } from "../model/model.ts";
import { perTable, type Table } from "../records/namespaces.ts";
import { referringOf } from "./referring.ts";

type Queries = Pick<Transaction, "query">;

/**
 * Users whose accounts are being deleted. Nothing may begin to refer to them, or to keep what goes with them: so a deletion that has
 * begun comes to its end, in however many steps.
 */
export class Leaving {
  readonly #holds = new Map<string, number>();

  get isEmpty(): boolean {
    return this.#holds.size === 0;
  }

  has(id: string): boolean {
    return this.#holds.has(id);
  }

  /** Holds a user until the returned function is called. */
  hold(id: string): () => void {
    this.#holds.set(id, (this.#holds.get(id) ?? 0) + 1);
    return () => {
      const others = (this.#holds.get(id) ?? 1) - 1;
      if (others === 0) this.#holds.delete(id);
      else this.#holds.set(id, others);
    };
  }
}

/** Returns those of a table of users. */
export const leavingOf: (users: Table) => Leaving = perTable(() => new Leaving());

/**
 * Whether a record is deleted with a user: it refers to one, or to a record that goes, by a reference that cascades. null: it cannot
 * be said within the bound.
 */
export function goesWith(
  queries: Queries,
  tableOf: (model: TableModel) => Table,
  { model, record }: { model: TableModel; record: TableRecord },
  isLeaving: (userId: string) => boolean,
): boolean | null {
  const found = [{ model, record }];
  let lookups = 0;
  // The iteration includes what is found during it.
  for (const one of found) {
    for (const edge of one.model.outgoing) {
      const value = one.record[edge.column.name] ?? null;
      if (edge.onDelete !== "cascade" || value === null) continue;
      if (edge.to.isUsers) {
        if (isLeaving(String(value))) return true;
        continue;
      }
      if (++lookups > GOING_LOOKUPS_MAX) return null;
      const to = tableOf(edge.to);
      const referred = { column: edge.toColumn, value: to.store.codec.toValue(edge.toColumn, value) };
      const [parent] = referringOf(to).records(queries, "clear", referred, 1);
      if (parent !== undefined) found.push({ model: edge.to, record: parent.record });
    }
  }
  return false;
}
