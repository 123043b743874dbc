import type { Database } from "bun:sqlite";
import type { AccountMembers } from "../../../access/account-records.ts";
import type { TableRecord } from "../../../config/types.ts";
import { quoteIdentifier } from "../../../db/index.ts";
import { createCodec } from "../model/codec.ts";
import { ADDRESS_COLUMN, BIRTH_COLUMN, type TableModel } from "../model/model.ts";
import { withDefaults } from "../write/changes.ts";

/** Returns what the account decides of its record. `email` is null where others may not see it. */
export const decided = (account: AccountMembers): TableRecord => ({
  displayName: account.displayName,
  avatarUrl: account.avatarUrl,
  isAnonymous: account.isAnonymous,
  email: account.isEmailPublic ? account.email : null,
});

/** Returns the record of a new account, with the defaults of the other fields. */
export function newRecord(model: TableModel, account: AccountMembers): TableRecord {
  const createdAt = new Date(account.createdAt).toISOString();
  return withDefaults(model, { ...decided(account), createdAt }, { id: account.id, now: createdAt });
}

/** Inserts a record for each account, into a new table that nobody uses yet. */
export function fillUsers(sqlite: Database, model: TableModel, accounts: Iterable<AccountMembers>): void {
  const codec = createCodec(model);
  const hidden = [ADDRESS_COLUMN, BIRTH_COLUMN].map(quoteIdentifier);
  const names = [model.selectList, ...hidden].join(", ");
  const slots = [...model.columns, ...hidden].map(() => "?").join(", ");
  using insert = sqlite.prepare(`INSERT INTO ${model.sql} (${names}) VALUES (${slots})`);
  for (const account of accounts) {
    insert.run(...codec.toValues(newRecord(model, account)), account.email, account.birth);
  }
}
