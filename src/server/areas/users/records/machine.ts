import type { AccountMembers, AskedChange, RecordsTx } from "../../../access/account-records.ts";

// Keeps a record for each account, in two files that cannot commit together.
//
// system.db has the truth about accounts, and a list of those that the records may lack: marks. A mark is written in the commit that
// creates, changes or deletes the account. What is marked is copied, then the mark is taken off; copying twice does no harm. So a crash
// between any two commits loses nothing: `mend` copies what is marked before anything is answered.
//
//   sign-up, change   system: account + mark  → data: record                              → system: mark off
//   deletion          system: account + mark  → data: references, in steps → data: record  → system: mark off
//
//   update of a record  data: record + what it asks  → system: account + mark + its number  → data: record → both: marks off
//
// What is asked has numbers, and system.db has the last one that it has carried out, so that nothing is done twice: a later change of
// the account would be lost.
//
// A record to which others refer stays, with its mark, until its references have ended. Nothing begins to refer to it meanwhile.
//
// Each file also knows how far it has seen the other one: one that is older than that was restored, and then all is compared.

/** One commit of system.db. Reading it at the same time is enough for what only reads. */
export interface AccountsTx {
  account(id: string): AccountMembers | null;
  markOf(id: string): number | null;
  /** Returns marks in their order, after the one with this number. */
  marked(page: { after: number; limit: number }): { id: string; mark: number }[];
  /** Returns accounts in order of creation, after the one with this birth. */
  accountsAfter(birth: number, limit: number): AccountMembers[];
  /** Lists the account, with a number that grows with each commit that marks. */
  mark(id: string): void;
  /** Takes the mark off unless it is a newer one. */
  unmark(id: string, mark: number): void;
  /** Relies on a count of the other file that has the copies. */
  relyOn(count: number): void;
  /** Takes over the counts of the other file, and gives no number from now on that it may have heard of. */
  agree(data: { readonly count: number; readonly mark: number; readonly asked: number }): void;
  /**
   * `last`: the last number; `count`: the highest of the other file that this one relies on; null: it is another file. `asked`: the
   * number of the last change that was carried out.
   */
  seen(): { readonly last: number; readonly count: number | null; readonly asked: number };
}

/** Reads of the records, outside of a commit. */
export interface RecordsView {
  isCopy(id: string, account: AccountMembers | null): boolean;
  ids(page: { after: string; limit: number }): string[];
  seen(): { readonly count: number; readonly mark: number };
  /** The first changes that updates have asked for, and the number of the last one that there ever was. */
  asked(limit: number): AskedChange[];
  lastAsked(): number;
  /** Whether a record has to go for this account, or for none, and other records refer to it. */
  isReferred(id: string, account: () => AccountMembers | null): boolean;
  /** Keeps others from beginning to refer to it, until the returned function is called. */
  hold(id: string): () => void;
  /** Ends the references to it, in several commits. */
  clear(id: string): Promise<void>;
}

export interface Files {
  system<T>(work: (tx: AccountsTx) => T): Promise<T>;
  /** Reads accounts without a commit. */
  readSystem<T>(work: (tx: Pick<AccountsTx, "account" | "markOf" | "marked" | "accountsAfter" | "seen">) => T): T;
  /**
   * Changes and marks the accounts in one commit of system.db, but for what it has carried out before, and notes the last number. An
   * account of another birth stays.
   */
  changeAccounts(asked: readonly AskedChange[]): Promise<void>;
  data<T>(work: (tx: RecordsTx) => T): Promise<T>;
  readonly records: RecordsView;
  /** Lets others have the event loop. */
  pause(): Promise<void>;
}

/** Accounts that are copied, or compared, together. */
const TOGETHER = 100;

/** A copy that is on disk, and whose marks are to be taken off. */
export interface Copied {
  /** Records that others refer to, and that have to go: they keep their marks. */
  left: readonly string[];
  marks: readonly { id: string; mark: number }[];
  count: number;
}

/** Copies accounts that are marked. They are read in the turn in which the commit is queued, so that no older state follows a newer one. */
export async function copy({ readSystem, data }: Files, ids: readonly string[]): Promise<Copied | null> {
  const found = readSystem((tx) =>
    ids.flatMap((id) => {
      const mark = tx.markOf(id);
      return mark === null ? [] : [{ id, mark, account: tx.account(id) }];
    }),
  );
  if (found.length === 0) return null;
  const { left, count } = await data((tx) => {
    const left = new Set<string>();
    for (const { id, account } of found) {
      const isDone = account === null ? tx.remove(id) : tx.put(account);
      if (!isDone) left.add(id);
    }
    return { left, count: tx.heard(Math.max(...found.map(({ mark }) => mark))) };
  });
  return { left: [...left], marks: found.filter(({ id }) => !left.has(id)), count };
}

/** Copies accounts by `copied`, after the references to records that go have ended. */
export function copyCleared(files: Files, ids: readonly string[], copied: () => Promise<void>): Promise<void> {
  const { records, readSystem } = files;
  const going = ids.filter((id) => records.isReferred(id, () => readSystem((tx) => tx.account(id))));
  if (going.length === 0) return copied();
  const releases = going.map((id) => records.hold(id));
  const clear = async (): Promise<void> => {
    for (const id of going) await records.clear(id);
    await copied();
  };
  return clear().finally(() => {
    for (const release of releases) release();
  });
}

/** Takes the marks of copied accounts off, but for those that were marked again. */
export const settle = ({ system }: Files, { marks, count }: Copied): Promise<void> =>
  system((tx) => {
    tx.relyOn(count);
    for (const { id, mark } of marks) tx.unmark(id, mark);
  });

/**
 * Does what a crash, a restore or the first start has left, before anything is answered. Returns the records that others refer to, and
 * that have to go.
 */
export async function mend(files: Files): Promise<string[]> {
  // First: what follows moves the counts that tell.
  if (isApart(files)) await compare(files);
  await carryOut(files);
  const left = await copyMarked(files);
  // From now on the file is known to have been compared, also where there was nothing to copy.
  if (files.records.seen().count === 0) await files.data((tx) => tx.heard(0));
  return left;
}

/** Gives accounts the changes that updates of their records have asked for so far. */
export async function carryOut(files: Files): Promise<void> {
  const { records, data } = files;
  const until = records.lastAsked();
  for (;;) {
    const asked = records.asked(TOGETHER);
    const last = asked.at(-1);
    if (last === undefined) return;
    await files.changeAccounts(asked);
    await data((tx) => tx.settleAsked(last.seq));
    if (last.seq >= until) return;
  }
}

/** Copies all that is marked. Returns the records that keep their marks. */
export async function copyMarked(files: Files): Promise<string[]> {
  const left: string[] = [];
  for (let after = 0; ; ) {
    const page = files.readSystem((tx) => tx.marked({ after, limit: TOGETHER }));
    const last = page.at(-1);
    if (last === undefined) return left;
    after = last.mark;
    const copied = await copy(
      files,
      page.map(({ id }) => id),
    );
    if (copied === null) continue;
    left.push(...copied.left);
    await settle(files, copied);
  }
}

/** Whether one of the files is older than the other one has seen it: it was restored, or has never had a record. */
function isApart({ readSystem, records }: Files): boolean {
  const system = readSystem((tx) => tx.seen());
  const data = records.seen();
  const isOlder = system.count === null || data.count === 0 || data.count < system.count;
  return isOlder || records.lastAsked() < system.asked || data.mark > system.last;
}

/** Marks every account whose record differs from it, and every record that has no account. */
async function compare(files: Files): Promise<void> {
  const { system, readSystem, records } = files;
  const mark = async (ids: readonly string[]): Promise<void> => {
    if (ids.length > 0) {
      await system((tx) => {
        for (const id of ids) tx.mark(id);
      });
    } else await files.pause();
  };
  // What a file of another moment asks for is older than the accounts.
  const asked = records.lastAsked();
  if (records.asked(1).length > 0) await files.data((tx) => tx.settleAsked(asked));
  const seen = { ...records.seen(), asked };
  // First, so that the marks have numbers that the other file has not heard of. Its count is taken over at the end.
  await system((tx) => tx.agree({ ...seen, count: Number.MAX_SAFE_INTEGER }));
  for (let after = 0; ; ) {
    const page = readSystem((tx) => tx.accountsAfter(after, TOGETHER));
    await mark(page.filter((account) => !records.isCopy(account.id, account)).map(({ id }) => id));
    const last = page.at(-1);
    if (last === undefined) break;
    after = last.birth;
  }
  for (let after = ""; ; ) {
    const ids = records.ids({ after, limit: TOGETHER });
    await mark(readSystem((tx) => ids.filter((id) => tx.account(id) === null)));
    const last = ids.at(-1);
    if (last === undefined) break;
    after = last;
  }
  await system((tx) => tx.agree(seen));
}
