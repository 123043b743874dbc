import { describe, expect, test } from "bun:test";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { temporaryDirectory } from "../../../../tests/support/platform.ts";
import { type Random, random } from "../../../../tests/support/random.ts";
import { LENT_MAX } from "../limits.ts";
import { BorrowedFiles } from "./borrowed-files.ts";
import { LentFiles, type ToBorrower } from "./lent-files.ts";

const PLACES = 3;
const PATHS = ["a", "b", "c"];
const STEPS = 120;
const SEEDS = 3_000;

type Lent = new (...args: ConstructorParameters<typeof LentFiles>) => LentFiles;
type Borrowed = new (
  ...args: ConstructorParameters<typeof BorrowedFiles<{ path: string }>>
) => BorrowedFiles<{ path: string }>;

/** A reader: messages to and from it are under way for a while, in their order. */
class Reader {
  readonly open = new Set<object>();
  readonly inbox: ToBorrower[] = [];
  readonly outbox: number[] = [];
  readonly files: BorrowedFiles<{ path: string }>;
  #endings: (() => void)[] = [];

  constructor(type: Borrowed, r: Random) {
    this.files = new type({
      open: (path) => {
        if (r.chance(0.1)) return null;
        const file = { path };
        this.open.add(file);
        return file;
      },
      close: (file) => void this.open.delete(file),
      returned: (id) => void this.outbox.push(id),
      atEndOfTurn: (work) => void this.#endings.push(work),
    });
  }

  receive(): void {
    const message = this.inbox.shift();
    if (message?.kind === "lend") this.files.lent(message.id, message.path);
    if (message?.kind === "recall") this.files.recall(message.id);
  }

  endTurn(): void {
    for (const work of this.#endings.splice(0)) work();
  }

  has(path: string): boolean {
    return [...this.open].some((file) => (file as { path: string }).path === path);
  }
}

/** Runs one history. Returns what is wrong; null: nothing. */
async function history(seed: number, lentType: Lent, borrowedType: Borrowed): Promise<string | null> {
  const r = random(seed);
  let readers = Array.from({ length: PLACES }, () => new Reader(borrowedType, r));
  const timers = new Set<() => void>();
  let wrong: string | null = null;
  /** A reader that takes no messages; none in most histories. */
  const stuck = r.chance(0.2) ? r.below(PLACES) : null;
  const lent: LentFiles = new lentType({
    send: (place, message) => void readers[place]?.inbox.push(message),
    end(place) {
      if (place !== stuck) wrong ??= "a reader was ended that answers";
      readers = readers.map((reader, at) => (at === place ? new Reader(borrowedType, r) : reader));
      lent.gone(place);
    },
    clock: {
      after(_, work) {
        timers.add(work);
        return () => void timers.delete(work);
      },
    },
  });
  /** Files that their writer closes now. */
  const closing = new Set<string>();
  let waiting = 0;
  for (let step = 0; step < STEPS; step++) {
    const place = r.below(PLACES);
    const path = r.pick(PATHS);
    const reader = readers[place];
    if (reader === undefined) continue;
    const act = r.below(10);
    if (act < 3) lent.lend(place, path);
    else if (act < 5 && place !== stuck) reader.receive();
    else if (act < 6) reader.endTurn();
    else if (act < 8) {
      const id = reader.outbox.shift();
      if (id !== undefined) lent.returned(id);
    } else if (act === 8 && r.chance(0.3)) {
      if (r.chance(0.5)) reader.files.giveBack();
      else {
        readers[place] = new Reader(borrowedType, r);
        lent.gone(place);
      }
    } else if (!closing.has(path)) {
      closing.add(path);
      const recalled = lent.recall(path);
      waiting += 1;
      void Promise.resolve(recalled).then(() => {
        waiting -= 1;
        closing.delete(path);
        if (readers.some((one) => one.has(path))) wrong ??= `${path} is open in a reader after its recall`;
      });
      if (recalled === undefined && readers.some((one) => one.has(path))) wrong ??= `${path} was not recalled`;
    }
    await Promise.resolve();
    await Promise.resolve();
    await Promise.resolve();
  }
  for (const [place, reader] of readers.entries()) {
    for (let left = reader.inbox.length; left > 0 && place !== stuck; left--) reader.receive();
    reader.endTurn();
    for (const id of reader.outbox.splice(0)) lent.returned(id);
  }
  for (let turn = 0; turn < 10; turn++) await Promise.resolve();
  // Readers that do not answer in time are ended.
  for (const work of [...timers]) work();
  for (let turn = 0; turn < 10; turn++) await Promise.resolve();
  if (waiting > 0) wrong ??= "a recall does not end";
  return wrong;
}

async function firstWrong(lentType: Lent, borrowedType: Borrowed): Promise<string | null> {
  for (let seed = 1; seed <= SEEDS; seed++) {
    const wrong = await history(seed, lentType, borrowedType);
    if (wrong !== null) return `${seed}: ${wrong}`;
  }
  return null;
}

test("[WK30] no reader has a file open that was recalled, whatever messages were under way", async () => {
  expect(await firstWrong(LentFiles, BorrowedFiles)).toBeNull();
});

test("[WK31] a reader has a bounded number of files, and gives back those that it has not used for longest", () => {
  const returned: number[] = [];
  const files = new BorrowedFiles<string>({
    open: (path) => path,
    close() {},
    returned: (id) => void returned.push(id),
    atEndOfTurn: (work) => work(),
  });
  for (let id = 1; id <= LENT_MAX; id++) files.lent(id, `file ${id}`);
  files.get("file 1");
  files.lent(LENT_MAX + 1, "one more");
  expect(returned).toEqual([2]);
  expect([files.get("file 1"), files.get("file 2"), files.get("one more")]).toEqual(["file 1", null, "one more"]);
});

/** [file, what is wrong, its text, what stands in its place] */
const PLANTED: readonly (readonly ["lent-files" | "borrowed-files", string, string, string])[] = [
  ["lent-files", "a file is lent while it is recalled", "if (this.#recalls.has(path)) return;", ""],
  [
    "lent-files",
    "the first reader that returns a file ends the recall",
    "if (readers !== undefined && readers.size > 0) return;",
    "",
  ],
  ["lent-files", "a reader that does not answer is waited for", "this.#end(place);\n    });", "place;\n    });"],
  ["lent-files", "a reader that has ended keeps its files", "for (const [id] of ids) this.returned(id);", "ids;"],
  [
    "lent-files",
    "only one reader is asked",
    "for (const [id, place] of readers) this.#send(place",
    "for (const [id, place] of [...readers].slice(0, 1)) this.#send(place",
  ],
  [
    "borrowed-files",
    "a file is returned before it is closed",
    "this.#close(held.file);\n      this.#returned(id);\n    });",
    "this.#close(held.file);\n    });\n    this.#returned(id);",
  ],
  ["borrowed-files", "a file that cannot be opened is not returned", "this.#returned(id);\n      return;", "return;"],
];

describe.each(PLANTED)("[WK32] the simulation finds it in %s", (name, what, text, instead) => {
  test(what, async () => {
    const source = readFileSync(join(import.meta.dir, `${name}.ts`), "utf8");
    expect(source).toContain(text);
    const file = join(temporaryDirectory(), "planted.ts");
    const at = (path: string) => JSON.stringify(join(import.meta.dir, path));
    const planted = source
      .replace(text, instead)
      .replaceAll('"../limits.ts"', at("../limits.ts"))
      .replace('"../../../kernel/bounded-map.ts"', at("../../../kernel/bounded-map.ts"));
    writeFileSync(file, planted);
    const types: { LentFiles?: Lent; BorrowedFiles?: Borrowed } = await import(file);
    expect(await firstWrong(types.LentFiles ?? LentFiles, types.BorrowedFiles ?? BorrowedFiles)).not.toBeNull();
  });
});
