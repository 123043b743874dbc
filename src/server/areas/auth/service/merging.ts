import { badField, conflict, notFound } from "../../../../kernel/errors.ts";
import { DAY_MS } from "../../../../kernel/time/duration.ts";
import type { AskedMerge } from "../../../access/account-records.ts";
import type { MergedAccounts } from "../../../access/accounts.ts";
import type { Actor } from "../../../db/index.ts";
import type { AuthDeps } from "../sessions/deps.ts";
import { identitiesOfUser, moveIdentities, movePasskeys } from "../statements/means.ts";
import { type SecretAccount, userById } from "../statements/users.ts";
import type { AccountWrite } from "../store/account-file.ts";
import { requireUser } from "./means.ts";

// Two accounts of one person become one. The file of the table of users comes first, in one commit: it moves what refers to the account
// that goes, and says that the accounts are to be merged. That commit decides. system.db follows, last, in one commit, by the mechanism
// that gives accounts what updates of their records ask for: also after a crash, before anything is answered, and only once.

/** Merges an account into another one, which keeps role, claims, password and address. See `Accounts.merge`. */
export async function mergeAccounts(
  deps: AuthDeps,
  { into, from, isPreview }: { into: string; from: string; isPreview: boolean },
  by: Actor,
): Promise<MergedAccounts> {
  const { file } = deps;
  const staying = requireUser(file.sql, into);
  if (into === from) throw badField("from", "invalid_value", "An account cannot be merged into itself");
  if (staying.isAnonymous) throw conflict("An anonymous account can be merged into another one, and not the other way");
  const going = userById.get(file.sql, { id: from });
  if (going === null) throw notFound(`There is no user "${from}"`);
  const counts = { files: deps.holdings.countFiles(file.sql, from), identities: identitiesOf(deps, from) };
  const merge = { from, birth: going.seq, by };
  const records = await file.merge({ ...merge, into }, { isPreview });
  if (records === null && !isPreview) {
    await file.write((write) => {
      const account = requireUser(write.tx, into);
      if (userById.get(write.tx, { id: from })?.seq !== going.seq) throw conflict("The account has changed meanwhile");
      write.audit(by, { action: "user.merge", target: `users/${into}`, after: { from } });
      // No more than one transaction moves: nothing would go on with the rest after a crash.
      deps.holdings.countFiles(write.tx, from);
      joinAccounts(deps, write, account, merge);
    });
  }
  return { records: records ?? {}, ...counts };
}

const identitiesOf = ({ file }: AuthDeps, userId: string): number => identitiesOfUser.all(file.sql, { userId }).length;

/**
 * Moves the identities, passkeys and files of another account to this one, and deletes that one. Returns false if it holds more
 * files than one transaction moves; it stays for now.
 */
export function joinAccounts(
  deps: AuthDeps,
  write: AccountWrite,
  account: SecretAccount,
  { from, birth, by }: AskedMerge,
): boolean {
  const going = userById.get(write.tx, { id: from });
  // Another account has got the id since, or none has it: this file comes from another moment.
  if (going?.seq !== birth) return true;
  const moving = { userId: from, to: account.id };
  if (!deps.holdings.move(write.tx, moving)) return false;
  // An address that proves one account proves nothing about the other.
  moveIdentities.run(write.tx, { ...moving, email: account.email });
  movePasskeys.run(write.tx, moving);
  for (const { email, displayName: name, language } of [going, account]) {
    if (email === null) continue;
    const mail = { kind: "accountMerged", values: { email, name }, language, ttlMs: DAY_MS } as const;
    deps.mailer.post(write.tx, { ...mail, delivery: "mail" });
  }
  write.delete(from, by, { isAudited: false });
  // Two accounts cannot have one number.
  if (account.phone === null && going.phone !== null) write.update(account.id, { phone: going.phone });
  return true;
}
