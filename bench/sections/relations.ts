import { compare } from "../support/compare.ts";
import type { Load } from "../support/load.ts";
import { type Running, SERVICE_KEY, startPlatform } from "../support/processes.ts";
import type { Bench, Result, Section } from "../support/section.ts";

const PROJECTS = 50;
const OWN_PROJECTS = 20;
const RECORDS = 1_000;
const PAGE = 20;
/** Number of pages, larger than the list cache. */
const PAGES = 10_000;
const LIST_RATIO_MIN = 0.8;
const GET_RATIO_MIN = 0.7;

const own = Array.from({ length: OWN_PROJECTS }, (_, index) => `p${index}`);

const CONFIG = `import { defineConfig, field, some } from "platform";

const task = { title: { type: "string" }, projectId: { type: "string" } } as const;
const indexes = [{ fields: ["projectId"] }] as const;

export default defineConfig({ databases: { shared: { tables: {
  memberships: {
    schema: { userId: { type: "string" }, projectId: { type: "string" } },
    indexes: [{ fields: ["projectId", "userId"] }],
  },
  plain: { schema: task, indexes, access: { read: true } },
  listed: { schema: task, indexes, access: { read: (auth) => auth !== null && [["projectId", "in", ${JSON.stringify(own)}]] } },
  related: {
    schema: task,
    indexes,
    access: {
      read: (auth) => auth !== null && some("memberships", [["projectId", "==", field("projectId")], ["userId", "==", auth.id]]),
    },
  },
} } } });
`;

const idAt = (index: number): string => `task-${String(index).padStart(4, "0")}`;

async function post<T>(url: string, body: unknown): Promise<T> {
  const headers = { "content-type": "application/json", "x-platform-service-key": SERVICE_KEY };
  const response = await fetch(url, { method: "POST", headers, body: JSON.stringify(body) });
  if (!response.ok) throw new Error(`${url} answered ${response.status}: ${await response.text()}`);
  // The caller knows the response type of its endpoint.
  return (await response.json()) as T;
}

/** Starts a server with a member of twenty projects among others, and tasks in fifty. */
async function start(bench: Bench): Promise<Running & { token: string }> {
  const platform = await startPlatform(bench.executable, bench.directory("relations"), CONFIG);
  const tables = `${platform.url}/api/db/shared/tables`;
  for (const table of ["plain", "listed", "related"]) {
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
  const { accessToken, user } = await post<{ accessToken: string; user: { id: string } }>(
    `${platform.url}/api/auth/signup`,
    account,
  );
  const others = Array.from({ length: 400 }, (_, index) => ({
    userId: `user-${index}`,
    projectId: `p${index % PROJECTS}`,
  }));
  const inserts = [...others, ...own.map((projectId) => ({ userId: user.id, projectId }))];
  await post(`${tables}/memberships/batch`, { inserts });
  return { ...platform, token: accessToken };
}

async function run(bench: Bench): Promise<Result[]> {
  const platform = await start(bench);
  const headers = { authorization: `Bearer ${platform.token}` };
  const shown = Array.from({ length: RECORDS }, (_, index) => index).filter((index) => index % PROJECTS < OWN_PROJECTS);
  const suffixes = shown.map((_, index) => `/${idAt(shown[(index * 7919) % shown.length] ?? 0)}`);
  const one = (table: string): Load => ({ url: `${platform.url}/api/db/shared/tables/${table}`, suffixes, headers });
  // A different page each time, as a repeated list is answered from the cache.
  const pages = Array.from({ length: PAGES }, (_, index) => `&after=${idAt((index * 7919) % (RECORDS / 2))}-${index}`);
  const page = (table: string): Load => ({
    url: `${platform.url}/api/db/shared/tables/${table}?limit=${PAGE}&total=false`,
    suffixes: pages,
    headers,
  });
  try {
    return [
      await compare(bench, {
        name: "a list of 20 behind `some`; the floor is a rule with an `in` of 20 ids",
        targetRatio: LIST_RATIO_MIN,
        pid: platform.pid,
        platform: page("related"),
        floor: page("listed"),
      }),
      await compare(bench, {
        name: "GET one record behind `some`; the floor is a rule of `true`",
        targetRatio: GET_RATIO_MIN,
        pid: platform.pid,
        platform: one("related"),
        floor: one("plain"),
      }),
    ];
  } finally {
    await platform.stop();
  }
}

export const relations: Section = {
  name: "relations",
  title: "Rules with a relation",
  about:
    "One server, 1,000 tasks in 50 projects, a user who is a member of twenty of them, among 420 memberships. The same requests by bearer token to " +
    "tables that differ in their read rules alone, in turns: the processor time of the server for one request decides.",
  run,
};
