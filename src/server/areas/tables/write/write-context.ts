import type { JsonObject } from "../../../../kernel/json/json.ts";
import type { ProfileChanges } from "../../../access/account-records.ts";
import type { Principal } from "../../../access/principal.ts";
import type { HookContext, TableHooks, TableRecord } from "../../../config/types.ts";
import type { Transaction } from "../../../db/index.ts";
import { type NewFiles, NO_FILES } from "../files/values.ts";
import type { RuleScope } from "../lookups/calls.ts";
import { type JsonTexts, NO_TEXTS } from "../model/codec.ts";
import type { TableModel } from "../model/model.ts";
import type { StoredBytes } from "../model/record-size.ts";
import type { Examined } from "../query/related-now.ts";
import type { Decisions } from "../rules/decisions.ts";

/** Results of a large request's preparation before its transaction. */
export interface Prepared {
  texts: JsonTexts;
  /**
   * New records by body, for inserts and for upserts that find none. The function throws its 400 only when called, in the order
   * of the operations.
   */
  records: ReadonlyMap<JsonObject, () => TableRecord>;
  /** Files of the request's form. */
  files: NewFiles;
  /** Whether the files have not arrived yet: the rules that need none are asked, and nothing is written. [TB722] */
  isTrial: boolean;
}

export const NOT_PREPARED: Prepared = { texts: NO_TEXTS, records: new Map(), files: NO_FILES, isTrial: false };

/** Returns the key of a record among those of all tables of a file. */
export const recordKey = ({ name }: TableModel, id: string): string => `${name} ${id}`;

/** Hook that runs once its write is on disk. */
export interface AfterHook {
  table: string;
  name: keyof TableHooks;
  /** Scope of its write, whose lookups it does not share. */
  rules: RuleScope;
  run(context: HookContext): unknown;
}

/** State of one request's write inside its transaction. */
export interface WriteContext {
  tx: Transaction;
  principal: Principal;
  decisions: Decisions;
  /** Scope for calling rules and hooks. Their lookups of this file see the transaction. */
  rules: RuleScope;
  /** Time as ISO 8601. Constant for the whole request, even when the write is restarted. */
  now: string;
  /** Returns the id for the n-th inserted record. Constant when the write is restarted. */
  newId(index: number): string;
  /** Stored records that the write concerns. When a rule is awaited, the write waits for its turn at them. */
  touched: Set<string>;
  /** Records that its operations have inserted or updated; later operations may refer to them. [TB116] */
  written: Set<string>;
  prepared: Prepared;
  /** Cost of the deletions so far; one budget for the whole request. [TB141] */
  cascadeCost: number;
  /** Ids of several references that were added or removed so far. [TB652] */
  linkedIds: number;
  /** Cost of the conditions of `if` so far. [TB303] */
  conditionCost: number;
  /** Number of records that the relations of conditions have examined so far. [TB611] */
  related: Examined;
  /** Number of grants determined again in this transaction. */
  grantsAsked: number;
  /** Bytes of the stored records that the write changes. [TB148] */
  stored: StoredBytes;
  /** Asks the account of a user for what has changed in the record. The write is answered when the account has it. */
  askAccount(model: TableModel, id: string, changes: ProfileChanges): void;
  /** Hooks to run after the commit. Cleared when the write is restarted. */
  afterCommit: AfterHook[];
}
