import { random } from "../../random.ts";
import { DrillClient, Tally } from "./asking.ts";
import type { DrillCluster, DrillNode } from "./drill-cluster.ts";
import { Feed } from "./feed.ts";
import type { RegisterOperation } from "./registers.ts";

// A mixed load on all nodes of a cluster, and what its clients were told.

/** Members of the config that the load needs. */
export const LOAD_CONFIG = `
  auth: { anonymous: true },
  rateLimits: { auth: { requests: 1000000, window: 60 }, signup: { requests: 1000000, window: 60 }, signin: { requests: 1000000, window: 60 } },
  databases: { main: { tables: {
    notes: { schema: { title: { type: "string", required: true } }, access: { read: true } },
    registers: { schema: { value: { type: "integer", required: true } }, access: { read: true } },
    names: { schema: { name: { type: "string", unique: true, required: true } }, access: { read: true } },
    secrets: { schema: { title: { type: "string" } }, access: { read: (auth) => auth !== null } },
  } } }`;
export const NOTES = "/api/db/main/tables/notes";
export const NAMES = "/api/db/main/tables/names";
const REGISTERS = "/api/db/main/tables/registers";
export const SECRETS = "/api/db/main/tables/secrets";
const CHANNEL = "realtime:main:notes";
const KEYS = ["r0", "r1"];
const WRITERS = 3;
const REGISTER_CLIENTS = 3;
const RETRY_MS = 100;
/** Looks at a session after it has ended. */
const LOOKS = 8;
const LOOK_MS = 60;

/** Answers to all clients, as far as they are checked. */
export interface History {
  /** Titles of notes whose insert was answered with success, and their ids. */
  acknowledged: Map<string, string>;
  /** Ids of notes that some answer has shown, and the first place that did. */
  shown: Map<string, string>;
  registers: Map<string, RegisterOperation[]>;
  /** Names of which an insert was answered with success, and the records. */
  named: Map<string, string[]>;
  /** Sessions that were ended with success, and used afterwards. */
  endedSessions: number;
  violations: string[];
  tally: Tally;
  feeds: Feed[];
}

export class Load {
  readonly history: History = {
    acknowledged: new Map(),
    shown: new Map(),
    registers: new Map(KEYS.map((key) => [key, []])),
    named: new Map(),
    endedSessions: 0,
    violations: [],
    tally: new Tally(),
    feeds: [],
  };
  readonly #cluster: DrillCluster;
  readonly #random = random(1);
  readonly #clients: Promise<void>[] = [];
  #value = 0;
  #isOver = false;

  private constructor(cluster: DrillCluster) {
    this.#cluster = cluster;
  }

  /** Starts clients that go on until `end`. */
  static async start(cluster: DrillCluster): Promise<Load> {
    const load = new Load(cluster);
    const { tally } = load.history;
    const [first] = cluster.nodes;
    if (first === undefined) throw new Error("there is no node");
    for (const id of KEYS) {
      const made = await new DrillClient(tally).ask(first, REGISTERS, { method: "POST", body: { id, value: 0 } });
      if (made.status !== 201) throw new Error(`a register could not be made: ${made.status}`);
    }
    load.history.feeds = cluster.nodes.map(
      (node, index) => new Feed(`feed ${index}`, { url: () => node.wsUrl, channel: CHANNEL }),
    );
    const kinds = [
      ...Array.from({ length: WRITERS }, () => load.#write),
      ...Array.from({ length: REGISTER_CLIENTS }, () => load.#register),
      load.#look,
      load.#name,
      load.#session,
    ];
    for (const kind of kinds) load.#clients.push(load.#run(kind.bind(load, new DrillClient(tally))));
    return load;
  }

  /** Waits until so many more notes are acknowledged. */
  get written(): number {
    return this.history.acknowledged.size;
  }

  /** Ends the clients; feeds go on. */
  async end(): Promise<void> {
    this.#isOver = true;
    await Promise.all(this.#clients);
  }

  async #run(step: () => Promise<void>): Promise<void> {
    while (!this.#isOver) await step();
  }

  /** Returns any node, of those that answer if there are some, as a load balancer does. */
  #node(): DrillNode {
    const { nodes } = this.#cluster;
    const answering = nodes.filter((node) => this.#tally.answers(node.nodeUrl));
    return this.#random.pick(answering.length === 0 ? nodes : answering);
  }

  get #tally(): Tally {
    return this.history.tally;
  }

  #violates(text: string): void {
    // The first ones say what there is to say.
    if (this.history.violations.length < 20) this.history.violations.push(text);
  }

  /** Inserts a note, with the same key until it is known to be there, and reads it and a list through other nodes. */
  async #write(client: DrillClient): Promise<void> {
    const title = crypto.randomUUID();
    const order = { method: "POST", body: { title }, headers: { "idempotency-key": title } } as const;
    let written = await client.ask(this.#node(), NOTES, order);
    while (written.status !== 201) {
      if (![0, 409, 503].includes(written.status)) this.#violates(`an insert was answered ${written.status}`);
      if (this.#isOver) return;
      await Bun.sleep(RETRY_MS);
      written = await client.ask(this.#node(), NOTES, order);
    }
    const { id } = written.body;
    this.history.acknowledged.set(title, id);
    const node = this.#node();
    const read = await client.ask(node, `${NOTES}/${id}`);
    if (read.status === 404) this.#violates(`${node.nodeUrl} does not show the note ${id} to the one who wrote it`);
    await this.#list(client);
  }

  async #list(client: DrillClient): Promise<void> {
    const node = this.#node();
    const { status, body } = await client.ask(node, `${NOTES}?sort=createdAt:desc&limit=20`);
    if (status !== 200) return;
    for (const { id } of body.items)
      if (!this.history.shown.has(id)) this.history.shown.set(id, `a list of ${node.nodeUrl}`);
    const before = this.#totals.get(client) ?? 0;
    if (body.total < before) this.#violates(`${node.nodeUrl} shows ${body.total} notes to who has seen ${before}`);
    this.#totals.set(client, body.total);
  }

  readonly #totals = new Map<DrillClient, number>();

  /** Reads, sets or exchanges a register, always by what the owner has. */
  async #register(client: DrillClient): Promise<void> {
    const id = this.#random.pick(KEYS);
    const node = this.#node();
    const path = `${REGISTERS}/${id}`;
    const operations = this.history.registers.get(id) ?? [];
    const read = await client.ask(node, path, { isLatest: true });
    if (read.status !== 200) {
      await Bun.sleep(RETRY_MS);
      return;
    }
    const { startMs, endMs } = read;
    const seen: number = read.body.value;
    operations.push({ kind: "read", value: seen, expected: 0, isDone: true, startMs, endMs });
    const value = ++this.#value;
    const isExchange = this.#random.chance(0.6);
    const query = isExchange ? `?if=${encodeURIComponent(JSON.stringify([["value", "==", seen]]))}` : "";
    const written = await client.ask(this.#node(), path + query, { method: "PATCH", body: { value } });
    // It was not done, and will not be.
    if (written.body?.data?.cluster?.code === "no_owner") return;
    if (![0, 200, 412, 503].includes(written.status)) this.#violates(`a change was answered ${written.status}`);
    const isKnown = written.status === 200 || written.status === 412;
    operations.push({
      kind: isExchange ? "exchange" : "write",
      value,
      expected: seen,
      isDone: isKnown ? written.status === 200 : null,
      startMs: written.startMs,
      endMs: isKnown ? written.endMs : Number.POSITIVE_INFINITY,
    });
    if (!isKnown) await Bun.sleep(RETRY_MS);
  }

  /** Looks, and does nothing else, so that it is never held up by a write of its own. */
  async #look(client: DrillClient): Promise<void> {
    await this.#list(client);
    const id = this.#random.pick(KEYS);
    const { status, body, startMs, endMs } = await client.ask(this.#node(), `${REGISTERS}/${id}`, { isLatest: true });
    const read = { kind: "read", expected: 0, isDone: true, startMs, endMs } as const;
    if (status === 200) this.history.registers.get(id)?.push({ ...read, value: body.value });
    await Bun.sleep(LOOK_MS);
  }

  /** Inserts the same unique name twice at once, through two nodes. */
  async #name(client: DrillClient): Promise<void> {
    const name = crypto.randomUUID();
    const order = { method: "POST", body: { name } } as const;
    const answers = await Promise.all([client.ask(this.#node(), NAMES, order), client.ask(this.#node(), NAMES, order)]);
    const ids = answers.filter(({ status }) => status === 201).map(({ body }): string => body.id);
    if (ids.length > 0) this.history.named.set(name, ids);
    await Bun.sleep(RETRY_MS);
  }

  /** Begins a session, uses it, ends it, and tries to use it again through every node. */
  async #session(client: DrillClient): Promise<void> {
    const begun = await client.ask(this.#node(), "/api/auth/signin/anonymous", { method: "POST" });
    if (begun.status !== 201) {
      await Bun.sleep(RETRY_MS);
      return;
    }
    const token: string = begun.body.accessToken;
    const node = this.#node();
    const used = await client.ask(node, SECRETS, { token });
    if (![0, 200, 503].includes(used.status)) this.#violates(`${node.nodeUrl} answers ${used.status} to a new session`);
    const ended = await client.ask(this.#node(), "/api/auth/signout", { method: "POST", token, body: {} });
    if (ended.status < 200 || ended.status >= 300) return;
    for (let look = 0; look < LOOKS; look++) {
      const asked = this.#node();
      // Without a position: nothing but the promise keeps a node from believing what it has.
      const late = await new DrillClient(this.history.tally).ask(asked, SECRETS, { token });
      if (late.status === 200)
        this.#violates(`${asked.nodeUrl} takes a session that ended ${late.startMs - ended.endMs} ms before`);
      if (late.status === 401) this.history.endedSessions += 1;
      await Bun.sleep(LOOK_MS);
    }
  }
}
