import { writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { type Running, residentBytes } from "../support/processes.ts";
import type { Bench } from "../support/section.ts";
import type { ClientsJob, ClientsReport } from "./clients.ts";
import type { ProbeJob, ProbeReport } from "./probe.ts";
import type { SocketsJob, SocketsReport } from "./socket-clients.ts";

const MEMORY_EVERY_MS = 100;
const DURATION_MS = 5_000;
const REPEAT_EVERY_MS = 50;
const CLIENTS = 8;

export interface OperationRequest {
  method?: string;
  /** Path from the server's root. */
  path: string;
  headers?: Record<string, string>;
  body?: string | Uint8Array;
}

/** Client operation with the largest input that the limits allow. */
export interface Operation {
  name: string;
  /** Requests that its clients send in turn. */
  requests: readonly OperationRequest[];
  /** Number of clients; 8 by default. */
  clients?: number;
  /** Concurrent WebSocket clients. */
  sockets?: OperationSockets;
  /** Path that another client probes meanwhile; `/api/health` by default. */
  probedPath?: string;
}

export interface OperationSockets extends Pick<SocketsJob, "path" | "count" | "hello" | "reads"> {
  /** Message that each sends 20 times a second; none by default. */
  repeat?: unknown;
}

export interface Measured {
  name: string;
  probe: ProbeReport;
  clients: ClientsReport;
  /** Report of the WebSocket clients; null without any. */
  sockets: SocketsReport | null;
  /** Peak memory of the process during the operation, minus that before. */
  memoryBytes: number;
}

/** Starts a child process that answers one message with one message. */
function child<Job, Report>(file: string, job: Job): { end(): void; report: Promise<Report> } {
  const { promise, resolve: settle, reject } = Promise.withResolvers<Report>();
  const process_ = Bun.spawn([process.execPath, resolve(import.meta.dir, file)], {
    stdio: ["ignore", "inherit", "inherit"],
    ipc: (message) => settle(message as Report), // the file sends only this message
  });
  void process_.exited.then((code) => reject(new Error(`${file} ended with ${code} before its report`)));
  process_.send(job);
  return { end: () => process_.send("end"), report: promise };
}

const probe = (job: ProbeJob) => child<ProbeJob, ProbeReport>("probe.ts", job);

/** Samples the resident memory. The returned function stops this, and returns the peak. */
function watchMemory(pid: number): () => number {
  let highest = residentBytes(pid);
  const timer = setInterval(() => {
    highest = Math.max(highest, residentBytes(pid));
  }, MEMORY_EVERY_MS);
  return () => {
    clearInterval(timer);
    return Math.max(highest, residentBytes(pid));
  };
}

/** Measures an operation with its clients and a concurrent probe. */
export async function measure(bench: Bench, server: Running, operation: Operation): Promise<Measured> {
  bench.note(operation.name);
  const directory = bench.directory("stalls-bodies");
  const requests = operation.requests.map(({ method = "GET", path, headers = {}, body }) => {
    const bodyFile = body === undefined ? null : join(directory, Bun.randomUUIDv7());
    if (bodyFile !== null && body !== undefined) writeFileSync(bodyFile, body);
    return { url: server.url + path, method, headers, bodyFile };
  });
  const idleBytes = residentBytes(server.pid);
  const stopWatching = watchMemory(server.pid);
  const probing = probe({ url: server.url + (operation.probedPath ?? "/api/health"), headers: {} });
  const job: ClientsJob = { requests, clients: operation.clients ?? CLIENTS, durationMs: DURATION_MS };
  const [clients, sockets] = await Promise.all([
    child<ClientsJob, ClientsReport>("clients.ts", job).report,
    operation.sockets === undefined ? null : driveSockets(server, operation.sockets),
  ]);
  probing.end();
  const report = await probing.report;
  return { name: operation.name, probe: report, clients, sockets, memoryBytes: stopWatching() - idleBytes };
}

function driveSockets(server: Running, { repeat = null, ...sockets }: OperationSockets): Promise<SocketsReport> {
  const job: SocketsJob = {
    ...sockets,
    origin: server.url,
    repeat,
    repeatEveryMs: REPEAT_EVERY_MS,
    durationMs: DURATION_MS,
  };
  return child<SocketsJob, SocketsReport>("socket-clients.ts", job).report;
}
