/** Figures of one minute. */
export interface Minute {
  requests: number;
  p50Ms: number;
  p99Ms: number;
  /** Mean resident memory over the minute. */
  memoryBytes: number;
}

const mean = (values: readonly number[]): number => values.reduce((sum, value) => sum + value, 0) / values.length;

function quantile(values: readonly number[], part: number): number {
  const sorted = Float64Array.from(values).sort();
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * part))] ?? 0;
}

/** Collects samples, and closes a minute on request. */
export class Minutes {
  readonly all: Minute[] = [];
  #latenciesMs: number[] = [];
  #memoryBytes: number[] = [];

  request(latencyMs: number): void {
    this.#latenciesMs.push(latencyMs);
  }

  memory(bytes: number): void {
    this.#memoryBytes.push(bytes);
  }

  close(): Minute {
    const latencies = this.#latenciesMs;
    const minute: Minute = {
      requests: latencies.length,
      ...{ p50Ms: quantile(latencies, 0.5), p99Ms: quantile(latencies, 0.99) },
      memoryBytes: mean(this.#memoryBytes),
    };
    this.all.push(minute);
    this.#latenciesMs = [];
    this.#memoryBytes = [];
    return minute;
  }
}
