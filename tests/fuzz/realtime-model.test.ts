import { afterAll, beforeAll, expect, test } from "bun:test";
import type { JsonObject, JsonValue } from "../../src/kernel/json/json.ts";
import {
  type ListAnswer,
  openSocket,
  type SignedIn,
  signIn,
  type TestPlatform,
  type TestSocket,
  testPlatform,
} from "../support/index.ts";
import { type Random, random as seeded } from "../support/random.ts";

const CONFIG = `{
  databases: { shared: { tables: {
    open: { schema: { ownerId: { type: "string" }, n: { type: "integer" } }, access: { read: true } },
    owned: { schema: { ownerId: { type: "string" }, n: { type: "integer" } },
      access: { read: (auth) => auth !== null && [["ownerId", "==", auth.id]] } },
  } } },
  realtime: { messageRate: 100000 },
}`;
const CLIENTS = 12;
const WRITERS = 8;
const WRITES_PER_WRITER = 80;
const IDS = 40;
const PATIENCE_ROUNDS = 30;

let platform: TestPlatform;
let users: SignedIn[];
beforeAll(async () => {
  platform = await testPlatform({ config: CONFIG });
  users = [await signIn(platform), await signIn(platform), await signIn(platform)];
});
afterAll(() => platform.stop());

async function write(random: Random, table: string): Promise<void> {
  const path = `/api/db/shared/tables/${table}`;
  const id = () => `r${random.below(IDS)}`;
  const fields = () => ({ ownerId: random.pick(users).id, n: random.below(20) });
  switch (random.below(6)) {
    case 0:
      await platform.service.delete(`${path}/${id()}`);
      return;
    case 1:
      await platform.service.patch(`${path}/${id()}`, fields());
      return;
    case 2: {
      const inserts = Array.from({ length: 1 + random.below(25) }, () => ({ id: id(), ...fields() }));
      await platform.service.post(`${path}/batch?upsert=true`, { inserts });
      return;
    }
    case 3: {
      const filter = [["n", "==", random.below(20)]];
      const body = random.below(2) === 0 ? { action: "delete", filter } : { action: "update", filter, data: fields() };
      await platform.service.post(`${path}/batch-by-filter`, body);
      return;
    }
    default:
      await platform.service.post(`${path}?upsert=true`, { id: id(), ...fields() });
  }
}

/** A client as the guide describes it: subscribe, list, apply events; after a lost connection, subscribe with `since`. */
class Mirror {
  readonly #user: SignedIn;
  readonly #table: string;
  #filters: JsonValue[] = [];
  #socket: TestSocket | null = null;
  #since: number | null = null;
  #records = new Map<string, JsonObject>();
  resyncs = 0;
  replays = 0;

  constructor(user: SignedIn, table: string) {
    this.#user = user;
    this.#table = table;
  }

  get #channel(): string {
    return `realtime:shared:${this.#table}`;
  }

  async connect(): Promise<void> {
    const socket = await openSocket(`${platform.wsUrl}/api/realtime`);
    this.#socket = socket;
    socket.send({ type: "auth", token: this.#user.token });
    await socket.expect({ type: "auth_success" });
    const since = this.#since === null ? {} : { since: this.#since };
    socket.send({ type: "subscribe", channel: this.#channel, filters: this.#filters, ...since });
    const answer = await socket.expect({ type: "subscribed" });
    if (answer["resync"] === true) this.resyncs++;
    else if (this.#since !== null) this.replays++;
    if (this.#since === null || answer["resync"] === true) await this.#load();
    this.#since = answer["seq"] as number; // documented
  }

  async drop(random: Random): Promise<void> {
    const socket = this.#socket;
    if (socket === null) return;
    this.#apply();
    this.#socket = null;
    if (random.below(2) === 0) socket.terminate();
    else await socket.close();
  }

  async changeFilters(filters: JsonValue[]): Promise<void> {
    const socket = this.#socket;
    this.#filters = filters;
    if (socket === null) {
      this.#since = null;
      return;
    }
    socket.send({ type: "update_filters", channel: this.#channel, filters });
    for (;;) {
      const message = await socket.next();
      if (message["type"] === "filters_updated") break;
      this.#take(message);
    }
    await this.#load();
  }

  async #load(): Promise<void> {
    this.#records = await this.listed();
  }

  async listed(): Promise<Map<string, JsonObject>> {
    const query = { filter: JSON.stringify(this.#filters), limit: 1000 };
    const { body } = await this.#user.get<ListAnswer>(`/api/db/shared/tables/${this.#table}`, { query });
    return new Map(body.items.map((record) => [String(record["id"]), record]));
  }

  #take(message: JsonObject): void {
    const changes = message["type"] === "batch_changes" ? (message["changes"] as JsonObject[]) : [message];
    for (const change of changes) {
      expect(change["type"]).toBe("db_change");
      const seq = change["seq"] as number;
      if (this.#since !== null) expect(seq).toBeGreaterThan(this.#since);
      this.#since = seq;
      const id = String(change["docId"]);
      if (change["changeType"] === "removed") this.#records.delete(id);
      else this.#records.set(id, change["data"] as JsonObject);
    }
  }

  /** Messages that have arrived so far. */
  #apply(): void {
    const pending = this.#socket?.pending as JsonObject[] | undefined;
    for (const message of pending?.splice(0) ?? []) this.#take(message);
  }

  /** The records at the end. Pongs may overtake a long delivery: it ends with the `wanted` records, or after some rounds. */
  async finish(wanted: Map<string, JsonObject>): Promise<Map<string, JsonObject>> {
    const socket = this.#socket;
    if (socket === null) throw new Error("not connected");
    for (let round = 0; round < PATIENCE_ROUNDS; round++) {
      socket.send({ type: "ping" });
      for (;;) {
        const message = await socket.next();
        if (message["type"] === "pong") break;
        this.#take(message);
      }
      if (Bun.deepEquals(this.#records, wanted)) break;
      await Bun.sleep(10 * round);
    }
    await socket.close();
    return this.#records;
  }

  get isConnected(): boolean {
    return this.#socket !== null;
  }
}

for (const seed of [1, 20, 333]) {
  test(`[RT25] after any sequence of events, every client has the table's records (seed ${seed})`, async () => {
    const random = seeded(seed);
    const mirrors = Array.from({ length: CLIENTS }, (_, index) => {
      return new Mirror(users[index % users.length]!, index % 3 === 0 ? "owned" : "open");
    });
    let isWriting = true;
    const writers = Array.from({ length: WRITERS }, async (_, index) => {
      const own = seeded(seed * 1_000 + index);
      for (let count = 0; count < WRITES_PER_WRITER; count++) await write(own, own.below(2) === 0 ? "open" : "owned");
    });
    const clients = mirrors.map(async (mirror) => {
      const own = seeded(random.below(1_000_000));
      while (isWriting) {
        await Bun.sleep(own.below(15));
        const step = own.below(9);
        if (!mirror.isConnected) await mirror.connect();
        else if (step < 3) await mirror.drop(own);
        else if (step === 3) await mirror.changeFilters([]);
        else if (step === 4) await mirror.changeFilters([["n", own.pick(["<", ">"]), own.below(20)]]);
      }
    });
    await Promise.all(writers);
    isWriting = false;
    await Promise.all(clients);
    for (const mirror of mirrors) {
      if (!mirror.isConnected) await mirror.connect();
      const wanted = await mirror.listed();
      expect(Object.fromEntries(await mirror.finish(wanted))).toEqual(Object.fromEntries(wanted));
    }
    expect(mirrors.reduce((sum, mirror) => sum + mirror.replays, 0)).toBeGreaterThan(0);
  });
}
