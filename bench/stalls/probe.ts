/**
 * Probe that requests one URL every few milliseconds, independent of earlier responses, and reports the latency. A separate
 * process, so that other work of the measurement does not delay it. Run as a child with IPC: the first message is a `ProbeJob`,
 * any further one ends it; it answers with a `ProbeReport`.
 */
export interface ProbeJob {
  url: string;
  headers: Record<string, string>;
}

export interface ProbeReport {
  p50Ms: number;
  p99Ms: number;
  maxMs: number;
  answers: number;
  /** Number of responses outside 2xx, and of requests without a response. */
  failures: number;
}

const EVERY_MS = 5;

async function probe(job: ProbeJob, taken: number[], failed: () => void): Promise<void> {
  const startedAt = performance.now();
  try {
    const response = await fetch(job.url, { headers: job.headers });
    await response.arrayBuffer();
    if (response.ok) taken.push(performance.now() - startedAt);
    else failed();
  } catch {
    failed();
  }
}

function begin(job: ProbeJob): () => Promise<ProbeReport> {
  const taken: number[] = [];
  const underWay = new Set<Promise<void>>();
  let failures = 0;
  const timer = setInterval(() => {
    const one = probe(job, taken, () => {
      failures += 1;
    }).finally(() => underWay.delete(one));
    underWay.add(one);
  }, EVERY_MS);
  return async () => {
    clearInterval(timer);
    await Promise.all(underWay);
    taken.sort((one, other) => one - other);
    const at = (share: number): number => taken[Math.min(taken.length - 1, Math.floor(taken.length * share))] ?? 0;
    return { p50Ms: at(0.5), p99Ms: at(0.99), maxMs: at(1), answers: taken.length, failures };
  };
}

let end: (() => Promise<ProbeReport>) | null = null;
process.on("message", async (message) => {
  if (end === null) {
    end = begin(message as ProbeJob); // measure.ts sends this first.
    return;
  }
  process.send?.(await end());
  process.exit(0);
});
