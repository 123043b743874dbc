import { type TestPlatform, testPlatform } from "../../tests/support/index.ts";
import { hello, openInGroups } from "../support/openings.ts";
import { quantile } from "../support/statistics.ts";

const SUBSCRIBERS = 10_000;
const PROJECTS = 1_000;
const SECONDS = 20;
const CHANGES_PER_SECOND = 100;
const MEMBERSHIP_CHANGES_PER_SECOND = 10;
const BATCH = 500;
const WAIT_MS = 30_000;
const CHANNEL = "realtime:shared:tasks";
const CONFIG = `{
  auth: { anonymous: true },
  rateLimits: { auth: { requests: 1000000, window: 60 }, signup: { requests: 1000000, window: 60 } },
  databases: {
    org: { tables: { members: {
      schema: { userId: { type: "string" }, projectId: { type: "string" } },
      indexes: [{ fields: ["userId"] }],
    } } },
    shared: { tables: { tasks: {
      schema: { projectId: { type: "string" }, note: { type: "string" } },
      access: { read: (auth, _task, { db }) => auth !== null && [
        ["projectId", "in", db("org").table("members").where("userId", "==", auth.id).list().items.map((one) => one.projectId)],
      ] },
    } } },
  },
}`;

export interface FollowingFigures {
  subscribers: number;
  changesPerSecond: number;
  membershipChangesPerSecond: number;
  /** Time from the request that changes a task until each member of its project has the change, in milliseconds. */
  deliveryP50Ms: number;
  deliveryP99Ms: number;
  /** Time from the request that changes a membership until its user is notified. */
  rightsP50Ms: number;
  rightsP99Ms: number;
}

interface Subscriber {
  userId: string;
  membership: string;
  project: number;
  socket: WebSocket;
  /** Time of the change of the membership; null: unchanged. */
  changedAt: number | null;
}

const projectName = (project: number): string => `p${project}`;

/** Members of projects, each subscribed to the tasks of their own project. */
class Crowd {
  readonly subscribers: Subscriber[] = [];
  readonly deliveryMs: number[] = [];
  readonly rightsMs: number[] = [];
  /** Time at which the task of each note was changed. */
  readonly sentAt = new Map<string, number>();
  readonly #platform: TestPlatform;

  constructor(platform: TestPlatform) {
    this.#platform = platform;
  }

  async open(): Promise<void> {
    for (let from = 0; from < SUBSCRIBERS; from += BATCH) {
      const users = await this.#signIn(BATCH);
      const inserts = users.map(({ userId }, index) => ({
        id: `m${from + index}`,
        userId,
        projectId: projectName((from + index) % PROJECTS),
      }));
      const { status } = await this.#platform.service.post("/api/db/org/tables/members/batch", { inserts });
      if (status !== 200) throw new Error(`members: ${status}`);
      await openInGroups(users.length, async (index) => {
        const user = users[index];
        if (user !== undefined) await this.#subscribe(user, from + index);
      });
    }
  }

  close(): void {
    for (const { socket } of this.subscribers) socket.terminate();
  }

  async #signIn(count: number): Promise<{ userId: string; token: string }[]> {
    const users: { userId: string; token: string }[] = [];
    while (users.length < count) {
      const group = Array.from({ length: 25 }, () => this.#signInOne());
      users.push(...(await Promise.all(group)));
    }
    return users;
  }

  async #signInOne(): Promise<{ userId: string; token: string }> {
    const { status, body } = await this.#platform.post<{ accessToken: string; user: { id: string } }>(
      "/api/auth/signin/anonymous",
      {},
    );
    if (status >= 300) throw new Error(`sign-in: ${status}`);
    return { userId: body.user.id, token: body.accessToken };
  }

  #subscribe({ userId, token }: { userId: string; token: string }, index: number): Promise<void> {
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const socket = new WebSocket(`${this.#platform.wsUrl}/api/realtime`);
    const one: Subscriber = { userId, membership: `m${index}`, project: index % PROJECTS, socket, changedAt: null };
    this.subscribers.push(one);
    socket.onerror = () => reject(new Error("cannot connect"));
    socket.onopen = () => {
      for (const message of hello(token, CHANNEL)) socket.send(message);
    };
    socket.onmessage = (event) => this.#take(one, event.data as string, resolve); // text frames only
    return promise;
  }

  #take(one: Subscriber, text: string, isSubscribed: () => void): void {
    const now = performance.now();
    const message = JSON.parse(text);
    if (message.type === "db_change") {
      this.deliveryMs.push(now - (this.sentAt.get(message.data.note) ?? Number.NaN));
    } else if (message.type === "subscribed") {
      isSubscribed();
      if (one.changedAt !== null) this.rightsMs.push(now - one.changedAt);
      one.changedAt = null;
    } else if (message.type === "error") {
      throw new Error(message.message);
    }
  }
}

/**
 * Writes tasks of all projects, and moves members between projects, at constant rates. Resolves when each moved member has been
 * notified. Errors: some were not in time.
 */
async function write(platform: TestPlatform, crowd: Crowd): Promise<void> {
  const startedAt = performance.now();
  const waiting: Promise<unknown>[] = [];
  const changeTask = (n: number): Promise<unknown> => {
    const note = `n${n}`;
    crowd.sentAt.set(note, performance.now());
    return platform.service.post("/api/db/shared/tables/tasks", { projectId: projectName((n * 7) % PROJECTS), note });
  };
  const changeMembership = (n: number): Promise<unknown> => {
    const one = crowd.subscribers[(n * 37) % SUBSCRIBERS];
    if (one === undefined) throw new Error("there is such a subscriber");
    one.project = (one.project + 1) % PROJECTS;
    one.changedAt = performance.now();
    return platform.service.patch(`/api/db/org/tables/members/${one.membership}`, {
      projectId: projectName(one.project),
    });
  };
  let [tasks, memberships] = [0, 0];
  for (let now = startedAt; now < startedAt + SECONDS * 1_000; now = performance.now()) {
    const seconds = (now - startedAt) / 1_000;
    while (tasks < seconds * CHANGES_PER_SECOND) waiting.push(changeTask(tasks++));
    while (memberships < seconds * MEMBERSHIP_CHANGES_PER_SECOND) waiting.push(changeMembership(memberships++));
    await Bun.sleep(2);
  }
  await Promise.all(waiting);
  for (let waitedMs = 0; crowd.rightsMs.length < memberships; waitedMs += 100) {
    if (waitedMs > WAIT_MS)
      throw new Error(`${memberships - crowd.rightsMs.length} users were not told of their rights`);
    await Bun.sleep(100);
  }
}

/** Measures 10,000 users whose rule looks up their memberships, which change while tasks are written. */
export async function measureFollowing(): Promise<FollowingFigures> {
  const platform = await testPlatform({ config: CONFIG });
  const crowd = new Crowd(platform);
  try {
    await crowd.open();
    await write(platform, crowd);
    return {
      subscribers: SUBSCRIBERS,
      changesPerSecond: CHANGES_PER_SECOND,
      membershipChangesPerSecond: MEMBERSHIP_CHANGES_PER_SECOND,
      deliveryP50Ms: quantile(crowd.deliveryMs, 0.5),
      deliveryP99Ms: quantile(crowd.deliveryMs, 0.99),
      rightsP50Ms: quantile(crowd.rightsMs, 0.5),
      rightsP99Ms: quantile(crowd.rightsMs, 0.99),
    };
  } finally {
    crowd.close();
    await platform.stop();
  }
}

if (import.meta.main) process.stdout.write(`${JSON.stringify(await measureFollowing(), null, 2)}\n`);
