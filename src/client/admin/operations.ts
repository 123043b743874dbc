import type { JsonObject, JsonValue } from "../../kernel/json/json.ts";
import type { Transport } from "../transport/types.ts";

export type JobState = "waiting" | "running" | "done" | "failed";

export interface JobRecord {
  id: string;
  name: string;
  state: JobState;
  /** Why the job waits. `drill`: the server is a drill, in which no job runs. null: no special reason. */
  waitingFor: "drill" | null;
  /** Number of attempts started. */
  attempt: number;
  data: JsonValue;
  /** Error of the latest failed attempt; null without one. */
  error: string | null;
  /** Latest response of a webhook's receiver, with the beginning of its body; null without one. */
  answer: { status: number; contentType: string | null; body: string; isCut: boolean } | null;
  createdAt: string;
  dueAt: string;
  startedAt: string | null;
  finishedAt: string | null;
}

export interface ScheduleRecord {
  /** Name of the schedule's jobs: `cron:NAME`. */
  name: string;
  schedule: string;
  timezone: string;
  /** Times of the next 5 runs; empty in a drill. */
  next: string[];
  lastAt: string | null;
}

export interface AdminJobs {
  /** Returns jobs, newest first. */
  list(options?: {
    name?: string;
    state?: JobState;
    limit?: number;
    cursor?: string | null;
  }): Promise<{ items: JobRecord[]; cursor: string | null }>;
  /** Retries a failed job. Errors: `conflict` for a job that has not failed. */
  retry(id: string): Promise<void>;
  cancel(id: string): Promise<void>;
  schedules(): Promise<ScheduleRecord[]>;
  /** Runs a schedule now. Returns the id of the new job, or of one that already waits or runs. Errors: `not_found`. */
  runSchedule(name: string): Promise<string>;
  /** Runs a waiting job now. */
  runNow(id: string): Promise<void>;
  /** Adds a job like this one with other data. Returns its id. Errors: `conflict` for the server's own jobs. */
  runAgain(id: string, data: JsonValue): Promise<string>;
}

export interface InstanceEntry {
  id: string;
  bytes: number;
  createdAt: string;
  /** Time of the last write, or slightly later. */
  writtenAt: string;
}

/** Moment of a restored instance, and the numbers of records by table. */
export interface InstanceRestore {
  at: string;
  /** `then`: at that moment; `now`: before the restore. */
  tables: Record<string, { then: number; now: number }>;
}

export interface Instances {
  /** Returns instances, ordered by id. */
  list(options?: {
    prefix?: string;
    limit?: number;
    cursor?: string | null;
  }): Promise<{ items: InstanceEntry[]; cursor: string | null }>;
  /** Deletes an instance with all of its records. */
  delete(id: string): Promise<void>;
  /**
   * Gives an instance, a deleted one too, the content of a moment (ISO 8601 with a zone) from the continuous backup. `preview`: only
   * counts. For the root key. Errors: `not_found` for an unknown instance or moment, `conflict` while it is restored, `unavailable`.
   */
  restore(id: string, options: { at: string; preview?: boolean }): Promise<InstanceRestore>;
}

export function createJobs({ request }: Transport): AdminJobs {
  const change = async (id: string, action: string) => {
    await request("POST", `/api/admin/jobs/${encodeURIComponent(id)}/${action}`);
  };
  return {
    async list(query) {
      const answer = await request<{ jobs: JobRecord[]; cursor: string | null }>("GET", "/api/admin/jobs", {
        query: { ...query },
      });
      return { items: answer.jobs, cursor: answer.cursor };
    },
    schedules: async () => (await request<{ schedules: ScheduleRecord[] }>("GET", "/api/admin/schedules")).schedules,
    async runSchedule(name) {
      return (await request<{ id: string }>("POST", `/api/admin/schedules/${encodeURIComponent(name)}/run`)).id;
    },
    retry: (id) => change(id, "retry"),
    cancel: (id) => change(id, "cancel"),
    runNow: (id) => change(id, "run-now"),
    async runAgain(id, data) {
      const path = `/api/admin/jobs/${encodeURIComponent(id)}/run-again`;
      return (await request<{ id: string }>("POST", path, { body: { data } })).id;
    },
  };
}

export function createInstances({ request }: Transport, namespace: string): Instances {
  const path = `/api/admin/instances/${encodeURIComponent(namespace)}`;
  return {
    async list({ cursor, ...query } = {}) {
      const answer = await request<{ instances: InstanceEntry[]; cursor: string | null }>("GET", path, {
        query: { ...query, after: cursor },
      });
      return { items: answer.instances, cursor: answer.cursor };
    },
    async delete(id) {
      await request("DELETE", `${path}/${encodeURIComponent(id)}`);
    },
    restore: (id, options) =>
      request<InstanceRestore>("POST", `${path}/${encodeURIComponent(id)}/restore`, { body: options }),
  };
}

/** Sends messages to the listeners of a broadcast channel. */
export interface AdminBroadcast {
  /** Sends a message. Resolves when the server has sent it. */
  send(event: string, payload?: JsonObject): Promise<void>;
}

export const createAdminBroadcast = ({ request }: Transport, name: string): AdminBroadcast => ({
  async send(event, payload = {}) {
    await request("POST", "/api/realtime/broadcast", { body: { channel: `broadcast:${name}`, event, payload } });
  },
});
