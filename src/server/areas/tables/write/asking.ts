import type { TableRecord } from "../../../config/types.ts";
import type { SqlCondition } from "../filters/filter-sql.ts";
import type { RuleCall } from "../lookups/calls.ts";
import { withInstants } from "../model/instants.ts";
import type { TableModel } from "../model/model.ts";
import { preparedOf } from "../query/prepared-reads.ts";
import type { Table } from "../records/namespaces.ts";
import { seenBy, withOwnAddress } from "../records/users-view.ts";
import { type Asker, denied, type Grant, type RecordPair, type RecordRights } from "../rules/access.ts";
import type { TableAction } from "../rules/calling.ts";
import { toldOfSent } from "./telling.ts";
import { recordKey, type WriteContext } from "./write-context.ts";

type ChangeAction = "insert" | "update" | "delete";

/** Grants for a write, determined once before the request's form is checked. */
export interface WriteGrants {
  read: Grant;
  insert: Grant;
  update: Grant;
  delete: Grant;
}

/** Checks of rules inside the transaction of every change. */
export type Asking = ReturnType<typeof createAsking>;

export function createAsking(rights: RecordRights) {
  /** Requests whose rules have read what their forms have not brought yet. Kept when a write is repeated. */
  const early = new WeakSet<object>();
  const covers = (context: WriteContext, grant: Grant, table: Table, about: RecordPair): boolean => {
    const { prepared, decisions } = context;
    if (!prepared.isTrial || about.sent === undefined) return rights.covers(grant, context, table.model, about);
    const names = table.model.files.map(({ name }) => name);
    const awaited = { names, see: () => void early.add(decisions) };
    return rights.covers(grant, context, table.model, { ...about, awaited }) || early.has(decisions);
  };
  const grantNow = (asker: Asker, model: TableModel, action: TableAction, call: RuleCall) =>
    rights.grant(asker, model, action, { call });
  const askNow = (context: WriteContext, model: TableModel, action: TableAction): Grant => {
    // The number is the same when the write is repeated, once all operations before it have their answers. The answer for another
    // operation is not used if it looked up something else.
    const about = `${model.name} ${action} ${context.grantsAsked++}`;
    const call = context.rules.call();
    return context.decisions.ask(grantNow, [context, model, action, call], about, { call });
  };
  const readingNow = (context: WriteContext, read: Grant, { model }: Pick<Table, "model">): Grant =>
    read.kind === "record" || read.again === null ? read : askNow(context, model, "read");
  return {
    covers,
    /** Whether the filter of the read rule hides the record. */
    hides: (context: WriteContext, read: Grant, table: Table, record: TableRecord): boolean =>
      rights.hides(read, context, table.model, record),
    /**
     * Returns the read grant at this point of the transaction. Its filter hides records, which are not looked at further. [TB118]
     * [TB204]
     */
    readingNow,
    /** Returns the statement for a record's id that finds no hidden record; null when no filter hides any. [TB118] */
    behindRule(context: WriteContext, granted: Grant, table: Table): SqlCondition | null {
      const read = readingNow(context, granted, table);
      return read.kind === "filter" ? preparedOf(table).one(table.model.id, read) : null;
    },
    /**
     * Returns the grants at this operation of a batch, before its record is looked up: a rule that denied by a lookup may allow by
     * now, and if it does not, nothing reveals whether there is such a record. Errors: 401, 403. [TB204]
     */
    present(
      context: WriteContext,
      grants: WriteGrants,
      { model }: Table,
      actions: readonly ChangeAction[],
    ): WriteGrants {
      if (actions.some((action) => grants[action].kind !== "none")) return grants;
      const present = { ...grants };
      for (const action of actions) present[action] = askNow(context, model, action);
      if (actions.every((action) => present[action].kind === "none")) throw denied(context.principal);
      return present;
    },
    /** Whether this stored record may be changed. Errors: 413 when the request changes too many long records. [TB148] */
    mayChange(context: WriteContext, record: TableRecord, isAllowed: () => boolean): boolean {
      try {
        if (!isAllowed()) return false;
      } catch (cause) {
        context.stored.await(record);
        throw cause;
      }
      context.stored.take(record);
      return true;
    },
    /** Returns the record for the answer: a caller that may not read it gets its id and the values that were sent. [TB67] */
    shown(
      context: WriteContext,
      grants: WriteGrants,
      table: Table,
      { record, sent }: { record: TableRecord; sent: TableRecord },
    ): TableRecord {
      if (covers(context, grants.read, table, { record })) {
        const seen = seenBy(context.principal, table);
        if (seen !== table) return seen.store.get(context.tx, String(record["id"])) ?? record;
        return withOwnAddress(context.principal, table.model, record);
      }
      // The values as sent: a hook may have replaced them.
      const shown: TableRecord = { id: record["id"] ?? null };
      for (const name of Object.keys(sent)) {
        const value = sent[name];
        if (value !== undefined) shown[name] = value;
      }
      return withInstants(table.model, shown);
    },
    /**
     * Makes the change. Its errors contain only what was sent when the caller may not read `record`: the stored one, or the new one
     * as the hooks get it. [TB117]
     */
    telling<T>(
      context: WriteContext,
      grants: WriteGrants,
      table: Table,
      { record, sent }: { record: TableRecord; sent: TableRecord },
      change: () => T,
    ): T {
      try {
        return change();
      } catch (cause) {
        const told = toldOfSent(cause, sent);
        if (told === cause || covers(context, grants.read, table, { record })) throw cause;
        throw told;
      }
    },
  };
}

/** Adds the record to those that the write concerns. */
export const touch = ({ touched }: WriteContext, { model }: Table, id: string): void => {
  touched.add(recordKey(model, id));
};

/** Returns the names of the members that the request sent, with those of its files. */
export function sentIn({ prepared: { files } }: WriteContext, names: readonly string[]): readonly string[] {
  if (files.byField.size === 0) return names;
  return [...new Set([...names, ...files.byField.keys()])];
}
