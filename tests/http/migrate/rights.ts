import type { JsonObject } from "../../../src/kernel/json/json.ts";
import type { HttpClient, TestPlatform } from "../../support/index.ts";
import type { PocketBase } from "../../support/pocketbase.ts";
import { PASSWORD } from "./demo-world.ts";

/** A caller with its credentials at both servers. */
export interface Actor {
  name: string;
  there: HttpClient;
  here: HttpClient;
}

/** Signs in at both servers with the one password that all have. */
export async function actorOf(
  pb: PocketBase,
  platform: TestPlatform,
  name: string,
  collection = "users",
): Promise<Actor> {
  const email = `${name}@example.com`;
  const token = await pb.signIn(collection, email, PASSWORD);
  const { body } = await platform.post<{ accessToken: string }>("/api/auth/signin", { email, password: PASSWORD });
  return { name, there: pb.as(token), here: platform.as(body.accessToken) };
}

export const nobody = (pb: PocketBase, platform: TestPlatform): Actor => ({
  name: "nobody",
  there: pb,
  here: platform,
});

const path = {
  there: (table: string, id = "") => `/api/collections/${table}/records${id === "" ? "" : `/${id}`}`,
  here: (table: string, id = "") => `/api/db/shared/tables/${table}${id === "" ? "" : `/${id}`}`,
};

const isOk = ({ status }: { status: number }): boolean => status >= 200 && status < 300;

interface Ids {
  items?: { id: string }[];
}

const idsIn = (answer: { status: number; body: Ids | null }): string[] =>
  isOk(answer) ? (answer.body?.items ?? []).map(({ id }) => id).sort() : [];

/** Rights of a caller there and here, where the two differ: `+` here alone, `-` there alone. */
export type Difference = `${"+" | "-"} ${string}`;

const difference = (what: string, there: boolean, here: boolean): Difference[] =>
  there === here ? [] : [`${here ? "+" : "-"} ${what}`];

/** Compares what callers see: lists, and each record of a table by its id. */
export async function seen(actors: readonly Actor[], tables: readonly string[], pb: PocketBase, titles: Titles) {
  const differences: Difference[] = [];
  let compared = 0;
  for (const table of tables) {
    const all = idsIn(await pb.superuser.get<Ids>(path.there(table), { query: { perPage: 200 } }));
    for (const { name, there, here } of actors) {
      const listed = {
        there: idsIn(await there.get<Ids>(path.there(table), { query: { perPage: 200 } })),
        here: idsIn(await here.get<Ids>(path.here(table), { query: { limit: 200 } })),
      };
      for (const id of all) {
        const what = `${table} ${titles(id)}`;
        differences.push(...difference(`${name} lists ${what}`, listed.there.includes(id), listed.here.includes(id)));
        const [one, other] = [await there.get(path.there(table, id)), await here.get(path.here(table, id))];
        differences.push(...difference(`${name} gets ${what}`, isOk(one), isOk(other)));
        compared += Number(listed.there.includes(id)) + Number(isOk(one));
      }
      const others = listed.here.filter((id) => !all.includes(id));
      differences.push(...others.map((id): Difference => `+ ${name} lists ${table} ${id}`));
    }
  }
  return { differences, compared };
}

export type Titles = (id: string) => string;

/** A write to try at both servers. */
export interface Attempt {
  actor: Actor;
  action: "insert" | "update" | "delete";
  table: string;
  id: string;
  values?: JsonObject;
}

/** Tries writes in order at both servers. Returns where one allows what the other refuses, and how many were allowed. */
export async function tried(attempts: readonly Attempt[], titles: Titles) {
  const differences: Difference[] = [];
  let allowed = 0;
  for (const { actor, action, table, id, values = {} } of attempts) {
    const send = async (client: HttpClient, at: (table: string, id?: string) => string) => {
      if (action === "insert") return client.post(at(table), { id, ...values });
      return action === "update" ? client.patch(at(table, id), values) : client.delete(at(table, id));
    };
    const [there, here] = [await send(actor.there, path.there), await send(actor.here, path.here)];
    allowed += Number(isOk(there) && isOk(here));
    const what = `${actor.name} ${action}s ${table} ${titles(id)} ${Object.keys(values).join()}`.trim();
    differences.push(...difference(what, isOk(there), isOk(here)));
  }
  return { differences, allowed };
}
