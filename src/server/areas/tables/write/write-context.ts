import type { JsonObject } from "../../../../kernel/json/json.ts";
import type { Principal } from "../../../access/principal.ts";
import type { HookContext, TableHooks, TableRecord } from "../../../config/types.ts";
import type { Transaction } from "../../../db/index.ts";
import type { RuleScope } from "../lookups/calls.ts";
import { type JsonTexts, NO_TEXTS } from "../model/codec.ts";
import type { TableModel } from "../model/model.ts";
import type { StoredBytes } from "../model/record-size.ts";
import type { Decisions } from "../rules/decisions.ts";

/** What was made of a large request before its transaction. */
export interface Prepared {
  texts: JsonTexts;
  /** Of inserts, and of upserts that find none: the new record, by body. Throws its 400 only when it is called, in the order of the operations. */
  records: ReadonlyMap<JsonObject, () => TableRecord>;
}

export const NOT_PREPARED: Prepared = { texts: NO_TEXTS, records: new Map() };

/** A record among those of all tables of a file. */
export const recordKey = ({ name }: TableModel, id: string): string => `${name} ${id}`;

/** A hook to run once its write is on disk. */
export interface AfterHook {
  table: string;
  name: keyof TableHooks;
  /** Those of its write, whose lookups it does not share. */
  rules: RuleScope;
  run(context: HookContext): unknown;
}

/** The state of one request's write inside its transaction. */
export interface WriteContext {
  tx: Transaction;
  principal: Principal;
  decisions: Decisions;
  /** How rules and hooks are called. Their lookups of this file see the transaction. */
  rules: RuleScope;
  /** ISO 8601. The same for the whole request, also when the write is restarted. */
  now: string;
  /** The id for the n-th inserted record. The same when the write is restarted. */
  newId(index: number): string;
  /** The stored records that the write is about. When a rule is awaited, the write waits for its turn at them. */
  touched: Set<string>;
  /** The records that its operations have inserted or updated, which the ones after them may refer to. [TB116] */
  written: Set<string>;
  prepared: Prepared;
  /** The cost of the deletions so far; one budget for the whole request. [TB141] */
  cascadeCost: number;
  /** The cost of the conditions of `if` so far. [TB303] */
  conditionCost: number;
  /** Grants that were determined again in this transaction. */
  grantsAsked: number;
  /** The bytes of the stored records that the write changes. [TB148] */
  stored: StoredBytes;
  /** Hooks to run after the commit. Cleared when the write is restarted. */
  afterCommit: AfterHook[];
}
