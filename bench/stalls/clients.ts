/**
 * Clients that send sequential requests for a while, in a separate process with a low priority, as the clients of a production
 * server have processors of their own. Run as a child with IPC: the first message is a `ClientsJob`; it answers with a
 * `ClientsReport`.
 */
import { readFileSync } from "node:fs";
import { setPriority } from "node:os";

export interface ClientsJob {
  requests: readonly ClientRequest[];
  clients: number;
  durationMs: number;
}

export interface ClientRequest {
  url: string;
  method: string;
  headers: Record<string, string>;
  /** File with the bytes of the body; null for none. */
  bodyFile: string | null;
}

export interface ClientsReport {
  /** Number of responses by status; 0 stands for requests without a response. */
  statuses: Record<string, number>;
  /** Median latency of the responses; 0 without any. */
  medianMs: number;
  largestAnswerBytes: number;
}

const LOW_PRIORITY = 10;
const TIMEOUT_MS = 60_000;

async function run({ requests, clients, durationMs }: ClientsJob): Promise<ClientsReport> {
  const bodies = requests.map(({ bodyFile }) => (bodyFile === null ? null : readFileSync(bodyFile)));
  const statuses: Record<string, number> = {};
  const taken: number[] = [];
  let largestAnswerBytes = 0;
  let next = 0;
  const endAt = performance.now() + durationMs;
  const send = async (index: number): Promise<number> => {
    const request = requests[index];
    if (request === undefined) throw new Error("there is no request to send");
    const startedAt = performance.now();
    const { method, headers } = request;
    const signal = AbortSignal.timeout(TIMEOUT_MS);
    const response = await fetch(request.url, { method, headers, signal, body: bodies[index] ?? null });
    const { byteLength } = await response.arrayBuffer();
    largestAnswerBytes = Math.max(largestAnswerBytes, byteLength);
    taken.push(performance.now() - startedAt);
    return response.status;
  };
  const client = async (): Promise<void> => {
    while (performance.now() < endAt) {
      const status = await send(next++ % requests.length).catch(() => 0);
      statuses[status] = (statuses[status] ?? 0) + 1;
    }
  };
  await Promise.all(Array.from({ length: clients }, client));
  taken.sort((one, other) => one - other);
  return { statuses, medianMs: taken[Math.floor(taken.length / 2)] ?? 0, largestAnswerBytes };
}

setPriority(LOW_PRIORITY);
process.on("message", async (message) => {
  process.send?.(await run(message as ClientsJob)); // measure.ts sends this.
  process.exit(0);
});
