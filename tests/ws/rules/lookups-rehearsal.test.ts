import { afterAll, beforeAll, expect, test } from "bun:test";
import type { JsonObject } from "../../../src/kernel/json/json.ts";
import { type SignedIn, signIn, type TestPlatform, type TestSocket, testPlatform, until } from "../../support/index.ts";
import { type Random, random, testSeed } from "../../support/random.ts";
import { connect } from "../realtime/realtime-support.ts";

// Random memberships and tasks, in two files, while users follow the tasks over sockets. Writes are made one after the other,
// so that it is known who may see which: each event must be of a write that its receiver may see. In the end every mirror is
// the list.

const SEED = testSeed(41_224);
const ROUNDS = Number(process.env["PLATFORM_FUZZ_ROUNDS"] ?? 1);
const STEPS = 120;
const USERS = 5;
const LATE_WRITES = 10;
const PROJECTS = ["p0", "p1", "p2"];

const RULES = {
  byFilter: `(auth, _task, { db }) => auth !== null &&
    [["projectId", "in", db("org").table("grants").list([["userId", "==", auth.id]]).map((grant) => grant.projectId)]]`,
  byRecord: `(auth, task, { db }) =>
    db("org").table("grants").exists([["userId", "==", auth?.id ?? ""], ["projectId", "==", task.projectId]])`,
  byMember: `(auth, _task, { db }) => db("org").table("grants").exists([["userId", "==", auth?.id ?? ""]])`,
  awaited: `async (auth, _task, { db }) => {
    await new Promise((resolve) => setTimeout(resolve, 2));
    return [["projectId", "in", db("org").table("grants").list([["userId", "==", auth.id]]).map((grant) => grant.projectId)]];
  }`,
};
type Table = keyof typeof RULES;
const TABLES = Object.keys(RULES) as Table[]; // its own keys

const table = (rule: string) =>
  `{ schema: { projectId: { type: "string" }, n: { type: "integer" } }, access: { read: ${rule} } }`;
const CONFIG = `{
  realtime: { messageRate: 1000 },
  databases: {
    org: { tables: { grants: {
      schema: { userId: { type: "string" }, projectId: { type: "string" } },
      indexes: [{ fields: ["userId", "projectId"] }],
    } } },
    shared: { tables: { ${TABLES.map((name) => `${name}: ${table(RULES[name])}`).join(",\n")} } },
  },
}`;

let platform: TestPlatform;
beforeAll(async () => {
  platform = await testPlatform({ config: CONFIG });
});
afterAll(() => platform.stop());

/** A client that mirrors one table, as the guide describes. */
class Mirror {
  readonly records = new Map<string, JsonObject>();
  readonly seen: number[] = [];
  isSubscribed = false;
  readonly #user: SignedIn;
  readonly #socket: TestSocket;
  readonly #table: Table;

  constructor(user: SignedIn, socket: TestSocket, name: Table) {
    this.#user = user;
    this.#socket = socket;
    this.#table = name;
    void this.#follow().catch(() => undefined);
  }

  get channel(): string {
    return `realtime:shared:${this.#table}`;
  }

  subscribe(): void {
    this.#socket.send({ type: "subscribe", channel: this.channel, id: "m" });
  }

  list = async (): Promise<JsonObject[] | null> => {
    const { status, body } = await this.#user.get<{ items: JsonObject[] }>(
      `/api/db/shared/tables/${this.#table}?limit=1000`,
    );
    return status === 200 ? body.items : null;
  };

  async isEqual(): Promise<boolean> {
    const items = await this.list();
    if (items === null || !this.isSubscribed) return items === null || items.length === 0;
    const own = [...this.records.values()].map(({ id, n }) => `${id} ${n}`);
    return JSON.stringify(own.sort()) === JSON.stringify(items.map(({ id, n }) => `${id} ${n}`).sort());
  }

  async #follow(): Promise<void> {
    for (;;) {
      const message = await this.#socket.next(60_000);
      if (message["type"] === "subscribed") await this.#load();
      else if (message["type"] === "auth_refreshed" || message["code"] === "SUBSCRIBE_DENIED") this.#end();
      else if (message["type"] === "db_change") this.#apply(message);
    }
  }

  #end(): void {
    this.isSubscribed = false;
    this.records.clear();
  }

  async #load(): Promise<void> {
    const items = await this.list();
    this.isSubscribed = true;
    this.records.clear();
    for (const item of items ?? []) this.records.set(String(item["id"]), item);
  }

  #apply({ changeType, docId, data }: JsonObject): void {
    if (changeType === "removed") {
      this.records.delete(String(docId));
      return;
    }
    const record = data as JsonObject; // of an `added` or `modified`
    this.seen.push(Number(record["n"]));
    this.records.set(String(docId), record);
  }
}

interface World {
  r: Random;
  users: readonly SignedIn[];
  /** Ids of grants, by user and project. */
  grants: Map<string, string>;
  tasks: { id: string; projectId: string }[];
  /** Callers who may see the task of each write, by its number. */
  visible: Map<number, Set<string>>;
}

const mayBeSeenBy = (world: World, name: Table, projectId: string): Set<string> => {
  const seeing = world.users.filter(({ id }) => {
    if (name === "byMember") return PROJECTS.some((project) => world.grants.has(`${id} ${project}`));
    return world.grants.has(`${id} ${projectId}`);
  });
  return new Set(seeing.map(({ id }) => id));
};

async function changeGrant(world: World, name: Table): Promise<void> {
  const user = world.r.pick(world.users);
  const key = `${user.id} ${world.r.pick(PROJECTS)}`;
  const known = world.grants.get(key);
  if (known !== undefined) {
    expect((await platform.service.delete(`/api/db/org/tables/grants/${known}`)).status).toBe(200);
    world.grants.delete(key);
    return;
  }
  const [userId = "", projectId = ""] = key.split(" ");
  const { status, body } = await platform.service.post<JsonObject>("/api/db/org/tables/grants", { userId, projectId });
  expect(status).toBe(201);
  world.grants.set(key, String(body["id"]));
  // A change whose rule is awaited, and one that a rule looks at records for, may be decided by the data of now.
  if (name !== "awaited" && name !== "byRecord") return;
  for (const seeing of [...world.visible.values()].slice(-LATE_WRITES)) seeing.add(userId);
}

async function changeTask(world: World, name: Table, n: number): Promise<void> {
  const path = `/api/db/shared/tables/${name}`;
  const projectId = world.r.pick(PROJECTS);
  world.visible.set(n, mayBeSeenBy(world, name, projectId));
  const known = world.r.chance(0.4) && world.tasks.length > 0 ? world.r.pick(world.tasks) : null;
  if (known === null) {
    const { status, body } = await platform.service.post<JsonObject>(path, { projectId, n });
    expect(status).toBe(201);
    world.tasks.push({ id: String(body["id"]), projectId });
  } else {
    expect((await platform.service.patch(`${path}/${known.id}`, { projectId, n })).status).toBe(200);
  }
}

for (let round = 0; round < ROUNDS; round++) {
  for (const [index, name] of TABLES.entries()) {
    const seed = SEED + round * TABLES.length + index;
    test(`[RT224] [RT227] random memberships and tasks: events and mirrors follow the rights, ${name}, seed ${seed}`, async () => {
      const users = await Promise.all(Array.from({ length: USERS }, () => signIn(platform)));
      const world: World = { r: random(seed), users, grants: new Map(), tasks: [], visible: new Map() };
      const sockets = await Promise.all(users.map((user) => connect(platform, user)));
      const mirrors = users.map((user, at) => new Mirror(user, sockets[at] as TestSocket, name)); // one for each
      for (const mirror of mirrors) mirror.subscribe();
      for (let n = 0; n < STEPS; n++) {
        const choice = world.r.next();
        if (choice < 0.3) await changeGrant(world, name);
        else if (choice < 0.35) world.r.pick(mirrors).subscribe();
        else await changeTask(world, name, n);
      }
      // A subscription that has ended begins again by the client alone.
      for (const mirror of mirrors) {
        await until("the mirror is the list", () => {
          if (!mirror.isSubscribed) mirror.subscribe();
          return mirror.isEqual();
        });
      }
      for (const [at, mirror] of mirrors.entries()) {
        const wrong = mirror.seen.filter((n) => world.visible.get(n)?.has(users[at]?.id ?? "") !== true);
        expect({ user: at, wrong }).toEqual({ user: at, wrong: [] });
      }
      expect(mirrors.reduce((sum, { seen }) => sum + seen.length, 0)).toBeGreaterThan(0);
      for (const socket of sockets) await socket.close();
    });
  }
}
