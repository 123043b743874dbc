import type { JsonObject, JsonValue } from "../../src/kernel/json/json.ts";
import { signIn, type TestPlatform } from "../../tests/support/index.ts";
import type { Random } from "../../tests/support/random.ts";
import type { Answer, Client, Request } from "./client.ts";
import { TENANTS } from "./config.ts";
import { createTeams, teamRequestsOf } from "./teams.ts";

/** Bound of the items of one client, so that stored data stop growing and only leaks continue. */
const KEPT = 100;
const FILE_BYTES = 64 * 1024;
const WORDS = ["river", "mountain", "harbour", "meadow", "forest", "desert", "island", "valley", "glacier", "canyon"];

/** FIFO of names: a new one evicts the oldest, which is then deleted. */
class Kept {
  readonly #names: string[] = [];
  #count = 0;

  add(prefix: string): { name: string; oldest: string | null } {
    const name = `${prefix}-${this.#count++}`;
    this.#names.push(name);
    return { name, oldest: this.#names.length > KEPT ? (this.#names.shift() ?? null) : null };
  }

  any(random: Random): string | null {
    return this.#names.length === 0 ? null : random.pick(this.#names);
  }
}

const posts = "/api/db/shared/tables/posts";
const sentence = (random: Random): string => Array.from({ length: 12 }, () => random.pick(WORDS)).join(" ");
const vectorOf = (random: Random): number[] => Array.from({ length: 16 }, () => random.next());
const nothing = async (): Promise<Answer> => ({ status: 200 });

/** Returns the requests of one client, weighted by repetition. Each insert deletes expired items in the same step. */
export function requestsOf(client: Client): readonly Request[] {
  const { prefix } = client;
  const [kept, files, keys, rows, vectors] = [new Kept(), new Kept(), new Kept(), new Kept(), new Kept()];
  const kv = ({ service }: Client, body: JsonObject) => service.post("/api/kv/cache", body);
  const sql = ({ service }: Client, query: string, params: JsonValue[]) =>
    service.post("/api/d1/main", { query, params });

  const insertPost: Request = async ({ user, service, random }) => {
    const { name, oldest } = kept.add(prefix);
    const made = await user.post(posts, {
      ...{ id: name, title: sentence(random), body: sentence(random), score: random.below(1_000), author: user.id },
    });
    if (made.status === 201) await service.post("/api/db/shared/tables/comments", { post: name });
    return oldest === null ? made : service.delete(`${posts}/${oldest}`);
  };
  const line: Request = ({ service, random }) => {
    const tenant = `t${random.below(TENANTS)}`;
    return service.post(`/api/db/tenants/${tenant}/tables/lines?upsert=true`, {
      id: `l${random.below(10)}`,
      n: random.below(100),
    });
  };
  const upload: Request = async ({ platform, service }) => {
    const { name, oldest } = files.add(prefix);
    const form = new FormData();
    form.append("key", name);
    form.append("file", new Blob([new Uint8Array(FILE_BYTES)]), "file.bin");
    const stored = await service.fetch("/api/storage/files/upload", { method: "POST", body: form });
    await stored.arrayBuffer();
    const answer = await platform.fetch(`/api/storage/files/${name}`);
    await answer.arrayBuffer();
    return oldest === null ? answer : service.delete(`/api/storage/files/${oldest}`);
  };
  const setKey: Request = async (client) => {
    const { name, oldest } = keys.add(prefix);
    const set = await kv(client, { action: "set", key: name, value: { at: name }, ttl: 60 });
    return oldest === null ? set : kv(client, { action: "delete", key: oldest });
  };
  const insertRow: Request = async (client) => {
    const { name, oldest } = rows.add(prefix);
    const inserted = await sql(client, "INSERT INTO t VALUES (?, ?)", [name, client.random.below(1_000)]);
    return oldest === null ? inserted : sql(client, "DELETE FROM t WHERE id = ?", [oldest]);
  };
  const upsertVector: Request = async ({ service, random }) => {
    const { name, oldest } = vectors.add(prefix);
    const body = { action: "upsert", vectors: [{ id: name, values: vectorOf(random), metadata: { n: 1 } }] };
    const stored = await service.post("/api/vectorize/near", body);
    return oldest === null ? stored : service.post("/api/vectorize/near", { action: "delete", ids: [oldest] });
  };
  const visit: Request = async ({ platform, service }) => {
    const { status, body } = await platform.post<{ user: { id: string }; refreshToken: string }>(
      "/api/auth/signin/anonymous",
    );
    if (status !== 201) return { status, body };
    const refreshed = await platform.post("/api/auth/refresh", { refreshToken: body.refreshToken });
    await service.delete(`/api/auth/admin/users/${body.user.id}`);
    return refreshed;
  };

  return [
    insertPost,
    ({ user, random }) => {
      const name = kept.any(random);
      return name === null ? nothing() : user.patch(`${posts}/${name}`, { score: { $op: "increment", value: 1 } });
    },
    ...Array.from(
      { length: 4 },
      (): Request =>
        ({ platform, random }) => {
          const name = kept.any(random);
          return name === null ? nothing() : platform.get(`${posts}/${name}`);
        },
    ),
    ({ platform }) => platform.get(posts, { query: { limit: 20, sort: "score:desc", filter: '[["score",">",500]]' } }),
    ({ platform, random }) => platform.get(`${posts}/search`, { query: { q: random.pick(WORDS), limit: 10 } }),
    ({ platform }) => platform.get(`${posts}/count`, { query: { filter: '[["body","contains","ocean"]]' } }),
    ...[line, line, upload, setKey, insertRow, upsertVector, visit],
    ({ service, random }) => service.get(`/api/db/tenants/t${random.below(TENANTS)}/tables/lines`),
    (client) => kv(client, { action: "list", prefix, limit: 20 }),
    (client) => sql(client, "SELECT count(*) FROM t WHERE n > ?", [client.random.below(1_000)]),
    ({ service, random }) =>
      service.post("/api/vectorize/near", { action: "search", vector: vectorOf(random), topK: 5 }),
    ({ user }) => user.get("/api/auth/me"),
    ({ user }) => user.post("/api/analytics/track", { events: [{ name: "visit", properties: { page: "start" } }] }),
    ({ user, random }) =>
      user.post("/api/push/register", {
        ...{ deviceId: `d${random.below(3)}`, token: `${prefix}-${random.below(3)}`, platform: "android" },
      }),
    ...teamRequestsOf(client),
    ({ platform }) =>
      platform.get("/api/nothing/here").then(({ status }) => ({ status: status === 404 ? 200 : status })),
  ];
}

export async function createClients(platform: TestPlatform, count: number, random: () => Random): Promise<Client[]> {
  await platform.service.post("/api/d1/main", { query: "CREATE TABLE t (id TEXT PRIMARY KEY, n INTEGER)" });
  await platform.service.post("/api/db/shared/tables/tallies", { id: "tasks", runs: 0 });
  const users = await Promise.all(Array.from({ length: count }, () => signIn(platform)));
  const clients = users.map((user, index) => ({
    ...{ platform, service: platform.service, user, random: random(), prefix: `c${index}` },
  }));
  const [first] = clients;
  if (first !== undefined)
    await createTeams(
      first,
      users.map(({ id }) => id),
    );
  return clients;
}
