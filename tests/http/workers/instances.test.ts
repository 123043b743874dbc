import { afterAll, beforeAll, expect, test } from "bun:test";
import { type SignedIn, signIn, type TestPlatform, testPlatform, until } from "../../support/index.ts";

/** A new connection for each request: the system spreads connections over the processes. */
const ALONE = { headers: { connection: "close" } };
const ROUNDS = 100;

const CONFIG = `export default {
  server: { workers: 2 },
  databases: {
    clubs: { instance: true,
      access: { open: true, create: true },
      tables: { notes: { schema: { text: { type: "string" }, n: { type: "integer" } }, access: { read: true, insert: true, update: true, delete: true } } } },
    shared: { tables: { members: { schema: { userId: { type: "string" } }, indexes: [{ fields: ["userId"] }] } } },
    closed: { instance: true,
      access: { create: true, open: (auth, _id, { db }) => auth !== null && db("shared").table("members").exists([["userId", "==", auth.id]]) },
      tables: { notes: { access: { read: true, insert: true } } } },
    looking: { tables: { notes: { access: {
      insert: true,
      read: (_auth, _record, { db }) => db("clubs", "switch").table("notes").get("open") !== null,
    } } } },
  },
};`;

let platform: TestPlatform;
let user: SignedIn;
beforeAll(async () => {
  platform = await testPlatform({ config: CONFIG });
  user = await signIn(platform);
});
afterAll(() => platform.stop());

const notesOf = (id: string, namespace = "clubs"): string => `/api/db/${namespace}/${id}/tables/notes`;

/** The process that has answered: the beginning of the request's id. */
const processOf = (answer: Response): string => (answer.headers.get("x-request-id") ?? "").slice(0, 12);

/** Reads until three processes have answered, or as many as asked. */
async function readByEach(path: string, processes = 3, by: Pick<TestPlatform, "fetch"> = platform): Promise<void> {
  const seen = new Set<string>();
  await until(`${processes} processes have answered`, async () => {
    const answer = await by.fetch(path, ALONE);
    expect(answer.status).toBe(200);
    await answer.arrayBuffer();
    seen.add(processOf(answer));
    return seen.size >= processes;
  });
}

const textsOf = async (path: string): Promise<unknown[]> => {
  const { body } = await platform.get<{ items: { text: string }[] }>(`${path}?sort=n`, ALONE);
  return body.items.map(({ text }) => text);
};

const deleteInstance = async (id: string): Promise<void> => {
  const { status } = await platform.service.delete(`/api/admin/instances/clubs/${id}`, undefined, ALONE);
  expect(status).toBe(200);
};

test("[WK30] every process reads instances that the main process has open", async () => {
  expect((await platform.post(notesOf("a"), { id: "one", text: "first" }, ALONE)).status).toBe(201);
  await readByEach(notesOf("a"));
  await readByEach(`${notesOf("a")}/one`);
  await readByEach(`${notesOf("a")}/count`);
  expect((await platform.get(notesOf("none"), ALONE)).body).toMatchObject({ items: [] });
  expect((await platform.get(`/api/db/clubs/tables/notes`, ALONE)).status).toBe(404);
  expect((await platform.get(notesOf("b!"), ALONE)).status).toBe(400);
});

test("[WK10] a write to an instance that was answered is in every later answer, on any connection", async () => {
  for (let n = 1; n <= ROUNDS * 3; n++) {
    const made = await platform.post<{ id: string }>(notesOf("w"), { text: "new", n }, ALONE);
    expect(made.status).toBe(201);
    const [one, two, count] = await Promise.all([
      platform.get(`${notesOf("w")}/${made.body.id}`, ALONE),
      platform.get(`${notesOf("w")}/${made.body.id}`, ALONE),
      platform.get<{ total: number }>(`${notesOf("w")}/count`, ALONE),
    ]);
    expect([one.status, two.status, count.body.total]).toEqual([200, 200, n]);
  }
}, 120_000);

test("[WK33] an instance that was deleted, and one that is made again, is another one for every process", async () => {
  for (let round = 1; round <= ROUNDS / 2; round++) {
    expect((await platform.post(notesOf("turn"), { text: `of ${round}`, n: 1 }, ALONE)).status).toBe(201);
    await readByEach(notesOf("turn"), 2);
    expect(await textsOf(notesOf("turn"))).toEqual([`of ${round}`]);
    await deleteInstance("turn");
    expect(await Promise.all([1, 2, 3, 4].map(() => textsOf(notesOf("turn"))))).toEqual([[], [], [], []]);
  }
}, 120_000);

test("[WK11] a right to open an instance that was taken away is used by no process once that is answered", async () => {
  const path = notesOf("x", "closed");
  expect((await platform.service.post(path, { text: "closed" }, ALONE)).status).toBe(201);
  const ask = () => Promise.all([1, 2, 3].map(async () => (await user.get(path, ALONE)).status));
  for (let round = 0; round < ROUNDS; round++) {
    const { id } = (await platform.service.post<{ id: string }>("/api/db/shared/tables/members", { userId: user.id }))
      .body;
    expect(await ask()).toEqual([200, 200, 200]);
    if (round === 0) await readByEach(path, 3, user);
    expect((await platform.service.delete(`/api/db/shared/tables/members/${id}`)).status).toBe(200);
    expect(await ask()).toEqual([403, 403, 403]);
  }
}, 120_000);

test("[WK11] a rule that looks into an instance decides by what it has now", async () => {
  const looking = "/api/db/looking/tables/notes";
  expect((await platform.service.post(looking, { text: "kept" }, ALONE)).status).toBe(201);
  const ask = () => Promise.all([1, 2, 3].map(async () => (await platform.get(looking, ALONE)).status));
  for (let round = 0; round < ROUNDS; round++) {
    const made = await platform.post<{ id: string }>(notesOf("switch"), { id: "open", text: "open" }, ALONE);
    expect(await ask()).toEqual([200, 200, 200]);
    if (round === 0) await readByEach(looking);
    if (round % 10 === 9) await deleteInstance("switch");
    else expect((await platform.delete(`${notesOf("switch")}/${made.body.id}`, undefined, ALONE)).status).toBe(200);
    expect(await ask()).toEqual([401, 401, 401]);
  }
}, 120_000);

test("[WK31] workers read many more instances than they may have open", async () => {
  const ids = Array.from({ length: 150 }, (_, n) => `many-${n}`);
  for (const id of ids) expect((await platform.post(notesOf(id), { text: id }, ALONE)).status).toBe(201);
  for (const id of [...ids, ...ids.toReversed()]) await readByEach(notesOf(id), 2);
  for (const id of ids) expect(await textsOf(notesOf(id))).toEqual([id]);
}, 120_000);

test("[WK34] a worker that does not give an instance back is ended, and holds its deletion up for about a second", async () => {
  expect((await platform.post(notesOf("held"), { text: "held" }, ALONE)).status).toBe(201);
  await readByEach(notesOf("held"));
  const { body } = await platform.service.get<{ checks: { processes: { pid: number; role: string }[] } }>(
    "/api/health?full",
  );
  const workers = body.checks.processes.filter(({ role }) => role === "worker").map(({ pid }) => pid);
  for (const pid of workers) process.kill(pid, "SIGSTOP");
  // A connection that was kept is the main process's: those that are stopped take new ones, and answer none.
  const isGone = async (): Promise<boolean> => {
    const answer = await platform.service
      .fetch("/api/admin/instances/clubs/held", { method: "DELETE", ...ALONE, signal: AbortSignal.timeout(2_000) })
      .catch(() => null);
    return answer !== null && (answer.status === 200 || answer.status === 404);
  };
  await until("the instance is deleted", isGone);
  expect(await textsOf(notesOf("held"))).toEqual([]);
  await until("the workers are others", async () => {
    const answer = await platform.service.get<typeof body>("/api/health?full", ALONE).catch(() => null);
    const now = answer?.body.checks.processes.map(({ pid }) => pid) ?? workers;
    return workers.every((pid) => !now.includes(pid)) && now.length === 3;
  });
}, 60_000);
