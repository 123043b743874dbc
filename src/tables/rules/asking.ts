import type { TableRecord } from "../../config/types.ts";
import { ownValue } from "../../kernel/json/json.ts";
import type { RuleCall } from "../lookups/calls.ts";
import type { TableModel } from "../model/model.ts";
import type { Table } from "../namespaces.ts";
import type { Patch } from "../write/changes.ts";
import type { WriteContext } from "../write/write-context.ts";
import { type Asker, denied, type Grant, type RecordPair, type RecordRights } from "./access.ts";

type ChangeAction = "insert" | "update" | "delete";

/** The grants that a write needs, determined once before the request's form is checked. */
export interface WriteGrants {
  read: Grant;
  insert: Grant;
  update: Grant;
  delete: Grant;
}

/** The checks of rules that every change makes inside its transaction. */
export interface Asking {
  covers(context: WriteContext, grant: Grant, table: Table, about: RecordPair): boolean;
  /** Whether the filter of the read rule hides the record. */
  hides(context: WriteContext, read: Grant, table: Table, record: TableRecord): boolean;
  /**
   * The grant as it is at this operation of a batch, before its record is looked for: a rule that has denied by a lookup may
   * allow by now, and if it does not, nothing tells whether there is such a record. Errors: 401, 403. [TB204]
   */
  present(context: WriteContext, grants: WriteGrants, table: Table, actions: readonly ChangeAction[]): WriteGrants;
  /** Whether this stored record may be changed. Errors: 413 where the request changes too many long records. [TB148] */
  mayChange(context: WriteContext, record: TableRecord, isAllowed: () => boolean): boolean;
  /** The record in the answer: a caller that may change but not read it gets only the id and the values that it sent. [TB67] */
  shown(
    context: WriteContext,
    grants: WriteGrants,
    table: Table,
    written: { record: TableRecord; patch: Patch },
  ): TableRecord;
}

export function createAsking(rights: RecordRights): Asking {
  const covers: Asking["covers"] = (context, grant, table, about) => rights.covers(grant, context, table.model, about);
  const grantNow = (asker: Asker, model: TableModel, action: ChangeAction, call: RuleCall) =>
    rights.grant(asker, model, action, { call });
  return {
    covers,
    hides: (context, read, table, record) => rights.hides(read, context, table.model, record),
    present(context, grants, { model }, actions) {
      if (actions.some((action) => grants[action].kind !== "none")) return grants;
      const present = { ...grants };
      for (const action of actions) {
        // The same number when the write is repeated, once all operations before it have their answers. An answer for another
        // operation is not used where it looked up something else.
        const about = `${model.name} ${action} ${context.grantsAsked++}`;
        const call = context.rules.call();
        present[action] = context.decisions.ask(grantNow, [context, model, action, call], about, { call });
      }
      if (actions.every((action) => present[action].kind === "none")) throw denied(context.principal);
      return present;
    },
    mayChange(context, record, isAllowed) {
      try {
        if (!isAllowed()) return false;
      } catch (cause) {
        context.stored.await(record);
        throw cause;
      }
      context.stored.take(record);
      return true;
    },
    shown(context, grants, table, { record, patch }) {
      if (covers(context, grants.read, table, { record })) return record;
      const sent: TableRecord = { id: record["id"] ?? null };
      for (const name of Object.keys(patch.values)) {
        const value = ownValue(record, name);
        if (value !== undefined) sent[name] = value;
      }
      return sent;
    },
  };
}

/** Adds the record to those that the write is about. */
export const touch = ({ touched }: WriteContext, { model }: Table, id: string): void => {
  touched.add(`${model.name} ${id}`);
};
