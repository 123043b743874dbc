import { SECOND_MS } from "../../../kernel/time/duration.ts";
import { VERSION } from "../../../kernel/version.ts";
import type { AnswerListener } from "../../http/http.ts";
import { areaOf } from "../../http/route-area.ts";
import type { ProcessFigures } from "./processes.ts";

/** Current figures of the other areas. */
export interface ServerLoad {
  openFiles: number;
  waitingWrites: number;
  runningReads: number;
  waitingReads: number;
  realtimeSockets: number;
  roomSockets: number;
  rooms: number;
  /** Requests missing from the request log since the start. */
  droppedRequests: number;
  backupsMade: number;
  backupsFailed: number;
  /** Milliseconds since 1970; 0 before the first successful backup. */
  lastBackupAt: number;
  lastBackupBytes: number;
  lastBackupVerifiedAt: number;
  /** Continuous backup; null: there is none. */
  continuous: { lagMs: number; uploads: number; failures: number; verifiedAt: number | null } | null;
  /** Figures of each job name. */
  jobs: readonly {
    name: string;
    waiting: number;
    running: number;
    failedTotal: number;
    oldestWaitingSeconds: number;
  }[];
}

const MICROSECONDS_PER_SECOND = 1_000_000;

/** Returns all metrics in the Prometheus text format. */
export const metricsText = (
  requests: RequestMetrics,
  about: { load: ServerLoad; processes: readonly ProcessFigures[]; startedAt: number; now: number },
): string =>
  requests.text() + loadText(about.load) + processesText(about.processes) + processText(about.startedAt, about.now);

function processesText(processes: readonly ProcessFigures[]): string {
  const by = (figure: "requests" | "memory" | "loopMs", factor = 1) =>
    processes.map((one) => ({ labels: { pid: String(one.pid), role: one.role }, value: one[figure] * factor }));
  return [
    family(
      { name: "platform_process_requests_total", type: "counter", help: "Requests answered by each process." },
      by("requests"),
    ),
    family(
      { name: "platform_process_memory_bytes", type: "gauge", help: "Resident memory of each process." },
      by("memory"),
    ),
    family(
      { name: "platform_process_loop_delay_seconds", type: "gauge", help: "Delay of the event loop of each process." },
      by("loopMs", 1 / SECOND_MS),
    ),
  ].join("");
}

function loadText(load: ServerLoad): string {
  const sockets = [
    { labels: { area: "realtime" }, value: load.realtimeSockets },
    { labels: { area: "rooms" }, value: load.roomSockets },
  ];
  return [
    family({ name: "platform_sockets_open", type: "gauge", help: "Open WebSockets." }, sockets),
    gauge("platform_rooms_in_memory", "Rooms loaded in memory.", load.rooms),
    gauge("platform_database_files_open", "Open database files.", load.openFiles),
    gauge("platform_writes_waiting", "Writes waiting for their transaction.", load.waitingWrites),
    gauge("platform_long_reads_running", "Statements running in query processes.", load.runningReads),
    gauge("platform_long_reads_waiting", "Statements waiting for a query process.", load.waitingReads),
    counter("platform_request_log_dropped_total", "Requests missing from the request log.", load.droppedRequests),
    counter("platform_backups_made_total", "Scheduled backups that succeeded.", load.backupsMade),
    counter("platform_backups_failed_total", "Scheduled backups that failed.", load.backupsFailed),
    gauge(
      "platform_backup_last_timestamp_seconds",
      "Time of the last successful scheduled backup.",
      load.lastBackupAt / SECOND_MS,
    ),
    gauge(
      "platform_backup_verified_timestamp_seconds",
      "When a backup was last verified; 0: never.",
      load.lastBackupVerifiedAt / SECOND_MS,
    ),
    gauge("platform_backup_last_size_bytes", "Size of the last successful scheduled backup.", load.lastBackupBytes),
    continuousText(load.continuous),
    jobsText(load.jobs),
  ].join("");
}

function continuousText(continuous: ServerLoad["continuous"]): string {
  if (continuous === null) return "";
  const { lagMs, uploads, failures, verifiedAt } = continuous;
  return [
    gauge("platform_continuous_lag_seconds", "Age of the oldest commit that is not in the store.", lagMs / SECOND_MS),
    counter("platform_continuous_uploads_total", "Segments that were stored.", uploads),
    counter("platform_continuous_failures_total", "Attempts to store that failed.", failures),
    gauge(
      "platform_continuous_verified_timestamp_seconds",
      "When the continuous backup was last verified; 0: never.",
      (verifiedAt ?? 0) / SECOND_MS,
    ),
  ].join("");
}

function jobsText(jobs: ServerLoad["jobs"]): string {
  const by = (figure: "waiting" | "running" | "failedTotal" | "oldestWaitingSeconds") =>
    jobs.map((job) => ({ labels: { name: job.name }, value: job[figure] }));
  return [
    family({ name: "platform_jobs_waiting", type: "gauge", help: "Jobs that wait." }, by("waiting")),
    family({ name: "platform_jobs_running", type: "gauge", help: "Jobs that run." }, by("running")),
    family({ name: "platform_jobs_failed_total", type: "counter", help: "Jobs that have failed." }, by("failedTotal")),
    family(
      {
        name: "platform_jobs_oldest_waiting_seconds",
        type: "gauge",
        help: "For how long the job that is due first has been due.",
      },
      by("oldestWaitingSeconds"),
    ),
  ].join("");
}

/** Returns the metrics of the process. Its `process_*` names are those of the Prometheus client libraries. */
function processText(startedAt: number, now: number): string {
  const { user, system } = process.cpuUsage();
  const version = { labels: { version: VERSION }, value: 1 };
  return [
    family({ name: "platform_info", type: "gauge", help: "Version of the running server." }, [version]),
    gauge("platform_uptime_seconds", "Time since the start.", (now - startedAt) / SECOND_MS),
    gauge("process_start_time_seconds", "Start time of the server.", startedAt / SECOND_MS),
    counter("process_cpu_seconds_total", "User and system CPU time.", (user + system) / MICROSECONDS_PER_SECOND),
    gauge("process_resident_memory_bytes", "Resident memory.", process.memoryUsage.rss()),
  ].join("");
}

/** Upper bounds of the latency buckets: from a point read to the longest query. */
const LATENCY_BOUNDS_S = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30];
const LATENCY_BOUNDS_MS = LATENCY_BOUNDS_S.map((seconds) => seconds * SECOND_MS);
const STATUS_CLASSES = ["1xx", "2xx", "3xx", "4xx", "5xx"];

/** Counters of all requests of one area and method. */
interface Counters {
  area: string;
  method: string;
  byStatusClass: number[];
}

interface Latencies {
  counts: number[];
  sumMs: number;
}

interface OfArea {
  counters: Map<string, Counters>;
  latencies: Latencies;
}

/** Counts the answers to requests. Both maps are bounded: routes are declared, and all unmatched paths share the route null. */
export class RequestMetrics {
  readonly #byRoute = new Map<string | null, OfArea>();
  readonly #byArea = new Map<string, OfArea>();

  /** Counts an answer. It runs for every request, so it costs two map lookups and three additions. */
  readonly record: AnswerListener = ({ request, route, status, durationMs }) => {
    const { counters, latencies } = this.#byRoute.get(route) ?? this.#addRoute(route);
    const { method } = request;
    let counter = counters.get(method);
    if (counter === undefined) {
      counter = { area: areaOf(route), method, byStatusClass: STATUS_CLASSES.map(() => 0) };
      counters.set(method, counter);
    }
    increment(counter.byStatusClass, Math.floor(status / 100) - 1);
    increment(latencies.counts, bucketOf(durationMs));
    latencies.sumMs += durationMs;
  };

  text(): string {
    const counters = [...this.#byArea.values()].flatMap((area) => [...area.counters.values()]);
    const requests = counters.flatMap(({ area, method, byStatusClass }) =>
      byStatusClass
        .map((value, index) => ({ value, labels: { area, method, status: STATUS_CLASSES[index] ?? "" } }))
        .filter(({ value }) => value > 0),
    );
    const histograms = [...this.#byArea].map(([area, { latencies }]) => ({
      labels: { area },
      counts: latencies.counts,
      sum: latencies.sumMs / SECOND_MS,
    }));
    return (
      family({ name: "platform_http_requests_total", type: "counter", help: "Requests answered." }, requests) +
      histogramFamily(
        "platform_http_request_duration_seconds",
        "Time from the start of a handler to its answer.",
        LATENCY_BOUNDS_S,
        histograms,
      )
    );
  }

  #addRoute(route: string | null): OfArea {
    const area = areaOf(route);
    const ofArea = this.#byArea.get(area) ?? { counters: new Map(), latencies: { counts: emptyCounts(), sumMs: 0 } };
    this.#byArea.set(area, ofArea);
    this.#byRoute.set(route, ofArea);
    return ofArea;
  }
}

const emptyCounts = (): number[] => Array.from({ length: LATENCY_BOUNDS_MS.length + 1 }, () => 0);

function bucketOf(durationMs: number): number {
  const index = LATENCY_BOUNDS_MS.findIndex((boundMs) => durationMs <= boundMs);
  return index === -1 ? LATENCY_BOUNDS_MS.length : index;
}

function increment(counts: number[], index: number): void {
  const count = counts[index];
  if (count !== undefined) counts[index] = count + 1;
}

/** Content type of the Prometheus text format 0.0.4. */
export const METRICS_CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8";

type Labels = Readonly<Record<string, string>>;

interface Family {
  name: string;
  help: string;
  type: "counter" | "gauge" | "histogram";
}

interface Sample {
  labels?: Labels;
  /** Suffix of the name, for histograms: `_bucket`, `_sum`, `_count`. */
  suffix?: string;
  value: number;
}

/** Returns the lines of one metric: help, type and all samples. */
function family({ name, help, type }: Family, samples: readonly Sample[]): string {
  const lines = samples.map(({ labels = {}, suffix = "", value }) => `${name}${suffix}${labelText(labels)} ${value}\n`);
  return `# HELP ${name} ${help}\n# TYPE ${name} ${type}\n${lines.join("")}`;
}

/** Returns a gauge with a single sample and no labels. */
const gauge = (name: string, help: string, value: number): string => family({ name, help, type: "gauge" }, [{ value }]);

/** Returns a counter with a single sample and no labels. */
const counter = (name: string, help: string, value: number): string =>
  family({ name, help, type: "counter" }, [{ value }]);

interface Histogram {
  labels: Labels;
  /** Count of each bucket by itself, not cumulative. The last bucket has no upper bound. */
  counts: readonly number[];
  sum: number;
}

/** Returns the lines of a histogram, cumulative, as the format requires. `bounds`: upper bounds of all buckets except the last. */
function histogramFamily(
  name: string,
  help: string,
  bounds: readonly number[],
  histograms: readonly Histogram[],
): string {
  const samples = histograms.flatMap(({ labels, counts, sum }) => {
    let cumulated = 0;
    const buckets = counts.map((count, index) => {
      cumulated += count;
      return { suffix: "_bucket", labels: { ...labels, le: String(bounds[index] ?? "+Inf") }, value: cumulated };
    });
    return [...buckets, { suffix: "_sum", labels, value: sum }, { suffix: "_count", labels, value: cumulated }];
  });
  return family({ name, help, type: "histogram" }, samples);
}

function labelText(labels: Labels): string {
  const pairs = Object.entries(labels).map(([name, value]) => `${name}="${escapeLabel(value)}"`);
  return pairs.length === 0 ? "" : `{${pairs.join(",")}}`;
}

const escapeLabel = (value: string): string =>
  value.replace(/[\\"\n]/g, (character) => (character === "\n" ? "\\n" : `\\${character}`));
