/** A queued job: its caller, and how many of the queue's places it takes. */
export interface Queued {
  caller: string;
  places: number;
}

interface Line<J> {
  jobs: J[];
  places: number;
}

/**
 * A bounded queue in which callers take turns, however many jobs one of them has waiting. A full queue makes room for a newcomer
 * by refusing the newest job of the caller who takes the most places.
 */
export class FairQueue<J extends Queued> {
  readonly #placesMax: number;
  /** Lines by caller; the caller whose last turn is longest ago comes first. */
  readonly #lines = new Map<string, Line<J>>();
  #size = 0;
  #places = 0;

  constructor(placesMax: number) {
    this.#placesMax = placesMax;
  }

  get size(): number {
    return this.#size;
  }

  /** Returns the number of jobs of one caller. */
  sizeOf(caller: string): number {
    return this.#lines.get(caller)?.jobs.length ?? 0;
  }

  /** Adds a job. Returns the jobs that are refused: none, others, or `job` itself. */
  add(job: J): J[] {
    const refused: J[] = [];
    while (this.#places + job.places > this.#placesMax) {
      const newest = this.#newestOfHeaviest(job);
      if (newest === null) return [...refused, job];
      this.remove(newest);
      refused.push(newest);
    }
    const line = this.#lines.get(job.caller) ?? { jobs: [], places: 0 };
    this.#lines.set(job.caller, line);
    line.jobs.push(job);
    this.#count(line, job, 1);
    return refused;
  }

  /**
   * Takes the job to run next: of the callers with a job that `mayRun`, the oldest such job of the one with the fewest `running`. A
   * job that may not run yet does not block those behind it: it may wait for one of them to end. null when there is none.
   */
  take({
    running = () => 0,
    mayRun = () => true,
  }: {
    running?: (caller: string) => number;
    mayRun?: (job: J) => boolean;
  } = {}): J | null {
    let next: J | null = null;
    let fewest = Number.POSITIVE_INFINITY;
    for (const [caller, { jobs }] of this.#lines) {
      const count = running(caller);
      const job = count < fewest ? jobs.find(mayRun) : undefined;
      if (job === undefined) continue;
      next = job;
      fewest = count;
      if (count === 0) break;
    }
    if (next === null) return null;
    this.remove(next);
    const line = this.#lines.get(next.caller);
    // The caller moves to the end of the line.
    this.#lines.delete(next.caller);
    if (line !== undefined) this.#lines.set(next.caller, line);
    return next;
  }

  remove(job: J): void {
    const line = this.#lines.get(job.caller);
    const index = line?.jobs.indexOf(job) ?? -1;
    if (line === undefined || index < 0) return;
    line.jobs.splice(index, 1);
    if (line.jobs.length === 0) this.#lines.delete(job.caller);
    this.#count(line, job, -1);
  }

  /** Empties the queue and returns its jobs. */
  drain(): J[] {
    const jobs = [...this.#lines.values()].flatMap((line) => line.jobs);
    this.#lines.clear();
    this.#size = 0;
    this.#places = 0;
    return jobs;
  }

  /** Returns the newest job of the caller with the most places; null: nobody takes more places than the caller of `job` would. */
  #newestOfHeaviest(job: J): J | null {
    let heaviest: Line<J> | null = null;
    let most = job.places + (this.#lines.get(job.caller)?.places ?? 0);
    for (const [caller, line] of this.#lines) {
      if (caller === job.caller || line.places <= most) continue;
      heaviest = line;
      most = line.places;
    }
    return heaviest?.jobs.at(-1) ?? null;
  }

  #count(line: Line<J>, job: J, sign: 1 | -1): void {
    line.places += sign * job.places;
    this.#size += sign;
    this.#places += sign * job.places;
  }
}
