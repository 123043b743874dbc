import { readFileSync } from "node:fs";
import { signIn, type TestPlatform, testPlatform } from "../../tests/support/index.ts";
import { quantile } from "../support/statistics.ts";

const ROOMS = 100;
const PLAYERS_PER_ROOM = 10;
const SECONDS = 10;
const SETTLE_MS = 500;
/** Interval of the sending loop. */
const TURN_MS = 5;
/** Number of concurrent openings, below the limit of unauthenticated connections per address. */
const OPENED_AT_ONCE = 4;
const IDLE_ROOMS = 1_000;
const IDLE_STATE_BYTES = 100_000;
const IDLE_TIMEOUT_MS = 500;
/** Time until the rooms hibernate and the garbage collector, which is slow in an idle server, has run. */
const REST_MS = 15_000;

const CONFIG = `{
  rooms: { game: {
    messageRate: 100000,
    idleTimeout: ${IDLE_TIMEOUT_MS},
    access: { join: true },
    onCreate(room) {
      room.setShared({ moves: 0, cells: Object.fromEntries(Array.from({ length: 20 }, (_, n) => ["c" + n, 0])) });
    },
    actions: {
      move(room, player, { cell, value }) {
        room.setShared((state) => ({ ...state, moves: state.moves + 1, cells: { ...state.cells, ["c" + cell]: value } }));
      },
      fill(room, player, { bytes }) { room.setShared({ text: "x".repeat(bytes) }); },
    },
  } },
}`;

export interface ActionFigures {
  actionsPerSecond: number;
  deltasPerSecond: number;
  /** Time from sending an action to its action_result, in milliseconds. */
  p50Ms: number;
  p99Ms: number;
  /**
   * Number of deltas that clients missed, by version, and of clients that end with a state different from others of their room.
   */
  missedDeltas: number;
  /** CPU relative to one core. */
  serverCpuPercent: number;
}

export interface RoomFigures {
  /** Figures for 5 actions per second and player, 5,000 in total. */
  usual: ActionFigures;
  /** Figures for 20 actions per second and player, 20,000 in total. */
  heavy: ActionFigures;
  idle: IdleFigures;
}

export interface IdleFigures {
  beforeMiB: number;
  /** Memory after IDLE_ROOMS rooms of IDLE_STATE_BYTES each hibernate, with their connections open. */
  afterMiB: number;
}

/** One connection, with the messages it sends and receives. */
class Player {
  readonly room: string;
  readonly latenciesMs: number[] = [];
  deltas = 0;
  missed = 0;
  version = 0;
  #socket: WebSocket;
  readonly #sentAt = new Map<string, number>();
  #nextId = 0;
  readonly joined = Promise.withResolvers<void>();

  constructor(url: string, room: string, token: string) {
    this.room = room;
    this.#socket = new WebSocket(`${url}/api/room?namespace=game&id=${room}`);
    this.#socket.onerror = () => this.joined.reject(new Error(`cannot connect to ${room}`));
    this.#socket.onopen = () => {
      this.#socket.send(JSON.stringify({ type: "auth", token }));
      this.#socket.send(JSON.stringify({ type: "join" }));
    };
    this.#socket.onmessage = (event) => this.#take(event.data as string); // text frames only
  }

  act(actionType: string, payload: object): void {
    const requestId = String(this.#nextId++);
    this.#sentAt.set(requestId, performance.now());
    this.#socket.send(JSON.stringify({ type: "send", actionType, payload, requestId }));
  }

  close(): void {
    this.#socket.terminate();
  }

  #take(text: string): void {
    const message = JSON.parse(text);
    if (message.type === "action_result") {
      this.latenciesMs.push(performance.now() - (this.#sentAt.get(message.requestId) ?? Number.NaN));
      this.#sentAt.delete(message.requestId);
    } else if (message.type === "shared_delta") {
      this.deltas++;
      if (message.version !== this.version + 1) this.missed++;
      this.version = message.version;
    } else if (message.type === "sync") {
      this.version = message.sharedVersion;
      this.joined.resolve();
    } else if (message.type === "error" || message.type === "action_error") {
      throw new Error(`${message.code ?? ""} ${message.message}`);
    }
  }
}

async function open(platform: TestPlatform, rooms: readonly string[], tokens: readonly string[]): Promise<Player[]> {
  const players: Player[] = [];
  const wanted = rooms.flatMap((room) => tokens.map((token) => ({ room, token })));
  for (let opened = 0; opened < wanted.length; opened += OPENED_AT_ONCE) {
    const group = wanted.slice(opened, opened + OPENED_AT_ONCE);
    const added = group.map(({ room, token }) => new Player(platform.wsUrl, room, token));
    await Promise.all(added.map(({ joined }) => joined.promise));
    players.push(...added);
  }
  return players;
}

async function measureActions(actionsPerPlayer: number): Promise<ActionFigures> {
  const platform = await testPlatform({ config: CONFIG });
  let players: Player[] = [];
  try {
    const users = await Promise.all(Array.from({ length: PLAYERS_PER_ROOM }, () => signIn(platform)));
    const rooms = Array.from({ length: ROOMS }, (_, index) => `room-${index}`);
    players = await open(
      platform,
      rooms,
      users.map(({ token }) => token),
    );
    const cpuBefore = cpuMs(platform);
    const startedAt = performance.now();
    // The players of a room are staggered, so that its state changes steadily instead of in bursts.
    const due = players.map((_, index) => {
      const phase = (index % PLAYERS_PER_ROOM) / PLAYERS_PER_ROOM + index / players.length / PLAYERS_PER_ROOM;
      return startedAt + phase * (1_000 / actionsPerPlayer);
    });
    for (let now = startedAt; now < startedAt + SECONDS * 1_000; now = performance.now()) {
      for (const [index, player] of players.entries()) {
        for (let at = due[index] ?? 0; at <= now; at += 1_000 / actionsPerPlayer) {
          player.act("move", { cell: index % 20, value: Math.floor(now) });
          due[index] = at + 1_000 / actionsPerPlayer;
        }
      }
      await Bun.sleep(TURN_MS);
    }
    const tookMs = performance.now() - startedAt;
    const cpu = cpuMs(platform) - cpuBefore;
    const latencies = players.flatMap(({ latenciesMs }) => latenciesMs);
    const deltas = players.reduce((sum, player) => sum + player.deltas, 0);
    await quiet(players);
    const ends = new Set(players.map(({ room, version }) => `${room} ${version}`));
    return {
      actionsPerSecond: latencies.length / (tookMs / 1_000),
      deltasPerSecond: deltas / (tookMs / 1_000),
      p50Ms: quantile(latencies, 0.5),
      p99Ms: quantile(latencies, 0.99),
      missedDeltas: players.reduce((sum, player) => sum + player.missed, 0) + ends.size - ROOMS,
      serverCpuPercent: (cpu / tookMs) * 100,
    };
  } finally {
    for (const player of players) player.close();
    await platform.stop();
  }
}

/** Waits until no more messages arrive: those in flight are late, but not missed. */
async function quiet(players: readonly Player[]): Promise<void> {
  const received = (): number => players.reduce((sum, player) => sum + player.deltas + player.latenciesMs.length, 0);
  for (let before = -1, now = received(); now !== before; now = received()) {
    before = now;
    await Bun.sleep(SETTLE_MS);
  }
}

async function measureIdle(): Promise<IdleFigures> {
  const platform = await testPlatform({ config: CONFIG });
  const players: Player[] = [];
  try {
    const { token } = await signIn(platform);
    const beforeMiB = residentMiB(platform);
    for (let index = 0; index < IDLE_ROOMS; index++) {
      const [player] = await open(platform, [`idle-${index}`], [token]);
      if (player === undefined) throw new Error("one room, one token, one player");
      player.act("fill", { bytes: IDLE_STATE_BYTES });
      players.push(player);
    }
    await Bun.sleep(REST_MS);
    return { beforeMiB, afterMiB: residentMiB(platform) };
  } finally {
    for (const player of players) player.close();
    await platform.stop();
  }
}

/** Returns user and system time; Linux counts in hundredths of a second. */
function cpuMs(platform: TestPlatform): number {
  const fields = readFileSync(`/proc/${platform.process.pid}/stat`, "utf8").split(" ");
  return (Number(fields[13]) + Number(fields[14])) * 10;
}

function residentMiB(platform: TestPlatform): number {
  const status = readFileSync(`/proc/${platform.process.pid}/status`, "utf8");
  return Number(/^VmRSS:\s+(\d+) kB/m.exec(status)?.[1] ?? Number.NaN) / 1_024;
}

export async function measureRooms(): Promise<RoomFigures> {
  return { usual: await measureActions(5), heavy: await measureActions(20), idle: await measureIdle() };
}

if (import.meta.main) process.stdout.write(`${JSON.stringify(await measureRooms(), null, 2)}\n`);
