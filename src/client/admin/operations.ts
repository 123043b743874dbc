import type { JsonObject } from "../../kernel/json/json.ts";
import type { Transport } from "../transport/types.ts";
import type { AdminJobs, InstanceEntry, Instances, JobRecord, ScheduleRecord } from "./types.ts";

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
