import { expect, test } from "bun:test";
import { carryOut, type Follower, isBehind, mustWait, type Place, type Target, type Tombstone } from "./machine.ts";

// Two files in memory, whose commits are the only steps: a seeded loop picks the next one, and may crash before or after it.

interface TargetFile {
  /** Number of the insert that made each record: a record that is created again has another one. */
  records: Map<string, number>;
  log: Tombstone[];
  lastSeq: number;
}
interface FollowerFile {
  /** Insert of the referenced record, as it was when the reference was written. */
  references: Map<string, { id: string; born: number }>;
  place: Place | null;
}
interface Disk {
  target: TargetFile;
  follower: FollowerFile;
}

/** Mistakes that the simulation has to find. */
type Mistake =
  | "no tombstone"
  | "no mark"
  | "cut unseen"
  | "migrated unsaid"
  | "no newest"
  | "newest is any"
  | "newest forgotten"
  | "first place is 0"
  | "does not wait"
  | "noted first"
  | "unsettled";

const TABLE = "users";
const IDS = ["ann", "ben", "cem", "dan"];

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

/** Counts over all runs: the simulation has to come to these. */
const reached = { ended: 0, waited: 0, compared: 0, unfinished: 0 };

interface Run {
  seed: number;
  mistake?: Mistake;
  /** Whether files are restored from copies, each from a moment of its own. */
  restores?: boolean;
  /** Tombstones that the log keeps. */
  kept?: number;
  crashAt?: number;
}

/** A run, with its chance and the number of the last insert. */
type World = Run & { random: () => number; born: { last: number } };

/** A server that runs on the disk until it crashes: commits wait until `commitOne` picks one. */
class Server {
  readonly #disk: Disk;
  readonly #run: World;
  #commits: Record<keyof Disk, (() => void)[]> = { target: [], follower: [] };
  #carrying: Promise<void> | null = null;
  /** The first forbidden action of the run; null: none. */
  fault: string | null = null;

  constructor(disk: Disk, run: World) {
    this.#disk = disk;
    this.#run = run;
  }

  get waiting(): number {
    return this.#commits.target.length + this.#commits.follower.length;
  }

  readonly target: Target = {
    last: () => {
      const { lastSeq, log } = this.#disk.target;
      return { seq: lastSeq, mark: log.at(-1)?.mark ?? "" };
    },
    markOf: (seq) => {
      const { log } = this.#disk.target;
      if (this.#run.mistake === "no mark") return this.#disk.follower.place?.mark ?? "";
      if (seq === 0) return (log[0]?.seq ?? 1) === 1 || this.#run.mistake === "cut unseen" ? "" : null;
      return log.find((one) => one.seq === seq)?.mark ?? null;
    },
    after: (seq, limit) => this.#disk.target.log.filter((one) => one.seq > seq).slice(0, limit),
    missing: (_, ids) => ids.filter((id) => !this.#disk.target.records.has(id)),
  };

  readonly follower: Follower = {
    tables: [TABLE],
    place: () => this.#disk.follower.place,
    ids: (_, { after, limit }) => {
      reached.compared += 1;
      const ids = new Set([...this.#disk.follower.references.values()].map(({ id }) => id));
      return [...ids]
        .filter((id) => id > after)
        .sort()
        .slice(0, limit);
    },
    end: (_, id) => {
      const ended = this.#end(id);
      return this.#run.mistake === "noted first" ? Promise.resolve() : ended;
    },
    note: ({ seq, mark }, gone) =>
      this.#commit("follower", () => {
        const { place } = this.#disk.follower;
        const newest = Object.fromEntries(
          Object.entries(place?.newest ?? {}).filter(([table, id]) => gone.get(table) !== id),
        );
        this.#disk.follower.place = { seq, mark, newest };
      }),
    settled: () => (this.#run.mistake === "unsettled" ? Promise.resolve() : this.#commit("follower", () => {})),
    pause: () => Promise.resolve(),
  };

  async #end(id: string): Promise<void> {
    const { references } = this.#disk.follower;
    for (const key of [...references].filter(([, one]) => one.id === id).map(([key]) => key)) {
      await this.#commit("follower", () => {
        const one = references.get(key);
        if (one?.id !== id) return;
        // Files that are put back and forth may have two records of one id.
        const isPresent = this.#run.restores !== true && one.born === this.#disk.target.records.get(id);
        if (isPresent) this.fault ??= `a reference to a record that exists ended`;
        references.delete(key);
        reached.ended += 1;
      });
    }
  }

  /** Carries out what there is, once at a time. */
  carriedOut(): Promise<void> {
    const begin = () => carryOut(this.target, this.follower);
    const carrying = (this.#carrying === null ? begin() : this.#carrying.then(begin)).finally(() => {
      if (this.#carrying === carrying) this.#carrying = null;
    });
    this.#carrying = carrying;
    return carrying;
  }

  create(id: string): void {
    void this.#commit("target", () => {
      const { target } = this.#disk;
      if (!target.records.has(id)) target.records.set(id, ++this.#run.born.last);
    });
  }

  /** Deletes a record. What follows is carried out when it is on disk. */
  delete(id: string): void {
    void this.#commit("target", () => {
      if (!this.#disk.target.records.delete(id)) return;
      if (this.#run.mistake !== "no tombstone") this.#log(id);
    }).then(() => this.carriedOut());
  }

  /** Deletes as a migration does: without a tombstone of the record. */
  migrate(id: string): void {
    this.#disk.target.records.delete(id);
    if (this.#run.mistake !== "migrated unsaid") this.#log(null);
  }

  #log(id: string | null): void {
    const { target } = this.#disk;
    const { kept = 100, random, mistake } = this.#run;
    const mark = mistake === "no mark" ? "" : String(random());
    target.log.push({ seq: ++target.lastSeq, mark, table: TABLE, id });
    if (target.log.length > kept) target.log.shift();
  }

  /** Makes a record refer to one, once nothing of before has to be carried out for that. */
  async refer(key: string, id: string): Promise<void> {
    const { mistake } = this.#run;
    while (
      await this.#commit("follower", (): boolean => {
        const { target, follower } = this.#disk;
        const born = target.records.get(id);
        const place =
          mistake === "newest forgotten" && follower.place ? { ...follower.place, newest: {} } : follower.place;
        if (mistake !== "does not wait" && mustWait(this.target, place, { table: TABLE, ids: [id] })) return true;
        if (born === undefined) return false;
        const changed = this.#placeWith(id, born);
        // Writes of one turn share a commit, before which nobody else sees them.
        this.#commits.follower.unshift(() => {
          follower.references.set(key, { id, born });
          follower.place = changed;
        });
        return false;
      })
    ) {
      reached.waited += 1;
      await this.carriedOut();
    }
  }

  #placeWith(id: string, born: number): Place {
    const { mistake } = this.#run;
    const { target, follower } = this.#disk;
    const first = mistake === "first place is 0" ? { seq: 0, mark: "" } : this.target.last();
    const place = follower.place ?? { ...first, newest: {} };
    const newest = place.newest[TABLE];
    const isNewer = newest === undefined || born > (target.records.get(newest) ?? 0) || mistake === "newest is any";
    return isNewer && mistake !== "no newest" ? { ...place, newest: { [TABLE]: id } } : place;
  }

  /** The commits of a file stay in their order. */
  async commitOne(): Promise<void> {
    const files = (["target", "follower"] as const).filter((name) => this.#commits[name].length > 0);
    const name = files[Math.floor(this.#run.random() * files.length)];
    if (name !== undefined) this.#commits[name].shift()?.();
    await idle();
  }

  #commit<T>(name: keyof Disk, work: () => T): Promise<T> {
    const { promise, resolve } = Promise.withResolvers<T>();
    this.#commits[name].push(() => resolve(work()));
    return promise;
  }
}

/** Runs a random world of several lives between crashes, and returns what is wrong with it. */
async function simulated(given: Run): Promise<string | null> {
  const { seed, restores = false, kept = 100, crashAt } = given;
  const random = seeded(seed);
  const run = { ...given, random, born: { last: 0 } };
  const pick = (): string => IDS[Math.floor(random() * IDS.length)] ?? "ann";
  let disk: Disk = {
    target: { records: new Map(), log: [], lastSeq: 0 },
    follower: { references: new Map(), place: null },
  };
  const copies: Disk[] = [structuredClone(disk)];
  let keys = 0;
  let isRestored = false;
  for (let life = 0; life < 4; life++) {
    const server = new Server(disk, run);
    if (random() < 0.2) server.migrate(pick());
    // The follower may be a file that is opened later: the target goes on meanwhile.
    const early = Math.floor(random() * 4);
    for (let i = 0; i < early; i++) (random() < 0.5 ? server.create : server.delete).call(server, pick());
    const opened = server.carriedOut();
    let isOpen = false;
    void opened.then(() => {
      isOpen = true;
    });
    const commits = crashAt ?? Math.floor(random() * 60);
    for (let commit = 0; commit < commits; commit++) {
      const what = random();
      if (what < 0.3) server.create(pick());
      else if (what < 0.5) server.delete(pick());
      else if (isOpen) void server.refer(`key${keys++ % 6}`, pick());
      await server.commitOne();
      if (random() < 0.1) copies.push(structuredClone(disk));
    }
    const isLast = life === 3;
    if (isLast || random() < 0.5) while (server.waiting > 0) await server.commitOne();
    else reached.unfinished += 1;
    await idle();
    if (server.fault !== null) return `seed ${seed}: ${server.fault}`;
    if (server.waiting === 0) {
      const isExact = !restores && kept === 100 && life === 0;
      const problem = wrongIn(disk, isExact);
      if (problem !== null) return `seed ${seed}, life ${life}: ${problem}`;
      if (isBehind(server.target, disk.follower.place)) return `seed ${seed}, life ${life}: it is not carried out`;
    }
    disk = structuredClone(disk);
    // Once: files that are put back and forth may have another record under an id that was used again.
    if (restores && !isRestored && random() < 0.6) {
      isRestored = true;
      const copy = () => structuredClone(copies[Math.floor(random() * copies.length)] ?? disk);
      disk = {
        target: random() < 0.6 ? copy().target : disk.target,
        follower: random() < 0.4 ? copy().follower : disk.follower,
      };
    }
  }
  return null;
}

function wrongIn({ target, follower }: Disk, isExact: boolean): string | null {
  for (const [key, { id, born }] of follower.references) {
    const present = target.records.get(id);
    if (present === undefined) return `${key} refers to ${id}, which does not exist`;
    if (isExact && present !== born) return `${key} refers to a record ${id} that was deleted and created again`;
  }
  return null;
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

const SEEDS = Number(process.env["SEEDS"] ?? 500);

test("[TB915] no reference outlives its record after crashes at any commit, and none ends that has one", async () => {
  expect(await firstProblem(seeds(SEEDS))).toBe(null);
  expect(reached.ended).toBeGreaterThan(SEEDS / 5);
  expect(reached.waited).toBeGreaterThan(SEEDS / 20);
  expect(reached.unfinished).toBeGreaterThan(SEEDS / 5);
}, 120_000);

test("[TB915] the same after a crash after each number of commits", async () => {
  for (let crashAt = 0; crashAt < 40; crashAt++) expect(await firstProblem(seeds(SEEDS / 20, { crashAt }))).toBe(null);
}, 120_000);

test("[TB916] a log that was cut is made up for by comparing all ids", async () => {
  const before = reached.compared;
  expect(await firstProblem(seeds(SEEDS, { kept: 2 }))).toBe(null);
  expect(reached.compared - before).toBeGreaterThan(SEEDS / 10);
}, 120_000);

test("[TB916] files that are restored from copies of different moments agree again", async () => {
  expect(await firstProblem(seeds(SEEDS, { restores: true }))).toBe(null);
  expect(await firstProblem(seeds(SEEDS, { restores: true, kept: 2 }))).toBe(null);
}, 120_000);

test.each<[Mistake, Partial<Run>]>([
  ["no tombstone", {}],
  ["does not wait", {}],
  ["noted first", {}],
  ["unsettled", {}],
  ["migrated unsaid", {}],
  ["first place is 0", {}],
  ["cut unseen", { kept: 1 }],
  ["no mark", { restores: true }],
  ["no newest", { restores: true }],
  ["newest is any", { restores: true }],
  ["newest forgotten", { restores: true }],
])(
  "the simulation finds the mistake: %s",
  async (mistake, more) => {
    expect(await firstProblem(seeds(SEEDS * 40, { ...more, mistake }))).toBeString();
  },
  120_000,
);
