import type { TableRecord } from "../../config/types.ts";
import type { Transaction } from "../../db/index.ts";
import type { ReferenceEdge, TableModel } from "../model/model.ts";
import { refuse } from "../model/validation.ts";
import type { Table } from "../namespaces.ts";
import { filterToSql, type SqlCondition } from "../query/filter-sql.ts";
import type { Door } from "../rules/access.ts";
import type { WriteContext } from "../write/record-writes.ts";
import { deleteCascading, referred } from "./cascade.ts";

/** References between the tables of a namespace. The file's foreign keys stand behind them; here they get their names. */
export interface References {
  /**
   * Errors: 400 `unknown_reference` for a changed field that refers to nothing, or, by the caller's own words, to what a
   * read filter hides: for this caller that is the same. What a hook or the schema says may refer to hidden records.
   */
  check(context: WriteContext, table: Table, change: ReferringChange): void;
  /** Errors: 409 when a value that others refer to would be renamed away under them. */
  checkReferred(tx: Transaction, table: Table, stored: TableRecord, next: TableRecord): void;
  /** Deletes a record with what refers to it, by `onDelete`. Errors: 409 by `restrict`, or for too many. Decisions 4. */
  delete(context: WriteContext, table: Table, stored: TableRecord): void;
}

/** `stored`: null for a new record. `asked`: the fields as they were before a hook; `next`: what is written. */
interface ReferringChange {
  stored: TableRecord | null;
  asked: TableRecord;
  next: TableRecord;
}

export function createReferences(deps: { tableOf(model: TableModel): Table; door: Door }): References {
  const { tableOf, door } = deps;
  const readGrant = (principal: WriteContext["principal"], model: TableModel) => door.grant(principal, model, "read");

  /** What the read rule's filter asks of a record for this caller; null where it hides none. */
  const visibility = ({ principal, decisions }: WriteContext, { model }: Table): SqlCondition | null => {
    const grant = decisions.ask(readGrant, [principal, model], model.name);
    return grant.kind === "filter" ? filterToSql(grant.filter, `${model.sql}.`) : null;
  };

  const isReferred = (tx: Transaction, edge: ReferenceEdge, value: NonNullable<TableRecord[string]>): boolean => {
    const { store } = tableOf(edge.from);
    return store.referring.exists(tx, { column: edge.column, value: store.codec.toValue(edge.column, value) });
  };

  return {
    check(context, table, { stored, asked, next }) {
      for (const edge of table.model.outgoing) {
        const { name } = edge.column;
        const value = next[name] ?? null;
        if (value === null || value === stored?.[name]) continue;
        // A record may refer to itself before it is there.
        if (edge.to === table.model && next[edge.toColumn.name] === value) continue;
        const to = tableOf(edge.to);
        const isOwnWord = asked[name] === value && value !== edge.column.field?.default;
        // Without reading it: hundreds of short records may refer to a long one.
        const toValue = { column: edge.toColumn, value: to.store.codec.toValue(edge.toColumn, value) };
        if (to.store.referring.exists(context.tx, toValue, isOwnWord ? visibility(context, to) : null)) continue;
        const message = `${name}: there is no record of ${edge.to.name} with ${edge.toColumn.name} ${JSON.stringify(value)}`;
        refuse({ [name]: { code: "unknown_reference", message } });
      }
    },
    checkReferred(tx, table, stored, next) {
      for (const edge of table.model.incoming) {
        const old = stored[edge.toColumn.name] ?? null;
        if (old !== null && old !== next[edge.toColumn.name] && isReferred(tx, edge, old)) throw referred(edge);
      }
    },
    delete: (context, table, stored) => deleteCascading(context, tableOf, table, stored),
  };
}
