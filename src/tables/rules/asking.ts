import type { TableRecord } from "../../config/types.ts";
import type { JsonObject } from "../../kernel/json.ts";
import { isOperator, refuse } from "../model/validation.ts";
import type { Table } from "../namespaces.ts";
import { pick } from "../query/list-query.ts";
import type { Patch } from "../write/changes.ts";
import type { WriteContext } from "../write/record-writes.ts";
import type { Door, Grant } from "./access.ts";

/** The grants a write needs, asked once before the request's form is examined. */
export interface WriteGrants {
  read: Grant;
  insert: Grant;
  update: Grant;
  delete: Grant;
}

/** What every change asks of the rules, inside a transaction. */
export interface Asking {
  covers(
    context: WriteContext,
    grant: Grant,
    table: Table,
    about: { record: TableRecord; next?: TableRecord },
  ): boolean;
  /** Whether this stored record may be changed. Errors: 413 where it is one of too many long ones that may be. */
  mayChange(context: WriteContext, record: TableRecord, isAllowed: () => boolean): boolean;
  /** The record as the answer shows it: who may change but not read it gets the id and the values of their own. */
  shown(
    context: WriteContext,
    grants: WriteGrants,
    table: Table,
    written: { record: TableRecord; patch: Patch },
  ): TableRecord;
}

export function createAsking(door: Door): Asking {
  const covers: Asking["covers"] = ({ principal, decisions }, grant, table, about) =>
    door.covers(grant, principal, table.model, decisions, about);
  return {
    covers,
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
      return covers(context, grants.read, table, { record }) ? record : pick(record, Object.keys(patch.values));
    },
  };
}

/** The record is one of those that this write is about. */
export const touch = ({ touched }: WriteContext, { model }: Table, id: string): void => {
  touched.add(`${model.name} ${id}`);
};

/** Operators change what is stored; an insert has nothing stored yet, and an upsert may be one. Errors: 400. */
export function refuseOperators(body: JsonObject): void {
  for (const [name, value] of Object.entries(body)) {
    if (!isOperator(value)) continue;
    refuse({ [name]: { code: "invalid_value", message: `${name}: operators work in updates only` } });
  }
}
