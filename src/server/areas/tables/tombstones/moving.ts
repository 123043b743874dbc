import { AppError } from "../../../../kernel/errors.ts";
import type { DatabaseFile, Transaction } from "../../../db/index.ts";
import { LEAVING_STEPS_MAX, STEP_COST_MAX } from "../limits.ts";
import type { TableModel } from "../model/model.ts";
import type { Table } from "../records/namespaces.ts";
import { moveOne } from "../write/account-merge.ts";
import { referringOf } from "../write/referring.ts";

interface Place {
  file: DatabaseFile;
  /** The referenced table, which may be of another file, with the references of this one. */
  users: Table;
  tableOf(model: TableModel): Table;
}

/** A record that a constraint keeps from being moved: its transaction is undone, and it is left out of the next one. */
class Stuck extends Error {
  readonly id: string;

  constructor(id: string, cause: AppError) {
    super(cause.message, { cause });
    this.id = id;
  }
}

/**
 * Makes all that refers to `from` refer to `into`, in transactions of some milliseconds each. It may be interrupted and begun again.
 * `moving`: called in each of them; `stuck`: with each record that a constraint forbids to move, which stays as it is.
 */
export async function moveInSteps(
  { file, users, tableOf }: Place,
  { from, into }: { from: string; into: string },
  options: {
    now(): string;
    signal: AbortSignal;
    moving(tx: Transaction): void;
    stuck(cause: unknown, model: TableModel, id: string): void;
  },
): Promise<void> {
  const { now, signal, moving, stuck } = options;
  for (const model of new Set(users.model.incoming.map((edge) => edge.from))) {
    const table = tableOf(model);
    const edges = users.model.incoming.filter((edge) => edge.from === model);
    const moves = edges.map((edge) => ({ edge, before: from, after: into }));
    const left = new Set<string>();
    /** Moves the first of these records, as many as one transaction takes, and returns how many it has looked at. */
    const moveSome = (ids: readonly string[]): Promise<number> =>
      file.write((tx) => {
        moving(tx);
        let cost = 0;
        let next = 0;
        for (const id of ids) {
          if (cost >= STEP_COST_MAX) break;
          cost += referringOf(table).costOf(tx, "clear", id);
          next++;
          if (left.has(id)) continue;
          try {
            moveOne(tx, { table, moves, id }, now());
          } catch (cause) {
            throw cause instanceof AppError && cause.status === 409 ? new Stuck(id, cause) : cause;
          }
        }
        return next;
      });
    for (const { column } of edges) {
      for (let after = ""; ; ) {
        const ids = referringOf(table).ids(file, { column, value: from }, { after, limit: LEAVING_STEPS_MAX });
        const end = ids.at(-1);
        if (end === undefined) break;
        for (let at = 0; at < ids.length; ) {
          signal.throwIfAborted();
          try {
            at += await moveSome(ids.slice(at));
          } catch (cause) {
            if (!(cause instanceof Stuck)) throw cause;
            left.add(cause.id);
            stuck(cause.cause, model, cause.id);
          }
        }
        after = end;
      }
    }
  }
}
