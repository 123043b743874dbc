/** Tests of a server that owns the files of a cluster, on a real PostgreSQL. */
import { afterEach, beforeEach, expect, test } from "bun:test";
import { entriesOf, expectSameFiles, filesOfLog, loggedOf } from "../../../../tests/support/cluster/log-files.ts";
import { startMember } from "../../../../tests/support/cluster/members.ts";
import { startOwner, type TestOwner, type TestOwnerOptions } from "../../../../tests/support/cluster/owners.ts";
import { TestPostgres } from "../../../../tests/support/cluster/postgres.ts";
import { cuttingProxy } from "../../../../tests/support/cutting-proxy.ts";
import { openSocket } from "../../../../tests/support/socket.ts";
import { until } from "../../../../tests/support/until.ts";
import type { FunctionsApi, PlatformConfig } from "../../config/types.ts";
import { outgoingFetch } from "../../http/outgoing/call.ts";
import { decodeContent } from "../entries/content.ts";
import type { PostgresConnection } from "../postgres/connection.ts";
import { askLog } from "../postgres/log-channel.ts";
import { makeSchema } from "../postgres/schema.ts";

const CONFIG = {
  databases: {
    main: {
      tables: {
        notes: {
          schema: { title: { type: "string", unique: true }, body: { type: "string" } },
          search: ["body"],
        },
      },
    },
  },
  kv: { cache: {} },
  d1: { ledger: {} },
} as unknown as PlatformConfig;

let postgres: TestPostgres;
let owners: TestOwner[] = [];
let holders: PostgresConnection[] = [];
beforeEach(async () => {
  postgres = await TestPostgres.start();
  const connection = await postgres.connect();
  await makeSchema(connection, 1_000_000);
  connection.close();
  owners = [];
  holders = [];
});
afterEach(async () => {
  // Where a test has failed before it has let appends through.
  for (const connection of holders) connection.close();
  await Promise.all(owners.map((owner) => owner.stop()));
  await postgres.stop();
});

async function owning(config: PlatformConfig = CONFIG, options: Partial<TestOwnerOptions> = {}): Promise<TestOwner> {
  const owner = await startOwner({ postgres: postgres.url, config, ...options });
  owners.push(owner);
  return owner;
}

test("[CLU40] the log leads to exactly the files of its owner, whatever has changed them", async () => {
  const owner = await owning();
  const { service } = owner;
  const path = "/api/db/main/tables/notes";
  await Promise.all(
    Array.from({ length: 40 }, (_, index) => service.post(path, { title: `t${index}`, body: "some text" })),
  );
  const long = await service.post<{ id: string }>(path, { title: "long", body: "word ".repeat(200_000) });
  expect([long.status, long.body, owner.failures]).toEqual([201, long.body, []]);
  await service.patch(`${path}/${long.body.id}`, { title: "longer" });
  const { body } = await service.get<{ items: { id: string }[] }>(`${path}?limit=5`);
  for (const { id } of body.items) await service.delete(`${path}/${id}`);
  await service.post("/api/kv/cache", { action: "set", key: "a", value: 1 });
  for (const sql of ["CREATE TABLE t (n)", "INSERT INTO t VALUES (1), (2)", "VACUUM", "INSERT INTO t VALUES (3)"])
    expect(await service.post("/api/d1/ledger", { query: sql })).toMatchObject({ status: 200 });
  await owner.stop();
  owners = [];
  expect(await expectSameFiles(postgres, owner.dataDirectory)).toContain("databases/main.db");
  const { numbers } = (await filesOfLog(postgres)).get("databases/main.db") ?? { numbers: [] };
  expect(numbers.length).toBeGreaterThan(3);
  expect(owner.failures).toEqual([]);
}, 60_000);

const NOTES = "/api/db/main/tables/notes";
const clusterCode = ({ body }: { body: unknown }): string | undefined =>
  (body as { data?: { cluster?: { code: string } } }).data?.cluster?.code;

/** Lets no append through until the returned function is called. */
async function holdAppends(): Promise<(change?: string) => Promise<void>> {
  const connection = await postgres.connect("holder");
  holders.push(connection);
  await connection.run("BEGIN");
  await connection.run("SELECT 1 FROM platform.groups FOR UPDATE");
  return async (change) => {
    if (change !== undefined) await connection.run(change);
    await connection.run("COMMIT");
    connection.close();
  };
}

async function nodesOf() {
  const connection = await postgres.connect();
  const answer = await askLog(connection, { kind: "look", position: 0 });
  connection.close();
  return answer;
}

/** Waits for an answer, for as long as a busy machine may take. */
async function answered<T>(answer: Promise<T>): Promise<T> {
  const watched = watch(answer);
  await until("it is answered", () => watched.isSettled);
  return answer;
}

/** Whether a promise has settled, without waiting for it. */
function watch<T>(promise: Promise<T>): { readonly isSettled: boolean; readonly promise: Promise<T> } {
  const watched = { isSettled: false, promise };
  const settled = (): void => {
    watched.isSettled = true;
  };
  promise.then(settled, settled);
  return watched;
}

test("[CLU42] an answer leaves when the log has everything that it may show, and at once where nothing is under way", async () => {
  const owner = await owning();
  const { service, started } = owner;
  expect((await service.post(NOTES, { title: "before", body: "" })).status).toBe(201);
  const release = await holdAppends();
  // Nothing is under way: it does not wait for the log.
  expect((await service.get<{ items: unknown[] }>(NOTES)).body.items).toHaveLength(1);
  const acknowledged = started.member.announcement?.position;
  const written = watch(service.post(NOTES, { title: "held", body: "" }));
  await until("it is committed here", () => started.member.position > (acknowledged ?? 0));
  const list = watch(service.get<{ items: unknown[] }>(NOTES));
  const refused = watch(service.post(NOTES, { title: "before", body: "" }));
  const absent = watch(service.get(`${NOTES}/none`));
  await until("they wait at the gate", () => owner.heldCount >= 2);
  expect([written.isSettled, list.isSettled, refused.isSettled, absent.isSettled]).toEqual([
    false,
    false,
    false,
    false,
  ]);
  await release();
  expect((await written.promise).status).toBe(201);
  expect((await list.promise).body.items).toHaveLength(2);
  expect([(await refused.promise).status, (await absent.promise).status]).toEqual([409, 404]);
}, 60_000);

test("[CLU46] an answer to a write of records waits for that write, and not for what is committed behind it", async () => {
  const owner = await owning();
  const { service, started } = owner;
  const { member } = started;
  const release = await holdAppends();
  const waiting = async (): Promise<number> =>
    (await postgres.sql("SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock'")).length;
  const { position } = member;
  const first = service.post(NOTES, { title: "first", body: "" });
  await until("its append waits", async () => member.position > position && (await waiting()) === 1);
  const between = member.position;
  // Gets the row behind that append, and before the next.
  const next = holdAppends();
  await until("so does the next holder", async () => (await waiting()) === 2);
  const second = watch(service.post(NOTES, { title: "second", body: "" }));
  await until("it is committed here", () => member.position > between);
  await release();
  expect((await first).status).toBe(201);
  const list = watch(service.get<{ items: unknown[] }>(NOTES));
  await until("the list waits at the gate", () => owner.heldCount > 0);
  expect([second.isSettled, list.isSettled]).toEqual([false, false]);
  await (await next)();
  expect([(await second.promise).status, (await list.promise).body.items.length]).toEqual([201, 2]);
}, 60_000);

test("[CLU42] messages to sockets and calls to other servers wait for the log too", async () => {
  let calls = 0;
  const other = Bun.serve({
    port: 0,
    fetch() {
      calls += 1;
      return new Response("ok");
    },
  });
  const owner = await owning({
    ...CONFIG,
    realtime: { broadcast: { subscribe: () => true } },
  } as unknown as PlatformConfig);
  const { service, started, platform, url } = owner;
  const socket = await openSocket(`${url.replace("http", "ws")}/api/realtime`);
  const user = { email: "one@example.com", password: "correct horse battery", role: "user" };
  expect((await service.post("/api/auth/admin/users", user)).status).toBe(201);
  const { body } = await service.post<{ accessToken: string }>("/api/auth/signin", {
    email: user.email,
    password: user.password,
  });
  socket.send({ type: "auth", token: body.accessToken });
  await socket.nextOf("auth_success");
  socket.send({ type: "subscribe", channel: "broadcast:news" });
  await socket.nextOf("subscribed");
  await platform.app.broadcast("broadcast:news", "at once", {});
  await socket.expect({ event: "at once" });
  const release = await holdAppends();
  const { position } = started.member;
  const written = watch(service.post(NOTES, { title: "held", body: "" }));
  await until("it is committed here", () => started.member.position > position);
  const sent = watch(platform.app.broadcast("broadcast:news", "held", {}));
  const called = watch(outgoingFetch(other.url.href, { signal: AbortSignal.timeout(10_000), maxBytes: 100 }));
  await until("they wait", () => owner.heldCount >= 3);
  socket.send({ type: "ping" });
  expect([written.isSettled, sent.isSettled, called.isSettled, calls, socket.pending]).toEqual([
    false,
    false,
    false,
    0,
    [],
  ]);
  await release();
  // The answer to the ping comes behind the message.
  await socket.expect({ event: "held" });
  await Promise.all([written.promise, sent.promise, called.promise]);
  expect(calls).toBe(1);
  await socket.close();
  await other.stop(true);
}, 60_000);

test("[CLU42] an answer of a route waits, whatever its status is", async () => {
  const status = (code: number) => async () => {
    const held = await new Promise((resolve) => setImmediate(resolve, "what it has read"));
    return new Response(String(held), { status: code });
  };
  const owner = await owning({
    ...CONFIG,
    routes: (api: FunctionsApi) =>
      api.get("/unavailable", status(503), { access: true }).get("/teapot", status(418), { access: true }),
  } as unknown as PlatformConfig);
  const { service, started } = owner;
  const release = await holdAppends();
  const { position } = started.member;
  const written = watch(service.post(NOTES, { title: "held", body: "" }));
  await until("it is committed here", () => started.member.position > position);
  const answers = ["unavailable", "teapot"].map((name) => watch(fetch(`${owner.url}/api/functions/${name}`)));
  await until("they wait at the gate", () => owner.heldCount >= 2);
  expect([written.isSettled, ...answers.map(({ isSettled }) => isSettled)]).toEqual([false, false, false]);
  await release();
  expect(await Promise.all(answers.map(async ({ promise }) => (await promise).status))).toEqual([503, 418]);
  await written.promise;
}, 60_000);

test("[CLU43] code of the config learns of a commit, and a job begins, when the log has it", async () => {
  const ran: string[] = [];
  const owner = await owning({
    ...CONFIG,
    jobs: { note: { run: ({ data }: { data: unknown }) => void ran.push(String(data)) } },
  } as unknown as PlatformConfig);
  const { started } = owner;
  const { app } = owner.platform;
  const table = app.db("main").table("notes");
  await app.jobs.enqueue("note", "first");
  await until("the job has run", () => ran.length === 1);
  await table.insert({ title: "one", body: "" });
  expect(await table.where("title", "==", "one").sort("title").first()).toMatchObject({ title: "one" });
  const release = await holdAppends();
  const { position } = started.member;
  const enqueued = watch(app.jobs.enqueue("note", "second"));
  await until("it is committed here", () => started.member.position > position);
  const [found, failed] = [watch(table.count()), watch(table.get("").catch(() => null))];
  await until("what was read waits, and so does the job", () => owner.heldCount >= 3);
  expect([enqueued.isSettled, found.isSettled, failed.isSettled, ran]).toEqual([false, false, false, ["first"]]);
  await release();
  expect([await found.promise, await failed.promise]).toEqual([1, null]);
  await enqueued.promise;
  await until("the job has run", () => ran.length === 2);
}, 60_000);

test("[CLU42] nothing is answered when the lease is over, although nothing is under way", async () => {
  const owner = await owning(CONFIG, { speed: 4 });
  const { service, url, started } = owner;
  expect((await service.post(NOTES, { title: "before", body: "" })).status).toBe(201);
  const { member } = started;
  await until("nothing is under way", () => member.mayAnswer(member.position));
  // In this turn no commit and no renewal comes between.
  expect(owner.owner.gate.wait()).toBeNull();
  // The machine wakes up: it was suspended for longer than its lease.
  started.suspendedMs += 9_000;
  const wait = owner.owner.gate.wait();
  expect(wait).not.toBeNull();
  await wait;
  expect((await service.get(NOTES)).status).toBe(200);
  await postgres.kill();
  expect((await service.get(NOTES)).status).toBe(200);
  await until("the lease is over", async () => (await service.get(NOTES)).status === 503);
  const read = await service.get(NOTES);
  expect([read.status, clusterCode(read), read.headers.get("retry-after")]).toEqual([503, "stale", "1"]);
  expect((await fetch(`${url}/api/health`)).status).toBe(503);
  await postgres.run();
  await until("it is trusted again", async () => (await service.get(NOTES)).status === 200);
}, 60_000);

test("[CLU45] who takes a right away is answered when no other node uses it any more", async () => {
  const owner = await owning(CONFIG, { speed: 4 });
  const { service, url } = owner;
  const { app } = owner.platform;
  const proxy = await cuttingProxy(() => postgres.url);
  const other = startMember({
    postgres: `postgres://postgres@127.0.0.1:${new URL(proxy.url).port}/postgres`,
    node: "other",
    speed: 4,
  });
  const { member } = other;
  await until("the other answers, too", () => member.position > 0 && member.mayAnswer(member.position));
  const user = { email: "one@example.com", password: "correct horse battery", role: "user" };
  expect((await service.post("/api/auth/admin/users", user)).status).toBe(201);
  const created = await service.post<{ user: { id: string } }>("/api/auth/admin/users", {
    ...user,
    email: "two@example.com",
  });
  const signIn = async () => {
    const { email, password } = user;
    const { body } = await service.post<{ accessToken: string }>("/api/auth/signin", { email, password });
    return body.accessToken;
  };
  const [token, second] = [await signIn(), await signIn()];
  const signOut = (of: string) =>
    fetch(`${url}/api/auth/signout`, { method: "POST", headers: { authorization: `Bearer ${of}` } });
  // The other node says that it has applied it.
  expect((await signOut(token)).status).toBe(200);
  const { nodes } = await nodesOf();
  expect(nodes.find(({ node }) => node === "other")?.applied).toBeGreaterThanOrEqual(1);
  expect(member.position).toBeGreaterThanOrEqual(nodes.find(({ node }) => node === "other")?.applied ?? Number.NaN);
  // Now it hangs: it is asked for nothing, and answers as before while it trusts its lease.
  proxy.freeze(true);
  const position = owner.started.member.position;
  const held = [watch(signOut(second)), watch(app.users.update(created.body.user.id, { role: "admin" }))];
  await until("they are acknowledged", () => (owner.started.member.announcement?.position ?? 0) >= position + 2);
  const others = await service.post(NOTES, { title: "other", body: "" });
  expect(others.status).toBe(201);
  await until("the other has no lease any more", () => {
    if (!member.mayAnswer(member.position)) return true;
    expect(held.map(({ isSettled }) => isSettled)).toEqual([false, false]);
    return false;
  });
  await Promise.all(held.map(({ promise }) => promise));
  other.stop();
  await proxy.stop();
}, 60_000);

test("[CLU41] a write of unknown outcome is done once, when it is sent again with its key", async () => {
  const { service } = await owning();
  const key = { headers: { "idempotency-key": "one" } };
  expect((await service.post(NOTES, { title: "before", body: "" })).status).toBe(201);
  await postgres.kill();
  const lost = await service.post(NOTES, { title: "lost", body: "" }, key);
  expect(clusterCode(lost)).toBe("unknown_outcome");
  await postgres.run();
  let again = lost;
  await until("it is answered", async () => {
    again = await service.post(NOTES, { title: "lost", body: "" }, key);
    return again.status !== 503;
  });
  expect([again.status, again.headers.get("idempotent-replay")]).toEqual([201, "true"]);
  expect((await service.get<{ items: unknown[] }>(NOTES)).body.items).toHaveLength(2);
}, 60_000);

test("[CLU40] a transaction that is larger than an append is in the log whole", async () => {
  const owner = await owning();
  const { app } = owner.platform;
  await app.db("main").transaction((tx) => {
    const table = tx.table("notes");
    // Bytes that do not get smaller.
    for (let index = 0; index < 40; index++)
      table.insert({ title: `t${index}`, body: crypto.getRandomValues(new Uint8Array(60_000)).toBase64().repeat(3) });
  });
  await owner.stop();
  owners = [];
  const entries = await entriesOf(postgres);
  expect(
    Math.max(...entries.map(({ body }) => body.reduce((sum, { content }) => sum + content.byteLength, 0))),
  ).toBeLessThan(6_000_000);
  expect(
    entries.flatMap(({ body }) => body).filter(({ content }) => decodeContent(content).kind === "part").length,
  ).toBeGreaterThan(5);
  await expectSameFiles(postgres, owner.dataDirectory);
}, 60_000);

test("[CLU40] a directory that the log knows goes on from there, and a file that is not what the log has is not opened", async () => {
  const first = await owning();
  expect((await first.service.post(NOTES, { title: "one", body: "" })).status).toBe(201);
  await first.platform.stop();
  const { member } = first.started;
  await until("all of it is acknowledged", () => member.mayAnswer(member.position));
  const logged = await loggedOf(postgres);
  first.started.stop();
  owners = [];
  const { dataDirectory } = first;
  // The place among the nodes is free when the lease of the process before is over.
  const second = await owning(CONFIG, { dataDirectory, logged: (path) => logged.get(path) ?? null, speed: 4 });
  expect((await second.service.get<{ items: unknown[] }>(NOTES)).body.items).toHaveLength(1);
  expect((await second.service.post(NOTES, { title: "two", body: "" })).status).toBe(201);
  await second.stop();
  await expectSameFiles(postgres, dataDirectory);
  const entries = await entriesOf(postgres);
  const contents = entries.flatMap(({ body }) => body.map(({ content }) => decodeContent(content)));
  expect(contents.filter((one) => one.kind === "created" && one.path === "databases/main.db")).toHaveLength(1);
  owners = [];
  // What the log had of it before the second opening.
  const third = await owning(CONFIG, { dataDirectory, logged: (path) => logged.get(path) ?? null, speed: 4 });
  expect(third.failures.map(String)).toEqual(["Error: The log cannot follow the file system.db"]);
  expect(clusterCode(await third.service.get(NOTES))).toBe("no_owner");
}, 60_000);

test("[CLU41] without PostgreSQL a write is answered within 4 s, and is done once the log is back", async () => {
  const owner = await owning();
  const { service } = owner;
  expect((await service.post(NOTES, { title: "before", body: "" })).status).toBe(201);
  await postgres.kill();
  const startedAt = performance.now();
  const lost = await answered(service.post(NOTES, { title: "lost", body: "" }));
  expect(performance.now() - startedAt).toBeLessThan(4_000);
  expect([lost.status, clusterCode(lost), lost.headers.get("retry-after")]).toEqual([503, "unknown_outcome", "1"]);
  // Nothing of it is done: it may be sent again.
  const next = await answered(service.post(NOTES, { title: "next", body: "" }));
  expect([next.status, clusterCode(next), next.headers.get("retry-after")]).toEqual([503, "no_owner", "1"]);
  const read = await service.get(NOTES);
  expect([read.status, clusterCode(read)]).toEqual([503, "stale"]);
  await postgres.run();
  await until(
    "writes are taken again",
    async () => (await service.post(NOTES, { title: "after", body: "" })).status === 201,
  );
  const { body } = await service.get<{ items: { title: string }[] }>(NOTES);
  expect(body.items.map(({ title }) => title).toSorted()).toEqual(["after", "before", "lost"]);
  expect(owner.failures).toEqual([]);
}, 60_000);

test("[CLU41] when another node takes the group, what waits has an unknown outcome, and nothing more is answered", async () => {
  const owner = await owning();
  const { service } = owner;
  expect((await service.post(NOTES, { title: "before", body: "" })).status).toBe(201);
  const release = await holdAppends();
  const { position } = owner.started.member;
  const waiting = [1, 2].map((count) => service.post(NOTES, { title: `waits ${count}`, body: "" }));
  await until("they are committed here", () => owner.started.member.position > position);
  const read = service.get(NOTES);
  await until("it waits at the gate", () => owner.heldCount > 0);
  await release(
    "UPDATE platform.groups SET epoch = epoch + 1, owner = 'another', incarnation = 'another', position = position + 1, nonce = 'other'",
  );
  for (const answer of await Promise.all(waiting))
    expect([answer.status, clusterCode(answer), answer.headers.get("retry-after")]).toEqual([
      503,
      "unknown_outcome",
      "1",
    ]);
  expect(clusterCode(await read)).toBe("no_owner");
  const next = await service.post(NOTES, { title: "next", body: "" });
  expect([next.status, clusterCode(next)]).toEqual([503, "no_owner"]);
  const after = await service.get(NOTES);
  expect([after.status, clusterCode(after)]).toEqual([503, "no_owner"]);
  expect(owner.failures).toHaveLength(1);
}, 60_000);
