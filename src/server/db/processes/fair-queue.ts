/** What waits: for whom, and how many of the queue's places it takes. */
export interface Queued {
  caller: string;
  places: number;
}

/**
 * Callers take turns, however many jobs one of them has waiting. A full queue makes room for a newcomer by refusing the
 * newest job of the caller who takes the most places. [DB121]
 */
export class FairQueue<J extends Queued> {
  readonly #placesMax: number;
  /** The caller whose last turn is longest ago comes first. */
  readonly #jobs = new Map<string, J[]>();
  #size = 0;
  #places = 0;

  constructor(placesMax: number) {
    this.#placesMax = placesMax;
  }

  get size(): number {
    return this.#size;
  }

  /** Gives the jobs that are refused: none, others, or `job` itself. */
  add(job: J): J[] {
    const refused: J[] = [];
    while (this.#places + job.places > this.#placesMax) {
      const newest = this.#newestOfHeaviest(job);
      if (newest === null) return [...refused, job];
      this.remove(newest);
      refused.push(newest);
    }
    const own = this.#jobs.get(job.caller);
    if (own === undefined) this.#jobs.set(job.caller, [job]);
    else own.push(job);
    this.#count(job, 1);
    return refused;
  }

  /**
   * The job to run next: of the callers with a job that `mayRun`, the oldest such job of the one with the fewest `running`. A job
   * that may not run yet holds up none behind it: what it waits for may be the end of one of them. null: there is none.
   */
  take(options: { running: (caller: string) => number; mayRun: (job: J) => boolean }): J | null {
    let next: J | null = null;
    let fewest = Number.POSITIVE_INFINITY;
    for (const [caller, jobs] of this.#jobs) {
      const running = options.running(caller);
      const job = running < fewest ? jobs.find(options.mayRun) : undefined;
      if (job === undefined) continue;
      next = job;
      fewest = running;
    }
    if (next === null) return null;
    this.remove(next);
    const own = this.#jobs.get(next.caller);
    // Its caller's next turn comes after the turns of the others.
    this.#jobs.delete(next.caller);
    if (own !== undefined) this.#jobs.set(next.caller, own);
    return next;
  }

  remove(job: J): void {
    const own = this.#jobs.get(job.caller);
    const index = own?.indexOf(job) ?? -1;
    if (own === undefined || index < 0) return;
    own.splice(index, 1);
    if (own.length === 0) this.#jobs.delete(job.caller);
    this.#count(job, -1);
  }

  /** Empties the queue. */
  drain(): J[] {
    const jobs = [...this.#jobs.values()].flat();
    this.#jobs.clear();
    this.#size = 0;
    this.#places = 0;
    return jobs;
  }

  /** null: nobody takes more places than the caller of `job` would. */
  #newestOfHeaviest(job: J): J | null {
    let heaviest: J[] | null = null;
    let most = job.places + placesOf(this.#jobs.get(job.caller) ?? []);
    for (const [caller, jobs] of this.#jobs) {
      const places = placesOf(jobs);
      if (caller === job.caller || places <= most) continue;
      heaviest = jobs;
      most = places;
    }
    return heaviest?.at(-1) ?? null;
  }

  #count(job: J, sign: 1 | -1): void {
    this.#size += sign;
    this.#places += sign * job.places;
  }
}

const placesOf = (jobs: readonly Queued[]): number => jobs.reduce((sum, job) => sum + job.places, 0);
