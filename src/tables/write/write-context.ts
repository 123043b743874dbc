import type { Principal } from "../../access/principal.ts";
import type { Transaction } from "../../db/index.ts";
import type { RuleScope } from "../lookups/calls.ts";
import type { Decisions } from "../rules/decisions.ts";
import type { AfterHook } from "./after-hooks.ts";
import type { JsonTexts } from "./json-texts.ts";
import type { StoredBytes } from "./stored-bytes.ts";

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
  texts: JsonTexts;
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
