import type { Clock } from "../../../kernel/clock.ts";
import { SECOND_MS } from "../../../kernel/time/duration.ts";
import { VERSION } from "../../../kernel/version.ts";
import type { AnswerListener } from "../../http/http.ts";
import { counter, family, gauge } from "./exposition.ts";
import { createRequestMetrics } from "./request-metrics.ts";

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
  /** By the jobs' names. */
  jobs: readonly {
    name: string;
    waiting: number;
    running: number;
    failedTotal: number;
    oldestWaitingSeconds: number;
  }[];
}

export interface Metrics {
  readonly record: AnswerListener;
  /** Prometheus text format 0.0.4. */
  text(): string;
}

const MICROSECONDS_PER_SECOND = 1_000_000;

export function createMetrics(deps: { clock: Clock; startedAt: number; load: () => ServerLoad }): Metrics {
  const { clock, startedAt, load } = deps;
  const requests = createRequestMetrics();
  return {
    record: requests.record,
    text: () => requests.text() + loadText(load()) + processText(startedAt, clock.now()),
  };
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
    jobsText(load.jobs),
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

/** `process_*` are the names that the Prometheus client libraries use. */
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
