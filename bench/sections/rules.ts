import { measureFollowing } from "../cases/rules-sockets.ts";
import { compare } from "../support/compare.ts";
import type { Load } from "../support/load.ts";
import { type Running, SERVICE_KEY, startPlatform } from "../support/processes.ts";
import type { Bench, Result, Section } from "../support/section.ts";
import { latency } from "./figures.ts";

const RECORDS = 1_000;
const PROJECTS = 50;
const PAGE = 20;
/** Number of pages, larger than the list cache. */
const PAGES = 10_000;
const GET_RATIO_MIN = 0.6;
const LIST_RATIO_MIN = 0.75;
const DELIVERY_P99_MAX_MS = 250;

const CONFIG = `import { defineConfig } from "platform";

const task = { title: { type: "string" }, projectId: { type: "string" } };

export default defineConfig({
  databases: {
    shared: {
      tables: {
        members: { schema: { role: { type: "string" } } },
        memberships: {
          schema: { userId: { type: "string" }, projectId: { type: "string" } },
          indexes: [{ fields: ["userId"] }],
        },
        plain: { schema: task, indexes: [{ fields: ["projectId"] }], access: { read: true } },
        looked: {
          schema: task,
          access: {
            read: (auth, _task, { table }) =>
              auth !== null &&
              table("members").get(auth.id)?.role === "editor" &&
              table("memberships").where("userId", "==", auth.id).exists(),
          },
        },
        byRecord: {
          schema: task,
          access: {
            read: (auth, task, { table }) =>
              auth !== null && table("members").get(auth.id) !== null && table("members").get(task.projectId) === null,
          },
        },
        constant: {
          schema: task,
          indexes: [{ fields: ["projectId"] }],
          access: { read: (auth) => auth !== null && [["projectId", "in", ["p0", "p1", "p2"]]] },
        },
        filtered: {
          schema: task,
          indexes: [{ fields: ["projectId"] }],
          access: {
            read: (auth, _task, { table }) =>
              auth !== null && [
                ["projectId", "in", table("memberships").where("userId", "==", auth.id).list().items.map((one) => one.projectId)],
              ],
          },
        },
      },
    },
  },
});
`;

const idAt = (index: number): string => `task-${String(index).padStart(4, "0")}`;

async function post<T>(url: string, body: unknown): Promise<T> {
  const headers = { "content-type": "application/json", "x-platform-service-key": SERVICE_KEY };
  const response = await fetch(url, { method: "POST", headers, body: JSON.stringify(body) });
  if (!response.ok) throw new Error(`${url} answered ${response.status}: ${await response.text()}`);
  // The caller knows the response type of its endpoint.
  return (await response.json()) as T;
}

/** Starts a server with a member of three projects, and tasks in fifty. */
async function start(bench: Bench): Promise<Running & { token: string }> {
  const platform = await startPlatform(bench.executable, bench.directory("rules"), CONFIG);
  const tables = `${platform.url}/api/db/shared/tables`;
  for (const table of ["plain", "looked", "byRecord", "constant", "filtered"]) {
    for (const from of [0, RECORDS / 2]) {
      const inserts = Array.from({ length: RECORDS / 2 }, (_, index) => ({
        id: idAt(from + index),
        title: `Task ${from + index}`,
        projectId: `p${index % PROJECTS}`,
      }));
      await post(`${tables}/${table}/batch`, { inserts });
    }
  }
  const account = { email: "member@example.com", password: "correct horse battery" };
  const signedUp = await post<{ accessToken: string; user: { id: string } }>(
    `${platform.url}/api/auth/signup`,
    account,
  );
  const userId = signedUp.user.id;
  await post(`${tables}/members`, { id: userId, role: "editor" });
  for (const projectId of ["p0", "p1", "p2"]) await post(`${tables}/memberships`, { userId, projectId });
  return { ...platform, token: signedUp.accessToken };
}

async function run(bench: Bench): Promise<Result[]> {
  return [...(await requests(bench)), ...(await subscriptions(bench))];
}

/** Measures the wait of users whose rules have looked up records, while these change. */
async function subscriptions(bench: Bench): Promise<Result[]> {
  bench.note("subscribers whose rules look memberships up");
  const { subscribers, changesPerSecond, membershipChangesPerSecond, ...figures } = await measureFollowing();
  const crowd = `${subscribers.toLocaleString("en")} subscribers with lookups`;
  const rates = `${changesPerSecond} changes and ${membershipChangesPerSecond} membership changes/s`;
  const isMet = figures.deliveryP99Ms < DELIVERY_P99_MAX_MS;
  return [
    {
      ...latency(`a change to ${crowd}, ${rates}`, { p50Ms: figures.deliveryP50Ms, p99Ms: figures.deliveryP99Ms }),
      target: `p99 < ${DELIVERY_P99_MAX_MS} ms`,
      isMet,
    },
    latency("from a membership change until its user is told, in the same run", {
      p50Ms: figures.rightsP50Ms,
      p99Ms: figures.rightsP99Ms,
    }),
  ];
}

async function requests(bench: Bench): Promise<Result[]> {
  const platform = await start(bench);
  const headers = { authorization: `Bearer ${platform.token}` };
  const suffixes = Array.from({ length: RECORDS }, (_, index) => `/${idAt((index * 7919) % RECORDS)}`);
  const one = (table: string): Load => ({ url: `${platform.url}/api/db/shared/tables/${table}`, suffixes, headers });
  // A different page each time, as a repeated list is answered from the cache. The cursors lie between the ids of two tasks, so
  // that there are more pages than the cache holds, all of them full.
  const pages = Array.from({ length: PAGES }, (_, index) => `&after=${idAt((index * 7919) % (RECORDS / 2))}-${index}`);
  const page = (table: string, query = ""): Load => ({
    url: `${platform.url}/api/db/shared/tables/${table}?limit=${PAGE}&total=false${query}`,
    suffixes: pages,
    headers,
  });
  const own = encodeURIComponent(JSON.stringify([["projectId", "in", ["p0", "p1", "p2"]]]));
  try {
    return [
      await compare(bench, {
        name: "GET one record behind a rule with two lookups; the floor is a rule of `true`",
        targetRatio: GET_RATIO_MIN,
        platform: one("looked"),
        floor: one("plain"),
      }),
      await compare(bench, {
        name: "the same where the rule also reads the record",
        targetRatio: GET_RATIO_MIN,
        platform: one("byRecord"),
        floor: one("plain"),
      }),
      await compare(bench, {
        name: "a list of 20 behind a filter made by one lookup; the floor is the same filter without it",
        targetRatio: LIST_RATIO_MIN,
        platform: page("filtered"),
        floor: page("constant"),
      }),
      await compare(bench, {
        name: "a list of 20 behind a filter made by one lookup; the floor is that filter in the request, and a rule of `true`",
        targetRatio: LIST_RATIO_MIN,
        platform: page("filtered"),
        floor: page("plain", `&filter=${own}`),
      }),
    ];
  } finally {
    await platform.stop();
  }
}

export const rules: Section = {
  name: "rules",
  title: "Rules that look up other records",
  about:
    "One server, 1,000 tasks in 50 projects, a user who is a member of three of them. The same requests by bearer token to tables that differ in " +
    "their read rules alone, in turns. Then 10,000 users over WebSockets, each a member of one of 1,000 projects, whose rule returns a filter made of " +
    "their memberships: tasks are written, and members change their projects.",
  run,
};
