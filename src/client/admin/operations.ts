import type { JsonObject, JsonValue } from "../../kernel/json/json.ts";
import type { Transport } from "../transport/types.ts";

export type JobState = "waiting" | "running" | "done" | "failed";

export interface JobRecord {
  id: string;
  name: string;
  state: JobState;
  /** `drill`: it waits because the server is a drill, in which no job runs. */
  waitingFor: "drill" | null;
  /** The tries that have begun. */
  attempt: number;
  data: JsonValue;
  /** Of the latest try that failed. */
  error: string | null;
  /** Of a webhook: what its receiver answered to the latest try that had an answer, with the beginning of the body. */
  answer: { status: number; contentType: string | null; body: string; isCut: boolean } | null;
  createdAt: string;
  dueAt: string;
  startedAt: string | null;
  finishedAt: string | null;
}

export interface ScheduleRecord {
  /** Of its jobs: `cron:NAME`. */
  name: string;
  schedule: string;
  timezone: string;
  /** The next 5 runs; none in a drill. */
  next: string[];
  lastAt: string | null;
}

export interface AdminJobs {
  /** Newest first. */
  list(options?: {
    name?: string;
    state?: JobState;
    limit?: number;
    cursor?: string | null;
  }): Promise<{ items: JobRecord[]; cursor: string | null }>;
  /** Errors: `conflict` for a job that has not failed. */
  retry(id: string): Promise<void>;
  cancel(id: string): Promise<void>;
  schedules(): Promise<ScheduleRecord[]>;
  /** Runs a schedule now; gives the id of its job, or of the one that waits or runs. Errors: `not_found`. */
  runSchedule(name: string): Promise<string>;
  /** Runs a waiting job now. */
  runNow(id: string): Promise<void>;
}

export interface InstanceEntry {
  id: string;
  bytes: number;
  createdAt: string;
  /** The last write, or a little later. */
  writtenAt: string;
}

export interface Instances {
  /** In order of their ids. */
  list(options?: {
    prefix?: string;
    limit?: number;
    cursor?: string | null;
  }): Promise<{ items: InstanceEntry[]; cursor: string | null }>;
  /** With all of its records. */
  delete(id: string): Promise<void>;
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
  };
}

/** Messages to those who listen on a broadcast channel. */
export interface AdminBroadcast {
  /** Resolves when the server has sent it. */
  send(event: string, payload?: JsonObject): Promise<void>;
}

export const createAdminBroadcast = ({ request }: Transport, name: string): AdminBroadcast => ({
  async send(event, payload = {}) {
    await request("POST", "/api/realtime/broadcast", { body: { channel: `broadcast:${name}`, event, payload } });
  },
});
