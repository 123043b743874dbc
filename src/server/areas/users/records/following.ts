import { conflict, serverStopping } from "../../../../kernel/errors.ts";
import type { Logger } from "../../../../kernel/logger.ts";
import { nextTurn } from "../../../../kernel/time/scheduler.ts";
import type { AccountMarks, AccountMembers, AccountRecords } from "../../../access/account-records.ts";
import type { Readable } from "../../../db/query.ts";
import type { DatabaseFile, Transaction } from "../../../db/types.ts";
import {
  accountById,
  accountsAfter,
  beginFollowing,
  deleteMark,
  deleteMarks,
  endFollowing,
  following,
  markedUsers,
  markOf,
  nextMark,
  relyOn,
  setFollowing,
  setMark,
} from "../statements/records.ts";
import { type AccountsTx, carryOut, copy, copyCleared, copyMarked, type Files, mend, settle } from "./machine.ts";

/** Accounts whose records somebody waits for. */
interface Waiting {
  ids: readonly string[];
  resolve(): void;
  reject(cause: unknown): void;
}

/** Accounts that are copied in one commit. */
const COPIED_TOGETHER = 100;
const ACCOUNTS_PER_PAGE = 1_000;

/** Keeps the records of the table of users like the accounts. */
export interface FollowingRecords extends AccountMarks {
  /** Returns all accounts in order of creation. */
  accounts(): Iterable<AccountMembers>;
  /** Brings the records up to date, and keeps them so from now on. Before that, accounts are only marked. */
  attach(records: AccountRecords, changeAccounts: Files["changeAccounts"]): Promise<void>;
  /** Resolves when the accounts have what updates of records have asked for so far. */
  carriedOut(): Promise<void>;
  /** Waits for what is under way. */
  stop(): Promise<void>;
}

/** Does nothing: there is no table of users. */
const NOT_FOLLOWING: FollowingRecords = {
  mark() {},
  copied: () => Promise.resolve(),
  accounts: () => [],
  async deleting(_id, work) {
    await work();
    return {};
  },
  merge: () => Promise.resolve(null),
  attach: () => Promise.resolve(),
  carriedOut: () => Promise.resolve(),
  stop: () => Promise.resolve(),
};

/**
 * Begins to mark accounts. `place`: the table of users; null: there is none, and what was followed before is forgotten, since accounts
 * change without marks from now on.
 */
export async function followAccounts(deps: {
  file: DatabaseFile;
  place: string | null;
  logger: Logger;
}): Promise<FollowingRecords> {
  const { file, place, logger } = deps;
  const isFollowing = following.get(file, {}) !== null;
  if (place !== null) {
    if (!isFollowing) await file.write((tx) => beginFollowing.run(tx, {}));
    return new Following(file, place, logger);
  }
  if (isFollowing) {
    await file.write((tx) => {
      deleteMarks.run(tx, {});
      endFollowing.run(tx, {});
    });
  }
  return NOT_FOLLOWING;
}

class Following implements FollowingRecords {
  readonly #file: DatabaseFile;
  readonly #place: string;
  readonly #logger: Logger;
  /** The files, once the records are as the accounts were. */
  #files: Files | null = null;
  #records: AccountRecords | null = null;
  #waiting: Waiting[] = [];
  #running: Promise<void> | null = null;
  readonly #settling = new Set<Promise<void>>();
  /** Whether marks may be left of a copy that failed. */
  #isBehind = false;
  /** Accounts that are being merged: they are not deleted meanwhile. */
  readonly #merging = new Set<string>();
  /** Counts, by `namespace/table`, of what referred to accounts that are being deleted. */
  readonly #leaving = new Map<string, Map<string, number>>();
  /** Records whose references end beside requests: those of deletions that a crash has interrupted. */
  readonly #resumed = new Set<string>();
  #resuming: Promise<void> = Promise.resolve();
  /** The pass that carries changes out now, and the pass behind it. */
  #carrying: Promise<void> | null = null;
  #carryingNext: Promise<void> | null = null;
  readonly #stopping = new AbortController();

  constructor(file: DatabaseFile, place: string, logger: Logger) {
    this.#file = file;
    this.#place = place;
    this.#logger = logger;
  }

  mark(tx: Transaction, id: string): void {
    markIn(tx, id);
  }

  copied(ids: readonly string[]): Promise<void> {
    const files = this.#files;
    if (files === null || ids.length === 0) return Promise.resolve();
    return copyCleared(files, ids, () => this.#queued(files, ids));
  }

  #queued(files: Files, ids: readonly string[]): Promise<void> {
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    this.#waiting.push({ ids, resolve, reject });
    this.#running ??= this.#run(files);
    return promise;
  }

  async merge(
    asked: Parameters<FollowingRecords["merge"]>[0],
    options: { isPreview: boolean },
  ): Promise<Record<string, number> | null> {
    const { into, from } = asked;
    const records = this.#records;
    if (records === null) return null;
    const far = await records.countFar(from, this.#stopping.signal);
    if (options.isPreview) return { ...(await records.merge(asked, options)), ...far };
    if ([into, from].some((id) => records.isHeld(id) || this.#merging.has(id))) {
      throw conflict("One of the accounts is being deleted or merged");
    }
    // Nothing refers to the account that goes from here on, and the one that stays stays until that is done.
    const release = records.hold(from);
    this.#merging.add(into).add(from);
    try {
      const counts = await records.merge(asked, options);
      await this.carriedOut();
      return { ...counts, ...far };
    } finally {
      this.#merging.delete(into);
      this.#merging.delete(from);
      release();
    }
  }

  async deleting(id: string, work: () => Promise<unknown>): Promise<Record<string, number>> {
    const records = this.#records;
    if (records === null) return NOT_FOLLOWING.deleting(id, work);
    if (this.#merging.has(id)) throw conflict("This account is being merged");
    const release = records.hold(id);
    const counts = new Map<string, number>();
    try {
      await records.refuseRestricted(id);
      this.#leaving.set(id, counts);
      await work();
      return Object.fromEntries(counts);
    } finally {
      if (this.#leaving.get(id) === counts) this.#leaving.delete(id);
      release();
    }
  }

  *accounts(): Generator<AccountMembers> {
    for (let after = 0; ; ) {
      const page = accountsAfter.all(this.#file, { after, limit: ACCOUNTS_PER_PAGE });
      for (const row of page) yield membersOf(row);
      const last = page.at(-1);
      if (last === undefined) return;
      after = last.seq;
    }
  }

  carriedOut(): Promise<void> {
    const files = this.#files;
    if (files === null) return Promise.resolve();
    const begin = (): Promise<void> => {
      this.#carryingNext = null;
      const carrying = carryOut(files).finally(() => {
        if (this.#carrying === carrying) this.#carrying = null;
      });
      this.#carrying = carrying;
      return carrying;
    };
    if (this.#carrying === null) return begin();
    // What runs may have read before this was asked. What failed is asked again.
    this.#carryingNext ??= this.#carrying.then(begin, begin);
    return this.#carryingNext;
  }

  async attach(records: AccountRecords, changeAccounts: Files["changeAccounts"]): Promise<void> {
    const file = this.#file;
    const place = this.#place;
    const files: Files = {
      system: (work) =>
        // An object is never a promise, which the type cannot see through `T`.
        file
          .write<{ result: unknown }>((tx) => ({ result: work(accountsTx(tx, place)) }))
          .then(({ result }) => result as ReturnType<typeof work>),
      readSystem: (work) => work(accountsView(file, place)),
      changeAccounts,
      data: (work) => records.write(work),
      records: {
        ...records,
        clear: (id) =>
          records.clear(id, this.#stopping.signal, (at) => {
            const counts = this.#leaving.get(id);
            counts?.set(at, (counts.get(at) ?? 0) + 1);
          }),
      },
      pause: nextTurn,
    };
    await records.ready();
    const left = await mend(files);
    this.#files = files;
    this.#records = records;
    this.#resume(files, left);
  }

  async stop(): Promise<void> {
    this.#stopping.abort(serverStopping());
    await this.#resuming;
    await Promise.allSettled([this.#carrying, this.#carryingNext]);
    await this.#running;
    await Promise.all(this.#settling);
  }

  /** Goes on with deletions, one after another. What fails is tried again by the next start. */
  #resume(files: Files, ids: readonly string[]): void {
    const { signal } = this.#stopping;
    for (const id of ids) {
      if (this.#resumed.has(id)) continue;
      this.#resumed.add(id);
      const release = files.records.hold(id);
      const resumed = this.#resuming
        .then(() => copyCleared(files, [id], () => this.#queued(files, [id])))
        .then(
          () => void this.#resumed.delete(id),
          (cause: unknown) => {
            if (!signal.aborted) this.#logger.error(`The record of the deleted user ${id} cannot go yet`, { cause });
          },
        );
      this.#resuming = resumed.finally(release);
    }
  }

  /** Copies for those who wait, several of them together, until nobody waits. */
  async #run(files: Files): Promise<void> {
    while (this.#waiting.length > 0) {
      const round: Waiting[] = [];
      let count = 0;
      for (const next of this.#waiting) {
        if (round.length > 0 && count + next.ids.length > COPIED_TOGETHER) break;
        round.push(next);
        count += next.ids.length;
      }
      this.#waiting = this.#waiting.slice(round.length);
      const ids = round.flatMap((one) => one.ids);
      try {
        for (let at = 0; at < ids.length; at += COPIED_TOGETHER)
          await this.#copy(files, ids.slice(at, at + COPIED_TOGETHER));
        for (const { resolve } of round) resolve();
        if (this.#isBehind) await this.#catchUp(files);
      } catch (cause) {
        // Their marks stay, for the next copy or the next start.
        this.#isBehind = true;
        for (const { reject } of round) reject(cause);
      }
    }
    this.#running = null;
  }

  async #catchUp(files: Files): Promise<void> {
    await Promise.all(this.#settling);
    this.#resume(files, await copyMarked(files));
    this.#isBehind = false;
  }

  async #copy(files: Files, ids: readonly string[]): Promise<void> {
    const copied = await copy(files, ids);
    if (copied === null) return;
    if (copied.left.length > 0) this.#isBehind = true;
    // Nobody waits for it: a mark that stays is copied again by the next start.
    const settled = settle(files, copied).catch((cause: unknown) => {
      this.#logger.error("The marks of copied accounts could not be taken off", { cause });
    });
    this.#settling.add(settled);
    void settled.then(() => this.#settling.delete(settled));
  }
}

function membersOf(row: NonNullable<ReturnType<typeof accountById.get>>): AccountMembers {
  const { seq, emailVisibility, ...members } = row;
  return { ...members, birth: seq, isEmailPublic: emailVisibility === "public" };
}

/** The number of a transaction's marks: an import has a thousand of them. */
const numbers = new WeakMap<Transaction, number>();

function markIn(tx: Transaction, userId: string): void {
  const mark = numbers.get(tx) ?? nextMark.get(tx, {})?.lastMark;
  if (mark === undefined) throw new Error("accounts are marked, and nobody follows them");
  numbers.set(tx, mark);
  setMark.run(tx, { userId, mark });
}

type AccountsView = Pick<AccountsTx, "account" | "markOf" | "marked" | "accountsAfter" | "seen">;

function accountsView(sql: Readable, place: string): AccountsView {
  return {
    account(id) {
      const row = accountById.get(sql, { id });
      return row === null ? null : membersOf(row);
    },
    markOf: (id) => markOf.get(sql, { userId: id })?.mark ?? null,
    marked: (page) => markedUsers.all(sql, page).map(({ userId: id, mark }) => ({ id, mark })),
    accountsAfter: (after, limit) => accountsAfter.all(sql, { after, limit }).map(membersOf),
    seen() {
      const row = following.get(sql, {});
      const count = row === null || row.place !== place ? null : row.seenCount;
      return { last: row?.lastMark ?? 0, count, asked: row?.lastAsked ?? 0 };
    },
  };
}

function accountsTx(tx: Transaction, place: string): AccountsTx {
  const view = accountsView(tx, place);
  return {
    ...view,
    mark: (id) => markIn(tx, id),
    unmark: (id, mark) => void deleteMark.run(tx, { userId: id, mark }),
    relyOn: (count) => void relyOn.run(tx, { count }),
    agree: ({ count, mark, asked }) =>
      void setFollowing.run(tx, {
        place,
        lastMark: Math.max(view.seen().last, mark),
        seenCount: count,
        lastAsked: asked,
      }),
  };
}
