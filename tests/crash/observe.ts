import type { JsonObject } from "../../src/kernel/json/json.ts";
import { path } from "../http/storage/storage-support.ts";
import type { HttpClient, ListAnswer } from "../support/index.ts";
import { INSTANCES } from "./config.ts";
import { contentOf, noteState } from "./writers.ts";

const PAGE = 1_000;
/** `values` of the answer are what was stored; getByIds takes so many at once. */
const IDS_MAX = 100;

/** Everything that is there, by the public door. */
export async function observe(
  service: HttpClient,
  { userId, vectorIds }: { userId: string; vectorIds: readonly string[] },
): Promise<Map<string, string>> {
  const present = new Map<string, string>();
  const add = (thing: string, state: string): void => {
    if (present.has(thing)) throw new Error(`${thing} is there twice`);
    present.set(thing, state);
  };
  for (const note of await records(service, "/api/db/shared/tables/notes")) add(`note/${note["id"]}`, noteState(note));
  for (const comment of await records(service, "/api/db/shared/tables/comments")) {
    add(`comment/${comment["id"]}`, String(comment["note"]));
  }
  for (let tenant = 0; tenant < INSTANCES; tenant++) {
    for (const line of await records(service, `/api/db/tenants/t${tenant}/tables/lines`)) {
      add(`line/${line["id"]}@t${tenant}`, String(line["value"]));
    }
  }
  for (const [key, state] of await files(service)) add(`file/${key}`, state);
  for (const [key, value] of await entries(service)) add(`key/${key}`, value);
  const { body } = await service.post<{ results: JsonObject[] }>("/api/d1/main", { query: "SELECT id, value FROM t" });
  for (const row of body.results) add(`row/${row["id"]}`, String(row["value"]));
  for (const [id, state] of await vectors(service, vectorIds)) add(`vector/${id}`, state);
  for (const [id, role] of await users(service)) add(`user/${id}`, role);
  const devices = await service.get<{ tokens: { id: string; token: string }[] }>("/api/push/tokens", {
    query: { userId },
  });
  for (const { id, token } of devices.body.tokens) add(`device/${id}`, token);
  return present;
}

/** All pages of a list; its total is the one that the server keeps count of. */
async function records(service: HttpClient, address: string): Promise<JsonObject[]> {
  const first = (await service.get<ListAnswer>(address, { query: { limit: PAGE } })).body;
  const items = [...first.items];
  for (let { cursor } = first; cursor !== null; ) {
    const { body } = await service.get<ListAnswer>(address, { query: { limit: PAGE, after: cursor } });
    items.push(...body.items);
    cursor = body.cursor;
  }
  if (first.total !== items.length) throw new Error(`${address} says ${first.total}, and has ${items.length}`);
  return items;
}

async function files(service: HttpClient): Promise<[string, string][]> {
  const keys: string[] = [];
  for (let cursor: string | null = ""; cursor !== null; ) {
    const query: Record<string, string | number> = cursor === "" ? { limit: PAGE } : { limit: PAGE, cursor };
    const { body }: { body: { objects: { key: string }[]; cursor: string | null } } = await service.get(
      "/api/storage/files",
      { query },
    );
    keys.push(...body.objects.map(({ key }) => key));
    cursor = body.cursor;
  }
  return Promise.all(
    keys.map(async (key): Promise<[string, string]> => {
      const text = await (await service.fetch(path("files", key))).text();
      const state = `${text.slice(0, text.indexOf(" "))}*${text.split(" ").length - 1}`;
      return [key, contentOf(state) === text ? state : "broken"];
    }),
  );
}

async function entries(service: HttpClient): Promise<[string, string][]> {
  const keys: string[] = [];
  for (let cursor: string | null = ""; cursor !== null; ) {
    const query: JsonObject = { action: "list", limit: PAGE, ...(cursor === "" ? {} : { cursor }) };
    const { body }: { body: { keys: string[]; cursor: string | null } } = await service.post("/api/kv/cache", query);
    keys.push(...body.keys);
    cursor = body.cursor;
  }
  return Promise.all(
    keys.map(async (key): Promise<[string, string]> => {
      return [key, String((await service.post("/api/kv/cache", { action: "get", key })).body["value"])];
    }),
  );
}

interface VectorAnswer {
  vectors: { id: string; values: number[]; metadata: { by: string } }[];
}

/** There is no list of vectors: those that could be there are asked for, and counted. */
async function vectors(service: HttpClient, ids: readonly string[]): Promise<[string, string][]> {
  const ask = <T>(body: JsonObject) => service.post<T>("/api/vectorize/near", body);
  const found: [string, string][] = [];
  for (let from = 0; from < ids.length; from += IDS_MAX) {
    const { body } = await ask<VectorAnswer>({ action: "getByIds", ids: ids.slice(from, from + IDS_MAX) });
    for (const { id, values, metadata } of body.vectors) found.push([id, `${values.join()} ${metadata.by}`]);
  }
  const { vectorCount } = (await ask<{ vectorCount: number }>({ action: "describe" })).body;
  if (vectorCount !== found.length)
    throw new Error(`there are ${vectorCount} vectors, and ${found.length} by their ids`);
  return found;
}

async function users(service: HttpClient): Promise<[string, string][]> {
  const found: [string, string][] = [];
  for (let cursor: string | null = "0"; cursor !== null; ) {
    const { body }: { body: { users: { id: string; role: string }[]; cursor: string | null } } = await service.get(
      "/api/auth/admin/users",
      { query: { limit: PAGE, cursor } },
    );
    // Those of the test itself have the usual role.
    for (const { id, role } of body.users) if (role !== "user") found.push([id, role]);
    cursor = body.cursor;
  }
  return found;
}
