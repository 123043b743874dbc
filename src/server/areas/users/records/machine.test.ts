import { expect, test } from "bun:test";
import type { AccountMembers, AskedChange, AskedMerge, RecordsTx } from "../../../access/account-records.ts";
import { type AccountsTx, carryOut, copy, copyCleared, type Files, mend, settle } from "./machine.ts";

// Two files in memory, whose commits are the only steps: a seeded loop picks the next one, and may crash before or after it.

interface SystemFile {
  accounts: Map<string, AccountMembers>;
  marks: Map<string, number>;
  /** `count`: null before the records are followed. */
  seen: { last: number; count: number | null };
  lastAsked: number;
  /** Identities by the account that they sign in to. */
  identities: Map<string, string>;
  /** Accounts that have become part of another one, by id and birth. */
  joined: Set<string>;
}
/** A merge that the file of the records has decided, with the identities of the account that goes. */
interface Merged {
  from: string;
  birth: number;
  into: string;
  intoBirth: number;
  identities: string[];
}
interface DataFile {
  records: Map<string, AccountMembers & { bio: string }>;
  /** Number of other records that refer to one, like a foreign key. */
  references: Map<string, number>;
  asked: AskedChange[];
  lastAsked: number;
  seen: { count: number; mark: number };
  merged: Merged[];
}
interface Disk {
  system: SystemFile;
  data: DataFile;
}

/** Mistakes that the simulation has to find. */
type Mistake =
  | "no mark"
  | "unmark any"
  | "no births"
  | "unheard"
  | "no agreement"
  | "no comparison"
  | "removed all the same"
  | "not asked"
  | "unheard asked"
  | "carried out twice"
  | "taken off first"
  | "merged accounts first"
  | "merge not asked"
  | "merged while it goes";

function accountsTx(file: SystemFile, mistake: Mistake | null): AccountsTx {
  const ordered = () => [...file.accounts.values()].sort((a, b) => a.birth - b.birth);
  return {
    account: (id) => file.accounts.get(id) ?? null,
    markOf: (id) => file.marks.get(id) ?? null,
    marked: ({ after, limit }) =>
      [...file.marks]
        .map(([id, mark]) => ({ id, mark }))
        .filter(({ mark }) => mark > after)
        .sort((a, b) => a.mark - b.mark)
        .slice(0, limit),
    accountsAfter: (birth, limit) =>
      ordered()
        .filter((one) => one.birth > birth)
        .slice(0, limit),
    mark(id) {
      if (mistake !== "no mark") file.marks.set(id, ++file.seen.last);
    },
    unmark(id, mark) {
      if (file.marks.get(id) === mark || mistake === "unmark any") file.marks.delete(id);
    },
    relyOn(count) {
      file.seen.count = Math.max(file.seen.count ?? 0, count);
    },
    agree({ count, mark, asked }) {
      if (mistake !== "no agreement") file.lastAsked = asked;
      file.seen = { last: mistake === "no agreement" ? file.seen.last : Math.max(file.seen.last, mark), count };
    },
    seen: () =>
      mistake === "no comparison"
        ? { last: Number.MAX_SAFE_INTEGER, count: -1, asked: 0 }
        : { ...file.seen, asked: mistake === "unheard asked" ? 0 : file.lastAsked },
  };
}

function recordsTx(file: DataFile, mistake: Mistake | null): RecordsTx {
  const isReferred = (id: string) => file.references.has(id) && mistake !== "removed all the same";
  return {
    put(account) {
      const stored = file.records.get(account.id);
      const isSame = stored?.birth === account.birth || mistake === "no births";
      if (!isSame && isReferred(account.id)) return false;
      file.records.set(account.id, { ...account, bio: (isSame ? stored?.bio : undefined) ?? "" });
      return true;
    },
    remove(id) {
      if (isReferred(id)) return false;
      file.records.delete(id);
      return true;
    },
    settleAsked(seq) {
      file.asked = file.asked.filter((one) => one.seq > seq);
    },
    heard(mark) {
      file.seen.mark = mistake === "unheard" ? 0 : Math.max(file.seen.mark, mark);
      return ++file.seen.count;
    },
  };
}

/** Returns numbers from 0 to below 1, the same ones for a seed. */
function seeded(seed: number): () => number {
  let state = (seed * 2_654_435_761) >>> 0 || 1;
  return () => {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    state >>>= 0;
    return state / 2 ** 32;
  };
}

/** Gives the event loop to whatever goes on after a commit, until only commits are waited for. */
const idle = async (): Promise<void> => {
  for (let turn = 0; turn < 12; turn++) await Promise.resolve();
};

/** A server that runs on the disk until it crashes: commits wait until `commitOne` picks one. */
class Server implements Files {
  readonly #disk: Disk;
  readonly #mistake: Mistake | null;
  readonly #held = new Map<string, number>();
  readonly #merging = new Set<string>();
  /** Whether requests are answered. */
  isLive = false;
  #commits: Record<keyof Disk, (() => void)[]> = { system: [], data: [] };

  constructor(disk: Disk, mistake: Mistake | null) {
    this.#disk = disk;
    this.#mistake = mistake;
  }

  get waiting(): number {
    return this.#commits.system.length + this.#commits.data.length;
  }

  get records(): Files["records"] {
    const { data } = this.#disk;
    return {
      isCopy: (id, account) => {
        const { bio: _, ...record } = data.records.get(id) ?? { bio: "" };
        return Bun.deepEquals(account ?? {}, record);
      },
      ids: ({ after, limit }) =>
        [...data.records.keys()]
          .filter((id) => id > after)
          .sort()
          .slice(0, limit),
      seen: () => (this.#mistake === "no comparison" ? { count: Number.MAX_SAFE_INTEGER, mark: 0 } : { ...data.seen }),
      asked: (limit) => data.asked.slice(0, limit),
      lastAsked: () => data.lastAsked,
      isReferred: (id, account) => data.references.has(id) && data.records.get(id)?.birth !== account()?.birth,
      hold: (id) => {
        this.#held.set(id, (this.#held.get(id) ?? 0) + 1);
        return () => void this.#held.set(id, (this.#held.get(id) ?? 1) - 1);
      },
      clear: async (id) => {
        const step = (): boolean => {
          const left = (data.references.get(id) ?? 1) - 1;
          if (left > 0) data.references.set(id, left);
          else data.references.delete(id);
          return left > 0;
        };
        // What was asked before the user was held.
        await this.#commit("data", () => {});
        while (data.references.has(id) && (await this.#commit("data", step)));
      },
    };
  }

  system: Files["system"] = (work) => this.#commit("system", () => work(accountsTx(this.#disk.system, this.#mistake)));

  readSystem: Files["readSystem"] = (work) => work(accountsTx(this.#disk.system, this.#mistake));

  data: Files["data"] = (work) => this.#commit("data", () => work(recordsTx(this.#disk.data, this.#mistake)));

  changeAccounts: Files["changeAccounts"] = async (asked) => {
    const { system, data } = this.#disk;
    if (this.#mistake === "taken off first") await this.#commit("data", () => void data.asked.splice(0));
    await this.#commit("system", () => {
      for (const { seq, id, birth, changes, merge } of asked) {
        const account = system.accounts.get(id);
        if (account?.birth !== birth || (seq <= system.lastAsked && this.#mistake !== "carried out twice")) continue;
        if (merge !== undefined) this.#join(id, merge);
        else {
          system.accounts.set(id, { ...account, ...changes });
          accountsTx(system, this.#mistake).mark(id);
        }
      }
      system.lastAsked = Math.max(system.lastAsked, asked.at(-1)?.seq ?? 0);
    });
    if (this.isLive) for (const { id, merge } of asked) await this.copied(merge?.from ?? id);
  };

  /** Gives an account what another one signs in with, and deletes that one. */
  #join(into: string, { from, birth }: AskedMerge): void {
    const { system } = this.#disk;
    const going = system.accounts.get(from);
    if (going === undefined || going.birth !== birth) return;
    for (const [name, owner] of system.identities) if (owner === from) system.identities.set(name, into);
    system.accounts.delete(from);
    system.joined.add(`${from} ${birth}`);
    accountsTx(system, this.#mistake).mark(from);
  }

  /** Whether an account is being merged or deleted. */
  isHeld = (id: string): boolean => (this.#held.get(id) ?? 0) > 0 || this.#merging.has(id);
  isMerging = (id: string): boolean => this.#mistake !== "merged while it goes" && this.#merging.has(id);

  /** Merges an account into another one. Returns whether that was done; false: nothing has moved. */
  async merge(into: string, from: string): Promise<boolean> {
    const { system, data } = this.#disk;
    const birth = system.accounts.get(from)?.birth;
    if (birth === undefined || ((this.isHeld(into) || this.isHeld(from)) && this.#mistake !== "merged while it goes"))
      return false;
    const release = this.records.hold(from);
    this.#merging.add(into).add(from);
    try {
      if (this.#mistake === "merged accounts first")
        await this.#commit("system", () => this.#join(into, { from, birth, by: null }));
      const isMoved = await this.#commit("data", () => {
        const [own, other] = [data.records.get(from), data.records.get(into)];
        if (own?.birth !== birth || other === undefined) return false;
        const moved = data.references.get(from) ?? 0;
        if (moved > 0) data.references.set(into, (data.references.get(into) ?? 0) + moved);
        data.references.delete(from);
        const identities = [...system.identities].filter(([, owner]) => owner === from).map(([name]) => name);
        data.merged.push({ from, birth, into, intoBirth: other.birth, identities });
        if (this.#mistake === "merge not asked") return true;
        const merge = { from, birth, by: null };
        data.asked.push({ seq: ++data.lastAsked, id: into, birth: other.birth, changes: {}, merge });
        return true;
      });
      if (isMoved) await carryOut(this);
      return isMoved;
    } finally {
      this.#merging.delete(into);
      this.#merging.delete(from);
      release();
    }
  }

  /** Updates a record, and the account by it. Returns the birth of the record; null: there is none. */
  async update(id: string, displayName: string): Promise<number | null> {
    const { data } = this.#disk;
    const birth = await this.#commit("data", () => {
      const record = data.records.get(id);
      if (record === undefined) return null;
      data.records.set(id, { ...record, displayName });
      if (this.#mistake === "not asked") return record.birth;
      data.asked.push({ seq: ++data.lastAsked, id, birth: record.birth, changes: { displayName } });
      return record.birth;
    });
    await carryOut(this);
    return birth;
  }

  pause = (): Promise<void> => Promise.resolve();

  /** Copies an account. Resolves when the record is on disk. */
  copied(id: string): Promise<void> {
    return copyCleared(this, [id], async () => {
      const done = await copy(this, [id]);
      if (done !== null) void settle(this, done);
    });
  }

  /** Makes another record refer to a user, unless the user goes. */
  refer(id: string): void {
    const { records, references } = this.#disk.data;
    void this.#commit("data", () => {
      if (records.has(id) && (this.#held.get(id) ?? 0) === 0) references.set(id, (references.get(id) ?? 0) + 1);
    });
  }

  /** The commits of a file stay in their order. */
  async commitOne(random: () => number): Promise<void> {
    const files = (["system", "data"] as const).filter((name) => this.#commits[name].length > 0);
    const name = files[Math.floor(random() * files.length)];
    if (name !== undefined) this.#commits[name].shift()?.();
    await idle();
  }

  #commit<T>(name: keyof Disk, work: () => T): Promise<T> {
    const { promise, resolve, reject } = Promise.withResolvers<T>();
    this.#commits[name].push(() => {
      try {
        resolve(work());
      } catch (cause) {
        reject(cause);
      }
    });
    return promise;
  }
}

interface Run {
  seed: number;
  mistake?: Mistake;
  restores?: boolean;
  crashAt?: number;
}

/** Merges that were answered, in all runs. */
let merges = 0;

const PEOPLE = ["ann", "ben", "cem"];

/** Runs a random world of several lives between crashes, and returns what is wrong with it. */
async function simulated({ seed, mistake: given, restores = false, crashAt }: Run): Promise<string | null> {
  const mistake = given ?? null;
  const random = seeded(seed);
  let disk: Disk = {
    system: {
      accounts: new Map(),
      marks: new Map(),
      seen: { last: 0, count: null },
      lastAsked: 0,
      identities: new Map(),
      joined: new Set(),
    },
    data: {
      records: new Map(),
      references: new Map(),
      asked: [],
      lastAsked: 0,
      seen: { count: 0, mark: 0 },
      merged: [],
    },
  };
  let births = 0;
  /** Births before the last restore, whose merges are not compared. */
  let restoredAt = 0;
  /** Names that accounts have been answered to have, and that nothing has changed since. */
  const answered = new Map<string, { birth: number; name: string | null }>();
  const account = (id: string): AccountMembers => ({
    id,
    birth: ++births,
    displayName: `${births}`,
    avatarUrl: null,
    isAnonymous: false,
    email: null,
    isEmailPublic: false,
    createdAt: births,
  });
  const create = ({ accounts, identities }: SystemFile, id: string): void => {
    const made = account(id);
    accounts.set(id, made);
    identities.set(`of ${made.birth}`, id);
  };
  const remove = ({ accounts, identities }: SystemFile, id: string): void => {
    accounts.delete(id);
    for (const [name, owner] of identities) if (owner === id) identities.delete(name);
  };
  for (const id of PEOPLE) if (random() < 0.3) create(disk.system, id);
  for (let life = 0; life < 6; life++) {
    const server = await started();
    const problem = typeof server === "string" ? server : await live(server);
    if (problem !== null) return `seed ${seed} life ${life}: ${problem}`;
  }
  return null;

  /** Mends, with crashes, and compares both files. Returns the server that has not crashed, or what is wrong. */
  async function started(): Promise<Server | string> {
    for (let tries = 0; ; tries++) {
      const server = new Server(disk, mistake);
      let end: "mended" | null = null;
      let left: readonly string[] = [];
      void mend(server).then((ids) => {
        left = ids;
        end = "mended";
      });
      await idle();
      // The third start is left alone.
      const crashes = tries < 2 ? (crashAt ?? Math.floor(random() * 12)) : Number.POSITIVE_INFINITY;
      for (let commits = 0; server.waiting > 0 && commits < crashes; commits++) await server.commitOne(random);
      if (end !== null) {
        const problem = compared(left);
        if (problem !== null) return problem;
        server.isLive = true;
        for (const id of left) void server.copied(id);
        if (tries < 2) return server;
        while (server.waiting > 0) await server.commitOne(random);
        return compared([]) ?? server;
      }
      if (tries === 2) return "the start has not ended";
    }
  }

  /** `left`: records that go on to be cleared beside requests. */
  function compared(left: readonly string[]): string | null {
    const { system, data } = disk;
    if (data.asked.length > 0) return "something asked is left";
    for (const { from, birth, into, intoBirth, identities } of data.merged) {
      if (Math.min(birth, intoBirth) <= restoredAt) continue;
      if (system.accounts.get(from)?.birth === birth) return `${from} is there, and its references have moved`;
      if (system.accounts.get(into)?.birth !== intoBirth) continue;
      if (!identities.every((name) => system.identities.get(name) === into))
        return `${into} lacks an identity of ${from}`;
    }
    for (const one of system.joined) {
      if (Number(one.split(" ")[1]) <= restoredAt) continue;
      if (!data.merged.some(({ from, birth }) => `${from} ${birth}` === one))
        return `the references of ${one} are lost`;
    }
    for (const owner of system.identities.values()) if (!system.accounts.has(owner)) return `${owner} left an identity`;
    for (const [id, { birth, name }] of answered) {
      const account = system.accounts.get(id);
      if (account?.birth === birth && account.displayName !== name) return `${id} has lost the name ${name}`;
    }
    for (const id of left) if (!data.references.has(id)) return `${id} is left without a reference`;
    for (const [id, one] of system.accounts) {
      if (left.includes(id)) continue;
      const { bio, ...record } = data.records.get(id) ?? { bio: "" };
      if (!Bun.deepEquals(one, record)) return `the record of ${id} differs`;
      if (!["", `of ${one.birth}`].includes(bio)) return `${id} has fields of somebody before`;
    }
    for (const id of data.references.keys()) if (!data.records.has(id)) return `something refers to ${id}, who is gone`;
    for (const id of data.records.keys()) {
      if (!system.accounts.has(id) && !left.includes(id)) return `record ${id} has no account`;
    }
    for (const id of system.marks.keys()) if (!left.includes(id)) return `${id} is still marked`;
    if (data.seen.count < (system.seen.count ?? 0) || data.seen.mark > system.seen.last)
      return "the next start compares";
    return null;
  }

  /** Requests in any order at once, until a crash. */
  async function live(server: Server): Promise<string | null> {
    let problem: string | null = null;
    const copies: Partial<Disk> = {};
    const crashes = crashAt ?? Math.floor(random() * 60);
    const open = new Map<string, number>();
    const rounds = new Map<string, number>();
    for (let commits = 0; commits < crashes && problem === null; commits++) {
      if (random() < 0.35) ask();
      if (server.waiting > 0) await server.commitOne(random);
      if (restores && random() < 0.05) copies.system ??= structuredClone(disk.system);
      if (restores && random() < 0.05) copies.data ??= structuredClone(disk.data);
    }
    if (copies.system !== undefined && copies.data !== undefined) {
      answered.clear();
      // A merge that a file of another moment asks for is not carried out: the accounts are right.
      restoredAt = births;
    }
    if (copies.system !== undefined && copies.data !== undefined) disk = { system: copies.system, data: copies.data };
    return problem;

    /** Merges accounts. What is answered about either meanwhile is not compared. */
    function merge(into: string, from: string): void {
      if (into === from) return;
      for (const id of [into, from]) {
        answered.delete(id);
        open.set(id, (open.get(id) ?? 0) + 1);
        rounds.set(id, (rounds.get(id) ?? 0) + 1);
      }
      void server.merge(into, from).then((isDone) => {
        for (const id of [into, from]) open.set(id, (open.get(id) ?? 1) - 1);
        if (!isDone) return;
        merges++;
        if (disk.data.records.has(from) && !disk.system.accounts.has(from)) problem = `${from} is answered too early`;
      });
    }

    /** Changes an account; when that is answered and nothing else is asked about it, the record must be like it. */
    function ask(): void {
      const id = PEOPLE[Math.floor(random() * PEOPLE.length)] ?? "";
      const kind = random();
      if (kind > 0.9) {
        merge(id, PEOPLE[Math.floor(random() * PEOPLE.length)] ?? "");
        return;
      }
      if (kind > 0.8) {
        server.refer(id);
        return;
      }
      // Refused: 409.
      if (kind < 0.5 && kind >= 0.15 && server.isMerging(id)) return;
      if (kind < 0.15) {
        void server.data(() => {
          const record = disk.data.records.get(id);
          if (record !== undefined) disk.data.records.set(id, { ...record, bio: `of ${record.birth}` });
        });
        return;
      }
      const { system, data } = disk;
      const isFree = (open.get(id) ?? 0) === 0;
      const round = (rounds.get(id) ?? 0) + 1;
      rounds.set(id, round);
      open.set(id, (open.get(id) ?? 0) + 1);
      answered.delete(id);
      // What may delete the account keeps others from referring to it meanwhile.
      const release = kind < 0.5 ? server.records.hold(id) : () => {};
      const name = `${Math.floor(random() * 1e6)}`;
      const change = () =>
        server.system((tx) => {
          const present = tx.account(id);
          if (present === null) create(system, id);
          else if (kind < 0.5) remove(system, id);
          else system.accounts.set(id, { ...present, displayName: name });
          tx.mark(id);
        });
      const work = kind > 0.65 ? server.update(id, name) : change().then(() => server.copied(id).then(() => null));
      void work.finally(release).then((updated) => {
        const isAlone = open.get(id) === 1;
        open.set(id, (open.get(id) ?? 1) - 1);
        const account = system.accounts.get(id);
        if (isAlone && account !== undefined) {
          if (isFree && rounds.get(id) === round && updated === account.birth && account.displayName !== name)
            problem = `${id} has not got the name`;
          answered.set(id, { birth: account.birth, name: account.displayName });
        }
        // A record that goes beside requests can be updated until it has gone.
        if (updated !== null && updated !== account?.birth) return;
        const { bio: _, ...record } = data.records.get(id) ?? { bio: "" };
        if (isAlone && !Bun.deepEquals(system.accounts.get(id) ?? {}, record)) problem = `${id} is answered too early`;
      });
    }
  }
}

async function firstProblem(runs: Iterable<Run>): Promise<string | null> {
  for (const run of runs) {
    const problem = await simulated(run);
    if (problem !== null) return problem;
  }
  return null;
}

function* seeds(count: number, more: Partial<Run> = {}): Generator<Run> {
  for (let seed = 1; seed <= count; seed++) yield { ...more, seed };
}

const SEEDS = Number(process.env["SEEDS"] ?? 600);

test("[AU400] both files agree after a crash at any commit, whatever is asked at once", async () => {
  expect(await firstProblem(seeds(SEEDS))).toBe(null);
  expect(merges).toBeGreaterThan(SEEDS / 10);
}, 120_000);

test("both files agree after a crash after each number of commits", async () => {
  for (let crashAt = 0; crashAt < 40; crashAt++) expect(await firstProblem(seeds(SEEDS / 30, { crashAt }))).toBe(null);
}, 120_000);

test("both files agree when they are restored from copies of different moments", async () => {
  expect(await firstProblem(seeds(SEEDS, { restores: true }))).toBe(null);
}, 120_000);

test.each<Mistake>([
  "no mark",
  "unmark any",
  "no births",
  "removed all the same",
  "not asked",
  "carried out twice",
  "taken off first",
  "merged accounts first",
  "merge not asked",
  "merged while it goes",
])(
  "the simulation finds the mistake: %s",
  async (mistake) => {
    expect(await firstProblem(seeds(SEEDS, { mistake }))).toBeString();
  },
  120_000,
);

test.each<Mistake>(["unheard", "unheard asked", "no agreement", "no comparison"])(
  "restores find the mistake: %s",
  async (mistake) => {
    expect(await firstProblem(seeds(SEEDS, { mistake, restores: true }))).toBeString();
  },
  120_000,
);
