/** A process of the server. */
export interface ProcessFigures {
  pid: number;
  role: "main" | "worker";
  /** Requests that it has answered since its start. */
  requests: number;
  /** Resident bytes. */
  memory: number;
  /** The last measured delay of its event loop, in milliseconds. */
  loopMs: number;
}

/** Returns the figures of this process, whose delay is measured now. `requests` returns what it has answered. */
export async function ownFigures(requests: () => number): Promise<ProcessFigures> {
  const askedAt = performance.now();
  await new Promise(setImmediate);
  const loopMs = Math.round((performance.now() - askedAt) * 1000) / 1000;
  return { pid: process.pid, role: "main", requests: requests(), memory: process.memoryUsage.rss(), loopMs };
}
