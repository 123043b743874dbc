import { conflict } from "../../../../kernel/errors.ts";
import { nextTurn } from "../../../../kernel/time/scheduler.ts";
import type { DatabaseFile, Transaction } from "../../../db/index.ts";
import {
  CASCADE_RESTARTS_MAX,
  LEAVING_DEPTH_MAX,
  LEAVING_PAGES_PER_TURN,
  LEAVING_STEPS_MAX,
  STEPPED_RECORDS_MAX,
} from "../limits.ts";
import type { ReferenceEdge, TableModel } from "../model/model.ts";
import type { Table } from "../records/namespaces.ts";
import { referred } from "./cascade.ts";
import { type CascadeStep, performSteps } from "./cascade-steps.ts";
import { goesWith, leavingOf } from "./leaving.ts";
import { Referrers } from "./referrers.ts";
import { CascadeTooLarge, referringOf } from "./referring.ts";

type Queries = Pick<Transaction, "query">;

/** References to users, which a deleted account's steps end, however many there are. */
export type AccountSteps = ReturnType<typeof createAccountSteps>;

interface Place {
  file: DatabaseFile;
  users: Table;
  tableOf(model: TableModel): Table;
}

export function createAccountSteps(place: Place & { now(): string }) {
  const { file, users, now } = place;
  const leaving = leavingOf(users);
  const { isRestricted, leadsToRestrict } = restrictionsOn(users.model);
  /** Waits for the writes that have begun before the user was held. */
  const settled = (): Promise<void> => file.write(() => {});

  const isReferred = (queries: Queries, id: string): boolean =>
    users.model.incoming.some(({ from, column }) => {
      const found = referringOf(place.tableOf(from)).ids(queries, { column, value: id }, { after: "", limit: 2 });
      // A user who refers to oneself goes with the reference.
      return found.some((other) => from !== users.model || other !== id);
    });

  const clearOnce = async (id: string, signal: AbortSignal, note?: (place: string) => void): Promise<void> => {
    let steps: CascadeStep[] = [];
    const noted = ({ table: { model } }: CascadeStep): void => note?.(`${model.namespace}/${model.name}`);
    const perform = async (): Promise<void> => {
      await performSteps(place, steps, { now, signal, note: noted });
      steps = [];
    };
    let looked = 0;
    for (const step of deletion(place, id)) {
      signal.throwIfAborted();
      if (step !== null) steps.push(step);
      if (steps.length >= LEAVING_STEPS_MAX) await perform();
      else if (++looked % LEAVING_PAGES_PER_TURN === 0) await nextTurn();
    }
    await perform();
  };

  return {
    /** Whether other records refer to the user. */
    isReferred,
    /** Keeps records from beginning to refer to the user, until the returned function is called. */
    hold: (id: string): (() => void) => leaving.hold(id),

    /** Refuses a deletion that a reference restricts. Errors: 409 naming the table; 409 where too much would have to be examined. */
    async refuseRestricted(id: string): Promise<void> {
      if (!isRestricted) return;
      await settled();
      let looked = 0;
      for (const edge of restrictions(place, id, leadsToRestrict)) {
        if (edge !== null) throw referred(edge);
        if (++looked % LEAVING_PAGES_PER_TURN === 0) await nextTurn();
      }
    },

    /**
     * Sets references to the user to null, and deletes what cascades, in transactions of some milliseconds each. It may be interrupted
     * and begun again. Hold the user meanwhile. `note`: gets the `namespace/table` of each record that was changed or deleted. Errors: 409
     * for a record that restricts.
     */
    async clear(id: string, signal: AbortSignal, note?: (place: string) => void): Promise<void> {
      if (!isReferred(file, id)) return;
      await settled();
      for (let tries = 1; ; tries++) {
        try {
          return await clearOnce(id, signal, note);
        } catch (cause) {
          // Others have added records to what goes, more than one transaction takes.
          if (!(cause instanceof CascadeTooLarge) || tries > CASCADE_RESTARTS_MAX) throw cause;
        }
      }
    },
  };
}

const keyOf = ({ model }: Table, id: string): string => `${model.name} ${id}`;

/** Whether a record that restricts goes itself; it refers to no record any more where it is gone. */
function goes({ file, tableOf }: Place, from: Table, id: string, isLeaving: (userId: string) => boolean): boolean {
  const record = from.store.get(file, id);
  return record === null || goesWith(file, tableOf, { model: from.model, record }, isLeaving) === true;
}

/**
 * Walks over all that refers to a user, directly and indirectly, referring records first, and gives the steps; null: a page was read.
 * In memory is the path to the present record alone.
 */
function* deletion(place: Place, userId: string): Generator<CascadeStep | null> {
  const { users, tableOf } = place;
  const root = keyOf(users, userId);
  const path = [new Referrers(place, { table: users, id: userId })];
  const onPath = new Set([root]);
  for (let top = path.at(-1); top !== undefined; top = path.at(-1)) {
    const next = top.next();
    if (next === undefined) yield null;
    else if (next === null) {
      path.pop();
      onPath.delete(keyOf(top.table, top.id));
      if (path.length > 0) yield { table: top.table, id: top.id, edge: null, value: null };
    } else {
      const { edge, id, value } = next;
      const from = tableOf(edge.from);
      const key = keyOf(from, id);
      const isCleared = edge.onDelete === "set null" || edge.onDelete === "remove";
      // A ring of required references is deleted as a whole.
      const isRing = onPath.has(key);
      const isFree = edge.column.isNullable || edge.column.links !== null;
      if (isCleared || (isRing && isFree)) yield { table: from, id, edge, value };
      if (isCleared || isRing) continue;
      const isLeft = edge.onDelete === "restrict" && !goes(place, from, id, (one) => leavingOf(users).has(one));
      if (isLeft) throw referred(edge);
      if (path.length >= LEAVING_DEPTH_MAX)
        throw conflict(`Records of ${edge.from.name} refer to each other too deeply`);
      path.push(new Referrers(place, { table: from, id }));
      onPath.add(key);
    }
  }
}

/** Returns whether a reference restricts what goes with users, and which tables have records that lead to such a reference. */
function restrictionsOn(users: TableModel): { isRestricted: boolean; leadsToRestrict: ReadonlySet<TableModel> } {
  const going = new Set([users]);
  for (const model of going)
    for (const { from, onDelete } of model.incoming) if (onDelete === "cascade") going.add(from);
  const leads = new Set([...going].filter(({ incoming }) => incoming.some(({ onDelete }) => onDelete === "restrict")));
  // The iteration includes what is added during it.
  for (const model of leads) {
    for (const { to, onDelete } of model.outgoing) if (onDelete === "cascade" && going.has(to)) leads.add(to);
  }
  return { isRestricted: leads.size > 0, leadsToRestrict: leads };
}

/** Looks for references that restrict the deletion of a user; null: a page was read. Errors: 409 for too much to look at. */
function* restrictions(place: Place, userId: string, leads: ReadonlySet<TableModel>): Generator<ReferenceEdge | null> {
  const { users, tableOf } = place;
  const isWanted = ({ from, onDelete }: ReferenceEdge) =>
    onDelete === "restrict" || (onDelete === "cascade" && leads.has(from));
  const path = [new Referrers(place, { table: users, id: userId }, isWanted)];
  const known = new Set([keyOf(users, userId)]);
  for (let top = path.at(-1); top !== undefined; top = path.at(-1)) {
    const next = top.next();
    if (next === undefined) yield null;
    else if (next === null) path.pop();
    else {
      const { edge, id } = next;
      const from = tableOf(edge.from);
      const key = keyOf(from, id);
      if (edge.onDelete === "restrict") {
        if (key !== keyOf(users, userId) && !goes(place, from, id, (one) => one === userId)) yield edge;
      } else if (!known.has(key)) {
        if (known.size >= STEPPED_RECORDS_MAX) throw tooMany();
        known.add(key);
        path.push(new Referrers(place, { table: from, id }, isWanted));
      }
    }
  }
}

const tooMany = () =>
  conflict(
    `More than ${STEPPED_RECORDS_MAX} records would be deleted, each of which others may refer to; delete those first`,
  );
