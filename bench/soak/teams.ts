import type { JsonObject } from "../../src/kernel/json/json.ts";
import type { Client, Request } from "./client.ts";
import { TEAMS } from "./config.ts";

/** Bound of the tasks of one client in one team. */
const TASKS_KEPT = 20;

const teamOf = (number: number): string => `/api/db/teams/team${number}`;

/** Creates the teams, with every client an editor of each. */
export async function createTeams({ service }: Client, userIds: readonly string[]): Promise<void> {
  const inserts = userIds.map((id) => ({ id, role: "editor" }));
  for (let number = 0; number < TEAMS; number++) {
    const { status, body } = await service.post(`${teamOf(number)}/tables/members/batch`, { inserts });
    if (status >= 300) throw new Error(`a team without members: ${status} ${JSON.stringify(body)}`);
  }
}

/** Returns what members do in their teams, under rules with lookups; and jobs, routes and the dashboard's requests. */
export function teamRequestsOf({ prefix }: Client): readonly Request[] {
  let count = 0;
  const place = (): { team: string; task: string; key: string } => {
    const number = count++;
    return {
      team: teamOf(number % TEAMS),
      task: `${prefix}-${number % (TASKS_KEPT * TEAMS)}`,
      key: `${prefix}-${number}`,
    };
  };
  const tasks = (client: Client): string => `${teamOf(client.random.below(TEAMS))}/tables/tasks`;

  const write: Request = ({ user, random }) => {
    const { team, task, key } = place();
    const data = {
      title: `task ${key}`,
      state: random.pick(["open", "done"]),
      points: random.below(9),
      owner: user.id,
    };
    const operations = [{ table: "tasks", action: "upsert", data: { ...data, id: task } }];
    return user.post(`${team}/transaction`, { operations }, { headers: { "Idempotency-Key": key } });
  };
  const change: Request = async (client) => {
    const table = tasks(client);
    const { body } = await client.user.get<{ items: JsonObject[] }>(table, { query: { limit: 1, total: "false" } });
    const [task] = body.items;
    if (task === undefined) return { status: 200 };
    const condition = JSON.stringify([["points", "==", task["points"] ?? 0]]);
    const changes = { points: client.random.below(9) };
    const answer = await client.user.patch(`${table}/${String(task["id"])}`, changes, { query: { if: condition } });
    // Another client was first, which `if` detects.
    return answer.status === 412 || answer.status === 404 ? { status: 200 } : answer;
  };
  const remove: Request = async (client) => {
    const answer = await client.user.delete(`${tasks(client)}/${prefix}-${client.random.below(TASKS_KEPT * TEAMS)}`);
    return answer.status === 404 ? { status: 200 } : answer;
  };
  /** Leaves and rejoins, so that the rights of open subscriptions are re-evaluated. */
  const rejoin: Request = async (client) => {
    const members = `${teamOf(client.random.below(TEAMS))}/tables/members`;
    return client.service.post(`${members}?upsert=true`, { id: client.user.id, role: "editor" });
  };

  return [
    ...[write, change, remove, rejoin],
    (client) => client.user.get(tasks(client), { query: { limit: 20, expand: "owner", sort: "createdAt:desc" } }),
    (client) =>
      client.user.get(`${tasks(client)}/aggregate`, { query: { select: "count(),sum(points)", groupBy: "state" } }),
    ({ user }) => user.post("/api/functions/note"),
    ({ user }) => user.get("/api/functions/best"),
    ({ service }) => service.get("/api/admin/audit", { query: { limit: 20 } }),
    ({ service, user }) => service.get("/api/db/shared/tables/posts", { headers: { "X-Platform-Act-As": user.id } }),
  ];
}
