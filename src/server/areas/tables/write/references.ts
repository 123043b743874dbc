import { type AppError, badField, tooLarge } from "../../../../kernel/errors.ts";
import type { JsonValue } from "../../../../kernel/json/json.ts";
import type { TableRecord } from "../../../config/types.ts";
import type { SqlValue, Transaction } from "../../../db/index.ts";
import { filterToSql, type SqlCondition } from "../filters/filter-sql.ts";
import { LINKED_IDS_MAX } from "../limits.ts";
import type { RuleCall, RuleScope } from "../lookups/calls.ts";
import type { ReferenceEdge, TableModel } from "../model/model.ts";
import type { Table } from "../records/namespaces.ts";
import type { Asker, RecordRights } from "../rules/access.ts";
import { deleteCascading, referred } from "./cascade.ts";
import { goesWith, leavingOf } from "./leaving.ts";
import { type ReferredValue, referringOf } from "./referring.ts";
import { recordKey, type WriteContext } from "./write-context.ts";

type Deps = { tableOf(model: TableModel): Table; rights: RecordRights; checkFar: CheckFar };

/** Returns what the read rules of referenced tables show to the caller of a write. */
export function createVisibility(rights: RecordRights): Visibility {
  const readGrant = (asker: Asker, model: TableModel, call: RuleCall) => rights.grant(asker, model, "read", { call });

  return (context, { model }, rules) => {
    if (typeof model.config.access?.read !== "function") return null;
    const call = rules.call();
    // One evaluation per reference, since operations before it may have changed the data that the rule looks up.
    const about = `${model.name} ${context.grantsAsked++}`;
    const asker = { principal: context.principal, rules };
    const grant = context.decisions.ask(readGrant, [asker, model, call], about, { call });
    return grant.kind === "filter" ? filterToSql(grant.filter, `${model.sql}.`) : null;
  };
}

/** References between the tables of a namespace. The file's foreign keys enforce them too; this layer names the faulty field. */
export function createReferences({ tableOf, rights, checkFar }: Deps) {
  const isGoing = createGoing(tableOf);
  const visibility = createVisibility(rights);

  const isReferred = (tx: Transaction, edge: ReferenceEdge, value: NonNullable<TableRecord[string]>): boolean => {
    const from = tableOf(edge.from);
    // Several references are ids, which do not change.
    if (edge.column.links !== null) return false;
    return referringOf(from).exists(tx, { column: edge.column, value: from.store.codec.toValue(edge.column, value) });
  };

  const checkOne = (context: WriteContext, { model }: Table, edge: ReferenceEdge, change: ReferringChange): void => {
    const { stored, asked, next } = change;
    const { name } = edge.column;
    const value = next[name] ?? null;
    if (value === null || value === stored?.[name]) return;
    // A new record may refer to itself.
    if (edge.to === model && next[edge.toColumn.name] === value) return;
    const to = tableOf(edge.to);
    const isOwnWord = asked[name] === value && value !== edge.column.field?.default;
    // The referenced record is not read: hundreds of short records may refer to a long one.
    const toValue = { column: edge.toColumn, value: to.store.codec.toValue(edge.toColumn, value) };
    if (isGoing(context, to, { edge, value: toValue.value })) throw unknown(edge, isOwnWord ? value : null);
    const condition = isOwnWord && !edge.mayBeHidden ? visibility(context, to, context.rules) : null;
    if (referringOf(to).exists(context.tx, toValue, condition)) return;
    if (isOwnWord && isWritten(context, to, toValue)) return;
    throw unknown(edge, isOwnWord ? value : null);
  };

  /** Checks the ids that a change adds to several references, by one statement for those of the caller and one for a hook's. */
  const checkSeveral = (
    context: WriteContext,
    { model }: Table,
    edge: ReferenceEdge,
    change: ReferringChange,
  ): void => {
    const { name } = edge.column;
    const [before, after] = [idsIn(change.stored?.[name]), idsIn(change.next[name])];
    const [known, present] = [new Set(before), new Set(after)];
    const added = after.filter((id) => !known.has(id));
    countIds(context, added.length + before.filter((id) => !present.has(id)).length);
    const asked = new Set(idsIn(change.asked[name]));
    const to = tableOf(edge.to);
    const isSelf = (id: string): boolean => edge.to === model && id === change.next["id"];
    const check = (ids: readonly string[], isOwnWord: boolean): void => {
      if (ids.length === 0) return;
      const condition = isOwnWord && !edge.mayBeHidden ? visibility(context, to, context.rules) : null;
      const missing = referringOf(to).missing(context.tx, ids, condition);
      const going = ids.find((id) => isGoing(context, to, { edge, value: id }));
      if (going !== undefined) throw unknown(edge, isOwnWord ? going : null);
      const isOwn = (id: string) => isOwnWord && isWritten(context, to, { column: edge.toColumn, value: id });
      const unfound = missing.find((id) => !isOwn(id));
      if (unfound !== undefined) throw unknown(edge, isOwnWord ? unfound : null);
    };
    const others = added.filter((id) => !isSelf(id));
    check(
      others.filter((id) => asked.has(id)),
      true,
    );
    check(
      others.filter((id) => !asked.has(id)),
      false,
    );
  };

  return {
    /**
     * Checks the references of a record. Errors: 400 `unknown_reference` for a changed field that refers to no record, or that the
     * caller set to a record that a read filter hides from this caller, and that the same request has not written, unless the field says `mayBeHidden`. Values set by a
     * hook or a default may refer to hidden records. [TB68] [TB116]
     */
    check(context: WriteContext, table: Table, change: ReferringChange): void {
      for (const edge of table.model.far) checkFar(context, table, edge, change);
      for (const edge of table.model.outgoing) {
        if (edge.column.links === null) checkOne(context, table, edge, change);
        else if (change.next[edge.column.name] !== change.stored?.[edge.column.name]) {
          checkSeveral(context, table, edge, change);
        }
      }
    },
    /** Checks that a change keeps referenced values. Errors: 409 for changing a value that other records refer to. */
    checkReferred(tx: Transaction, table: Table, stored: TableRecord, next: TableRecord): void {
      for (const edge of table.model.incoming) {
        const old = stored[edge.toColumn.name] ?? null;
        if (old !== null && old !== next[edge.toColumn.name] && isReferred(tx, edge, old)) throw referred(edge);
      }
    },
    /**
     * Deletes a record and applies `onDelete` to the records that refer to it. Errors: 409 for `restrict`, or for too many.
     * [TB68]
     */
    delete(context: WriteContext, table: Table, stored: TableRecord): void {
      for (const name of table.model.several) countIds(context, idsIn(stored[name]).length);
      deleteCascading(context, tableOf, table, stored);
    },
  };
}

type Referred = { edge: ReferenceEdge; value: SqlValue };

/**
 * Returns a function that says whether a record goes with a user whose account is being deleted: nobody may begin to refer to it so
 * that it would stay.
 */
const createGoing =
  (tableOf: (model: TableModel) => Table) =>
  ({ tx }: WriteContext, to: Table, { edge, value }: Referred): boolean => {
    if (to.model.isUsers) return leavingOf(to).has(String(value));
    if (edge.onDelete !== "restrict") return false;
    const users = [...to.model.siblings.values()].find(({ isUsers }) => isUsers);
    const leaving = users === undefined ? null : leavingOf(tableOf(users));
    if (leaving === null || leaving.isEmpty) return false;
    const [found] = referringOf(to).records(tx, "clear", { column: edge.toColumn, value }, 1);
    if (found === undefined) return false;
    const one = { model: to.model, record: found.record };
    return goesWith(tx, tableOf, one, (id) => leaving.has(id)) !== false;
  };

/** Whether an operation of the same request has written the record with this value, and it still exists. */
const isWritten = ({ tx, written }: WriteContext, to: Table, referred: ReferredValue): boolean => {
  if (written.size === 0) return false;
  const [id] = referringOf(to).ids(tx, referred, { after: "", limit: 1 });
  return id !== undefined && written.has(recordKey(to.model, id));
};

/**
 * Change of a referring record. `stored`: null for a new record. `asked`: the fields before hooks; `next`: the record to be
 * written.
 */
export interface ReferringChange {
  stored: TableRecord | null;
  asked: TableRecord;
  next: TableRecord;
}

/** Returns the read rule's filter for the caller as a condition; null when it hides no record. `rules`: those of its file. */
export type Visibility = (context: WriteContext, table: Table, rules: RuleScope) => SqlCondition | null;

/** Checks a reference to a table of another file, as `References.check` does. */
export type CheckFar = (context: WriteContext, table: Table, edge: ReferenceEdge, change: ReferringChange) => void;

/** Counts ids that are linked or no longer linked. Errors: 413 for too many in one request. [TB652] */
export function countIds(context: WriteContext, count: number): void {
  context.linkedIds += count;
  if (context.linkedIds <= LINKED_IDS_MAX) return;
  throw tooLarge(
    `One request adds and removes at most ${LINKED_IDS_MAX} references of fields with several; send fewer`,
  );
}

/** Returns the ids of several references. */
export const idsIn = (value: JsonValue | undefined): string[] => (Array.isArray(value) ? value.map(String) : []);

/** Error 400 for a reference to no record. `value`: null for one that the caller must not learn, as a hook or a default has set it. */
export function unknown({ column: { name }, to, toColumn, mayBeHidden }: ReferenceEdge, value: JsonValue): AppError {
  const which = `with ${toColumn.name} ${JSON.stringify(value)}${mayBeHidden ? "" : " that you may read"}`;
  const message = `${name}: there is no record of ${to.name} ${value === null ? "that it could refer to" : which}`;
  return badField(name, "unknown_reference", message);
}
