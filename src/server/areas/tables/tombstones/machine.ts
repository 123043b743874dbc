// Ends references to records of another file that are deleted there. The two files cannot commit together.
//
// The file of the referenced tables (the target) logs each deletion as a numbered tombstone, in the transaction that deletes. A file
// that refers to them (a follower) has the place up to which it has carried tombstones out, and writes it after that: what a crash
// interrupts is carried out again, which does no harm.
//
//   target: record − , tombstone +   → follower: references − , in steps   → follower: place
//
// A reference is checked against the last commit of the target. Where a tombstone of that id has not been carried out, the write waits
// for it: a record that was created again under the id keeps what refers to it from then on.
//
// Where a record is deleted because another one takes its place, as in a merge of accounts, the target logs the other one with the
// tombstone. The follower moves the references then, in steps; those that cannot move end.
//
// The log is bounded, and files are restored. So a follower compares all its ids with the records where the log does not tell:
// The target keeps what takes the place of records longer than the log, for that.
//
// - The log has no tombstone of the follower's place with the same mark, a random text: it is cut, or of another history.
// - The newest record that the follower refers to does not exist. A restore, or a failure of power, may have taken its insert.

/** The place in the log of one target up to which a follower has carried tombstones out. */
export interface Place {
  /** Number of the last tombstone that was carried out; 0: none. */
  seq: number;
  /** Mark of that tombstone; empty for 0. */
  mark: string;
  /** The record that was created last among those to which a reference was written, by table. */
  newest: Readonly<Record<string, string>>;
}

export interface Tombstone {
  seq: number;
  mark: string;
  table: string;
  /** null: records of the table may have gone without tombstones, as by a migration. */
  id: string | null;
  /** The record to which its references move; null: they end. */
  into: string | null;
}

/** A deletion, by its number, of a record whose place another one has taken. */
export interface Move {
  seq: number;
  into: string;
}

/** The file of referenced tables. All is read from its last commit. */
export interface Target {
  /** Returns the place at the end of the log. */
  last(): Pick<Place, "seq" | "mark">;
  /** Returns the mark of a tombstone; null: the log does not have it. That of 0 is empty as long as nothing was cut. */
  markOf(seq: number): string | null;
  /** Returns the tombstones after a number, in their order. */
  after(seq: number, limit: number): Tombstone[];
  /** Returns those of the ids of which there is no record. */
  missing(table: string, ids: readonly string[]): string[];
  /** Returns the last move from this id; null: there is none, or the record that was deleted last under it has no heir. */
  lastMove(table: string, id: string): Move | null;
  /** Returns what became of a record that took the place of another one, the first time that it was deleted after that; null: it was not. */
  moveAfter(table: string, move: Move): { seq: number; into: string | null } | null;
}

/** A file that refers to tables of the target. */
export interface Follower {
  /** Tables of the target to which it can refer. */
  readonly tables: readonly string[];
  /** null: nothing in it has referred to the target yet. */
  place(): Place | null;
  /** Returns the ids after `after` that it refers to, in order. */
  ids(table: string, page: { after: string; limit: number }): string[];
  /** Makes what refers to a record refer to another one, in several commits. What cannot do so stays. */
  move(table: string, ids: { from: string; into: string }): Promise<void>;
  /** Ends the references to a record, in several commits. */
  end(table: string, id: string): Promise<void>;
  /** Writes the place in one commit, without the ids of `gone`, by table, in `newest`. A write may have changed `newest` meanwhile. */
  note(place: Pick<Place, "seq" | "mark">, gone: ReadonlyMap<string, string>): Promise<void>;
  /** Resolves when the writes of before are committed: they may have checked their references before a deletion. */
  settled(): Promise<void>;
  /** Yields the event loop. */
  pause(): Promise<void>;
}

/** Tombstones, or ids, that are looked at together. */
const TOGETHER = 100;
/** Moves one after another that are followed for one id. */
const MOVES_FOLLOWED_MAX = 100;

/** Whether a follower has something to carry out: a cheap question, asked at each opening. */
export function isBehind(target: Target, place: Place | null): boolean {
  if (place === null) return false;
  const { seq, mark } = target.last();
  return place.seq !== seq || place.mark !== mark || lacksNewest(target, place);
}

/**
 * Whether references to these records have to wait for a tombstone of before: for one of theirs, or that of the newest record, with
 * which they are compared.
 */
export function mustWait(
  target: Target,
  place: Place | null,
  { table, ids }: { table: string; ids: readonly string[] },
): boolean {
  if (place === null) return false;
  const { seq, mark } = target.last();
  if (place.seq === seq && place.mark === mark) return false;
  if (target.markOf(place.seq) !== place.mark) return true;
  const waiting = target.after(place.seq, TOGETHER);
  const concerned = [null, ...ids, place.newest[table] ?? null];
  return waiting.length === TOGETHER || waiting.some((one) => one.table === table && concerned.includes(one.id));
}

/** Carries out what the target's log has, or compares. Runs once at a time for a follower. */
export async function carryOut(target: Target, follower: Follower): Promise<void> {
  await follower.settled();
  for (;;) {
    const place = follower.place();
    if (place === null || !isBehind(target, place)) return;
    const isKnown = target.markOf(place.seq) === place.mark;
    const tombstones = isKnown ? target.after(place.seq, TOGETHER) : [];
    if (tombstones.length > 0) await carryOutSome(target, follower, tombstones);
    else await compare(target, follower, { tables: follower.tables, until: target.last() });
  }
}

const lacksNewest = (target: Target, { newest }: Place): boolean =>
  Object.entries(newest).some(([table, id]) => target.missing(table, [id]).length > 0);

async function carryOutSome(target: Target, follower: Follower, tombstones: readonly Tombstone[]): Promise<void> {
  const gone = new Map<string, string>();
  let done: Tombstone | undefined;
  for (const tombstone of tombstones) {
    const { table, id, into } = tombstone;
    if (id === null && done !== undefined) break;
    if (id === null) return compare(target, follower, { tables: [table], until: tombstone });
    // A move may lead to an id of before: what has been carried out for that must not be carried out again.
    if (into !== null && done !== undefined) break;
    done = tombstone;
    if (follower.tables.includes(table)) await endOne(follower, gone, table, { id, into });
    if (into !== null) break;
  }
  if (done !== undefined) await follower.note(done, gone);
}

/** Ends the references of these tables to records that do not exist. `until`: the place that this reaches. */
async function compare(
  target: Target,
  follower: Follower,
  { tables, until }: { tables: readonly string[]; until: Pick<Place, "seq" | "mark"> },
): Promise<void> {
  const gone = new Map<string, string>();
  for (const table of tables) {
    if (!follower.tables.includes(table)) continue;
    for (let after = ""; ; ) {
      const ids = follower.ids(table, { after, limit: TOGETHER });
      const end = ids.at(-1);
      if (end === undefined) break;
      for (const id of target.missing(table, ids)) {
        const into = heirUntil(target, table, { id, seq: until.seq });
        if (into !== id) await endOne(follower, gone, table, { id, into });
      }
      after = end;
      await follower.pause();
    }
    // The reference to it may have ended before.
    const newest = follower.place()?.newest[table];
    if (newest !== undefined && target.missing(table, [newest]).length > 0) gone.set(table, newest);
  }
  await follower.note(until, gone);
}

/**
 * Returns the record that has the place of a missing one at this number, over however many moves: later tombstones are carried out
 * after it. null: there is none; the id itself: it has the place of its own.
 */
function heirUntil(target: Target, table: string, { id, seq }: { id: string; seq: number }): string | null {
  let move = target.lastMove(table, id);
  if (move !== null && move.seq > seq) return id;
  for (let moves = 1; move !== null && moves < MOVES_FOLLOWED_MAX; moves++) {
    const { into } = move;
    const next = target.moveAfter(table, move);
    // Others may have had the id since: a number tells them apart.
    if (next !== null && next.seq > seq) return into;
    if (next === null) return target.missing(table, [into]).length === 0 ? into : null;
    move = next.into === null ? null : { seq: next.seq, into: next.into };
  }
  return null;
}

async function endOne(
  follower: Follower,
  gone: Map<string, string>,
  table: string,
  { id, into }: { id: string; into: string | null },
): Promise<void> {
  if (into !== null) await follower.move(table, { from: id, into });
  await follower.end(table, id);
  if (follower.place()?.newest[table] === id) gone.set(table, id);
}
