import { describe, expect, test } from "bun:test";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { temporaryDirectory } from "../../../../tests/support/platform.ts";
import { type Random, random } from "../../../../tests/support/random.ts";
import { AnsweredElsewhere, type CommitPage, type KeptState, ReadCut, type SnapshotSource } from "./read-cut.ts";

const FILES = 3;
const WRITES = 12;
const REQUESTS = 16;

/** Mistakes of a writer, which a reader cannot make up for. */
interface WriterMistakes {
  raisesBefore?: boolean;
  answersBeforeRaise?: boolean;
  raisesAtSync?: boolean;
  raisesAllFirst?: boolean;
}

/** The writer, in steps between which a reader may do anything. A commit is the number of its place in the order of all commits. */
class SimulatedWriter {
  /** Commits that are visible, by file, ascending. */
  readonly visible: number[][] = Array.from({ length: FILES }, () => [0]);
  /** The last commit that was answered, as of which every later request has to see its file. */
  answered: number[] = Array.from({ length: FILES }, () => 0);
  raised = 0;
  /** The counts of each file alone. */
  readonly raisedIn: number[] = Array.from({ length: FILES }, () => 0);
  isFailed = false;
  #commits = 0;
  readonly #steps: (() => void)[] = [];

  constructor(r: Random, mistakes: WriterMistakes) {
    const syncs: { after: number; run: () => void }[] = [];
    for (let write = 0; write < WRITES; write++) {
      const file = r.below(FILES);
      let place = 0;
      const show = () => {
        place = ++this.#commits;
        this.visible[file]?.push(place);
      };
      const raiseAll = () => {
        this.raised += 1;
      };
      const raiseOne = () => {
        this.raisedIn[file] = (this.raisedIn[file] ?? 0) + 1;
      };
      const raises = mistakes.raisesAllFirst === true ? [raiseAll, raiseOne] : [raiseOne, raiseAll];
      const answer = () => {
        this.answered[file] = Math.max(this.answered[file] ?? 0, place);
      };
      if (mistakes.raisesBefore === true) this.#steps.push(...raises, show);
      else if (mistakes.raisesAtSync === true) this.#steps.push(show);
      else if (mistakes.answersBeforeRaise === true) this.#steps.push(show, answer, ...raises);
      else this.#steps.push(show, ...raises);
      // A sync ends while later transactions commit.
      const synced = (): void => {
        if (mistakes.raisesAtSync === true) for (const raise of raises) raise();
        answer();
      };
      syncs.push({ after: this.#steps.length + r.below(4), run: synced });
    }
    for (const { after, run } of syncs.reverse()) this.#steps.splice(after, 0, run);
  }

  get isDone(): boolean {
    return this.#steps.length === 0;
  }

  step(): void {
    this.#steps.shift()?.();
  }
}

type Cut = new (page: CommitPage, atEndOfTurn: (work: () => void) => void) => ReadCut;

interface Seen {
  file: number;
  commit: number;
}

/** Whether one moment shows all of this, and everything that had been answered. */
function isOfOneMoment(
  seen: readonly Seen[],
  answered: readonly number[],
  visible: readonly (readonly number[])[],
): boolean {
  let [least, most] = [0, Number.POSITIVE_INFINITY];
  for (const { file, commit } of seen) {
    least = Math.max(least, commit);
    const next = (visible[file] ?? []).find((other) => other > commit);
    if (next !== undefined) most = Math.min(most, next - 1);
  }
  const isOwn = seen.every(({ file, commit }) => commit >= (answered[file] ?? 0));
  return least <= most && isOwn;
}

/** Runs one history. Returns what is wrong with an answer, and how many requests were answered here. */
function history(seed: number, cutType: Cut, mistakes: WriterMistakes): { wrong: string | null; answered: number } {
  const r = random(seed);
  const writer = new SimulatedWriter(r, mistakes);
  /** Eagerness of the writer in this history: in most, all of a request passes between two of its steps. */
  const chance = r.pick([0.02, 0.1, 0.3]);
  const meanwhile = (): void => {
    while (r.chance(chance) && !writer.isDone) writer.step();
  };
  const between = (read: () => number): number => {
    meanwhile();
    const value = read();
    meanwhile();
    return value;
  };
  const page: CommitPage = {
    committed: () => between(() => writer.raised),
    committedIn: (path) => between(() => writer.raisedIn[Number(path)] ?? 0),
    mayAnswer: () => !writer.isFailed,
  };
  const endings: (() => void)[] = [];
  const cut = new cutType(page, (work) => void endings.push(work));
  const snapshots: (number | null)[] = Array.from({ length: FILES }, () => null);
  const sources: SnapshotSource[] = snapshots.map((_, file) => ({
    path: String(file),
    begin() {
      meanwhile();
      snapshots[file] = writer.visible[file]?.at(-1) ?? 0;
      meanwhile();
    },
    end() {
      snapshots[file] = null;
    },
    version: () => snapshots[file] ?? -1,
  }));
  /** Two things of each file that were read in earlier requests, and the counts under which they are kept. */
  const kept = new Map<string, KeptState>();
  let answeredHere = 0;
  let wrong: string | null = null;

  /** A request in parts: between two of them others run in the same turn, or the turn ends. */
  function* request(): Generator<void> {
    const answered = [...writer.answered];
    const id = cut.enter();
    if (id === null) return;
    const seen: Seen[] = [];
    const reads = 1 + r.below(4);
    try {
      for (let read = 0; read < reads; read++) {
        if (r.chance(0.2)) yield;
        const file = r.below(FILES);
        const source = sources[file];
        if (source === undefined) continue;
        const thing = `${file} ${r.below(2)}`;
        const known = kept.get(thing);
        if (known !== undefined && r.chance(0.7) && cut.keeps(source, known)) {
          meanwhile();
          seen.push({ file, commit: known.version });
          continue;
        }
        cut.read(source);
        meanwhile();
        const commit = snapshots[file] ?? -1;
        seen.push({ file, commit });
        const state = cut.stateOf(source);
        if (state !== null) kept.set(thing, state);
      }
    } catch (cause) {
      if (!(cause instanceof Error && cause.message === new AnsweredElsewhere().message)) throw cause;
      // A rule may catch this error, and decide without what it has not read.
      if (r.chance(0.5)) return;
      seen.push({ file: 0, commit: -1 });
    }
    if (!cut.stands(id)) return;
    answeredHere += 1;
    if (seen.some(({ commit }) => commit < 0)) wrong ??= "decided without a read";
    else if (!isOfOneMoment(seen, answered, writer.visible))
      wrong ??= `mixed or old: ${JSON.stringify({ seen, answered })}`;
  }

  let running: Generator<void>[] = [];
  for (let made = 0; made < REQUESTS || running.length > 0; ) {
    if (made < REQUESTS && r.chance(0.7)) {
      made += 1;
      running.push(request());
    }
    running = running.filter((one) => !r.chance(0.8) || one.next().done !== true);
    meanwhile();
    if (r.chance(0.3)) {
      for (const end of endings.splice(0)) end();
      writer.step();
    }
  }
  return { wrong, answered: answeredHere };
}

const SEEDS = 20_000;

/** Returns the first seed with a wrong answer; null: there is none. */
function firstWrong(cutType: Cut, mistakes: WriterMistakes = {}): { seed: number; wrong: string } | null {
  for (let seed = 1; seed <= SEEDS; seed++) {
    const { wrong } = history(seed, cutType, mistakes);
    if (wrong !== null) return { seed, wrong };
  }
  return null;
}

test("[WK10] [WK11] every answer of a reader is of one moment, which is not before a write that was answered before", () => {
  expect(firstWrong(ReadCut)).toBeNull();
});

test("[WK12] most requests are answered by the reader", () => {
  let answered = 0;
  for (let seed = 1; seed <= 1_000; seed++) answered += history(seed, ReadCut, {}).answered;
  expect(answered / (1_000 * REQUESTS)).toBeGreaterThan(0.4);
});

describe("[WK13] the simulation finds a mistake of the writer", () => {
  test.each<[string, WriterMistakes]>([
    ["commits are counted before they are visible", { raisesBefore: true }],
    ["a write is answered before its commit is counted", { answersBeforeRaise: true }],
    ["commits are counted with their sync", { raisesAtSync: true }],
    ["commits are counted in all files before they are in their own", { raisesAllFirst: true }],
  ])("%s", (_, mistakes) => {
    expect(firstWrong(ReadCut, mistakes)).not.toBeNull();
  });
});

/** [what is wrong, the text of the source, what stands in its place] */
const PLANTED: readonly (readonly [string, string, string])[] = [
  ["a further snapshot is not compared with the count", "this.#page.committed() === this.#committed && ", ""],
  [
    "the count is read after the first snapshot",
    "source.begin();\n    this.#open.set(source, count);",
    "source.begin();\n    if (isFirst) this.#committed = this.#page.committed();\n    this.#open.set(source, count);",
  ],
  [
    "a request joins a cut whatever was committed since",
    "(this.#isBegun && this.#page.committed() !== this.#committed)",
    "false",
  ],
  ["an answer is sent whatever cut it was begun in", "id === this.#id && this.#isWhole", "this.#isWhole"],
  ["an answer is sent from a cut that is not whole", "id === this.#id && this.#isWhole", "id === this.#id"],
  ["a new cut has the id of the former", "this.#id += 1;", ""],
  [
    "the snapshot of a file is kept across cuts",
    "for (const source of this.#open.keys()) source.end();\n    this.#open.clear();",
    "",
  ],
  [
    "what is kept is used whatever was committed since",
    "if (this.#page.committedIn(source.path) !== count) return false;",
    "",
  ],
  ["what is kept is used before the count of all is read", "if (!this.#isBegun) this.#beginCut();\n    if (", "if ("],
  ["something kept stands beside a snapshot of another state of its file", " && kept === source.version()", ""],
  ["what is kept is used although the file has a snapshot", "if (this.#open.has(source)) return false;", ""],
  ["two kept states stand beside each other", "other === undefined || other === version", "true"],
  [
    "the count under which something is kept is read after its snapshot",
    "const count = this.#page.committedIn(source.path);\n    source.begin();",
    "source.begin();\n    const count = this.#page.committedIn(source.path);",
  ],
];

test.each(PLANTED)("[WK13] the simulation finds it when %s", async (_, text, instead) => {
  const source = readFileSync(join(import.meta.dir, "read-cut.ts"), "utf8");
  expect(source).toContain(text);
  const file = join(temporaryDirectory(), "planted.ts");
  const errors = JSON.stringify(join(import.meta.dir, "../../../kernel/errors.ts"));
  writeFileSync(file, source.replace(text, instead).replace('"../../../kernel/errors.ts"', errors));
  const planted: { ReadCut: Cut } = await import(file);
  expect(firstWrong(planted.ReadCut)).not.toBeNull();
});

test("[WK14] a reader that may not answer begins nothing, and what it has begun does not stand", () => {
  let mayAnswer = true;
  const cut = new ReadCut({ committed: () => 0, committedIn: () => null, mayAnswer: () => mayAnswer }, () => {});
  const id = cut.enter();
  expect(id).not.toBeNull();
  expect(cut.stands(id ?? 0)).toBe(true);
  mayAnswer = false;
  expect(cut.stands(id ?? 0)).toBe(false);
  expect(cut.enter()).toBeNull();
});
