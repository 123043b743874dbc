import type { Logger } from "../../../../kernel/logger.ts";
import { emailOf, lowerCasedEmail, normalizeEmail } from "../../../config/shapes/user-fields.ts";
import { ADDRESS_FORMS_NAMED_MAX, ADDRESS_FORMS_PER_STEP } from "../limits.ts";
import { otherForms, renameAddress, userByEmail } from "../statements/users.ts";
import type { AccountFile, AccountWrite } from "./account-file.ts";

// Earlier releases stored an address as it was typed, in lower case: `ann@münchen.de` and `ann@xn--mnchen-3ya.de` could be two accounts.
// Each start gives accounts the one form of their address. Where two accounts would have one address, both stay as they are, and
// are reached by what was typed before: nobody is locked out, and nothing is merged. Which of them goes is for an administrator.

/** The address of an account for a text that `Email` has accepted: its one form, but for accounts that keep another. */
export type AddressOf = (text: string) => string;

/** Changes stored addresses to their one form, the verified ones first, and returns how to find the account of an address. */
export async function settleAddressForms({ file, logger }: { file: AccountFile; logger: Logger }): Promise<AddressOf> {
  await eachStep(file, (write, row) => row.emailVerified && settle(write, row));
  const kept = new Map<string, string>();
  await eachStep(file, (write, row) => {
    if (!settle(write, row)) kept.set(row.email, row.id);
  });
  if (kept.size > 0) {
    const users = [...kept.values()].slice(0, ADDRESS_FORMS_NAMED_MAX);
    logger.warn(
      "Accounts whose address another account has in another form keep it: change or delete one of each pair",
      {
        count: kept.size,
        users,
      },
    );
  }
  return (text) => {
    if (kept.size === 0) return emailOf(text);
    const typed = lowerCasedEmail(text);
    return kept.has(typed) ? typed : emailOf(text);
  };
}

type Row = { id: string; email: string; emailVerified: boolean };

async function eachStep(file: AccountFile, visit: (write: AccountWrite, row: Row) => unknown): Promise<void> {
  let after = "";
  for (;;) {
    const rows = otherForms.all(file.sql, { after, limit: ADDRESS_FORMS_PER_STEP });
    const last = rows.at(-1)?.email;
    if (typeof last !== "string") return;
    after = last;
    const visited = rows.flatMap(({ id, email, emailVerified }) =>
      email === null ? [] : [{ id, email, emailVerified }],
    );
    const other = visited.filter(({ email }) => (normalizeEmail(email) ?? email) !== email);
    if (other.length === 0) continue;
    await file.write((write) => {
      for (const row of other) visit(write, row);
    });
  }
}

/** false: another account has the address in its one form. */
function settle(write: AccountWrite, { id, email }: Row): boolean {
  const one = emailOf(email);
  if (userByEmail.get(write.tx, { email: one }) !== null) return false;
  renameAddress.run(write.tx, { id, email: one });
  write.marked(id);
  return true;
}
