import { readFileSync } from "node:fs";
import { join } from "node:path";
import { signIn, type TestPlatform, testPlatform } from "../../tests/support/index.ts";
import { hello, openInGroups } from "../support/openings.ts";
import { quantile } from "../support/statistics.ts";

const SUBSCRIBERS = 1_000;
const IDLE_CONNECTIONS = 10_000;
const CHANGES_PER_SECOND = 50;
const LATENCY_CHANGES = 500;
const THROUGHPUT_CHANGES = 640;
const THROUGHPUT_ROUNDS = 3;
const POSTS_IN_FLIGHT = 32;
const CHANNEL = "realtime:shared:ticks";
const CONFIG = `{
  databases: { shared: { tables: { ticks: { schema: { n: { type: "integer" }, note: { type: "string" } },
    access: { read: true, insert: true } } } } },
}`;
const RECORD = { n: 1, note: "x".repeat(100) };

export interface RealtimeFigures {
  /** Time from the request until the last subscriber has the change, in milliseconds. */
  latencyP50Ms: number;
  latencyP99Ms: number;
  /** Latency of a bare server that publishes what is posted. */
  floorLatencyP50Ms: number;
  floorLatencyP99Ms: number;
  deliveredPerSecond: number;
  floorDeliveredPerSecond: number;
  idleMemoryMiB: number;
}

/** Group of sockets that counts received messages. */
class Audience {
  readonly #sockets: WebSocket[] = [];
  #received = 0;
  #lastText = "";
  #wanted = Number.POSITIVE_INFINITY;
  #reached: () => void = () => {};

  get lastText(): string {
    return this.#lastText;
  }

  /** Opens sockets. `first`: messages that each sends first, and that are answered. */
  open(url: string, count: number, first: readonly string[]): Promise<void> {
    return openInGroups(count, () => this.#openOne(url, first));
  }

  #openOne(url: string, first: readonly string[]): Promise<void> {
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const socket = new WebSocket(url);
    this.#sockets.push(socket);
    let answers = 0;
    socket.onerror = () => reject(new Error(`cannot connect to ${url}`));
    socket.onopen = () => {
      for (const message of first) socket.send(message);
      if (first.length === 0) resolve();
    };
    socket.onmessage = (event) => {
      if (answers < first.length) {
        if (++answers === first.length) resolve();
        return;
      }
      this.#lastText = event.data as string; // text frames only
      if (++this.#received >= this.#wanted) this.#reached();
    };
    return promise;
  }

  /** Resolves after this many further messages. */
  received(count: number): Promise<void> {
    this.#received = 0;
    this.#wanted = count;
    return new Promise((resolve) => {
      this.#reached = resolve;
    });
  }

  close(): void {
    for (const socket of this.#sockets) socket.terminate();
  }
}

const median = (values: readonly number[]): number => quantile(values, 0.5);

async function post(url: string, body: string): Promise<void> {
  const answer = await fetch(url, { method: "POST", body, headers: { "content-type": "application/json" } });
  if (!answer.ok) throw new Error(`${url} answered ${answer.status}: ${await answer.text()}`);
  await answer.text();
}

/** Posts `count` bodies, some concurrently, and returns the messages delivered per second. */
async function deliveredPerSecond(audience: Audience, url: string, body: string): Promise<number> {
  const done = audience.received(THROUGHPUT_CHANGES * SUBSCRIBERS);
  const startedAt = performance.now();
  let left = THROUGHPUT_CHANGES;
  const posting = Array.from({ length: POSTS_IN_FLIGHT }, async () => {
    while (left-- > 0) await post(url, body);
  });
  await Promise.all([done, ...posting]);
  return (THROUGHPUT_CHANGES * SUBSCRIBERS) / ((performance.now() - startedAt) / 1_000);
}

async function latencies(audience: Audience, url: string, body: string): Promise<number[]> {
  const measured: number[] = [];
  for (let change = 0; change < LATENCY_CHANGES; change++) {
    const startedAt = performance.now();
    const done = audience.received(SUBSCRIBERS);
    await Promise.all([done.then(() => measured.push(performance.now() - startedAt)), post(url, body)]);
    await Bun.sleep(Math.max(0, 1_000 / CHANGES_PER_SECOND - (performance.now() - startedAt)));
  }
  return measured;
}

async function measureDelivery(): Promise<Omit<RealtimeFigures, "idleMemoryMiB">> {
  const platform = await testPlatform({ config: CONFIG });
  const floor = Bun.spawn([process.execPath, join(import.meta.dir, "../realtime-floor.ts")], {
    ...{ stdin: "ignore", stdout: "pipe", stderr: "inherit" },
  });
  const [ours, bare] = [new Audience(), new Audience()];
  try {
    const { value } = await floor.stdout.getReader().read();
    const floorUrl = new TextDecoder().decode(value).trim();
    const { token } = await signIn(platform);
    await ours.open(`${platform.wsUrl}/api/realtime`, SUBSCRIBERS, hello(token, CHANNEL));
    const table = `${platform.url}/api/db/shared/tables/ticks`;
    await bare.open(floorUrl.replace("http", "ws"), SUBSCRIBERS, []);
    const record = JSON.stringify(RECORD);
    const measured = await latencies(ours, table, record);
    // The floor sends exactly the bytes of the server.
    const sample = ours.lastText;
    const floorMeasured = await latencies(bare, floorUrl, sample);
    const rounds: [number, number][] = [];
    for (let round = 0; round < THROUGHPUT_ROUNDS; round++) {
      const own = await deliveredPerSecond(ours, table, record);
      rounds.push([own, await deliveredPerSecond(bare, floorUrl, sample)]);
    }
    return {
      latencyP50Ms: median(measured),
      latencyP99Ms: quantile(measured, 0.99),
      floorLatencyP50Ms: median(floorMeasured),
      floorLatencyP99Ms: quantile(floorMeasured, 0.99),
      deliveredPerSecond: median(rounds.map(([own]) => own)),
      floorDeliveredPerSecond: median(rounds.map(([, floored]) => floored)),
    };
  } finally {
    ours.close();
    bare.close();
    floor.kill();
    await platform.stop();
  }
}

async function measureIdle(): Promise<number> {
  const platform = await testPlatform({ config: CONFIG });
  const audience = new Audience();
  try {
    const { token } = await signIn(platform);
    await audience.open(`${platform.wsUrl}/api/realtime`, IDLE_CONNECTIONS, hello(token));
    await Bun.sleep(2_000);
    return residentMiB(platform);
  } finally {
    audience.close();
    await platform.stop();
  }
}

function residentMiB(platform: TestPlatform): number {
  const status = readFileSync(`/proc/${platform.process.pid}/status`, "utf8");
  return Number(/^VmRSS:\s+(\d+) kB/m.exec(status)?.[1] ?? Number.NaN) / 1_024;
}

export async function measureRealtime(): Promise<RealtimeFigures> {
  const delivery = await measureDelivery();
  return { ...delivery, idleMemoryMiB: await measureIdle() };
}

if (import.meta.main) process.stdout.write(`${JSON.stringify(await measureRealtime(), null, 2)}\n`);
