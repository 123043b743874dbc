import { afterAll, beforeAll, expect, test } from "bun:test";
import { existsSync } from "node:fs";
import { join } from "node:path";
import type { JsonObject, JsonValue } from "../../../src/kernel/json/json.ts";
import { type TestPlatform, testPlatform, until } from "../../support/index.ts";

/** Inserting an order enqueues the job that it names. What jobs do is in the key-value namespace. */
const CONFIG = (jobs: string) => `{
  kv: { notes: {} },
  databases: { shared: { tables: { orders: {
    access: { read: true, insert: true },
    hooks: { beforeInsert: async (auth, { job, data, options }, app) => {
      const at = options?.at === "date" ? { at: new Date(Date.now() - 1000) } : {};
      return { job, jobId: await app.jobs.enqueue(job, data, { ...options, ...at }) };
    } },
  } } } },
  serviceKeys: {
    reader: { key: "reads-charges-0123456789", scopes: ["jobs:*:charge:read"] },
    writer: { key: "writes-charges-0123456789", scopes: ["jobs:*:charge:write"] },
    other: { key: "reads-tables-0123456789", scopes: ["db:*:*:read"] },
  },
  jobs: { ${jobs} },
}`;
const JOBS = `
  charge: {
    data: { type: "object", required: ["orderId"], properties: {
      orderId: { type: "string", minLength: 1 },
      email: { type: "string", format: "email" },
      count: { anyOf: [{ type: "string", format: "integer", default: 0 }, { type: "integer" }] },
      day: { anyOf: [{ type: "Date" }, { type: "string", format: "date" }] },
    } },
    run: async ({ id, data, app, attempt, log }) => {
      log.info("charging");
      await app.kv("notes").set(data.orderId, { id, attempt });
    },
  },
  fails: { retries: 0, run: () => { throw new Error("no luck"); } },
  waits: { run: ({ signal, app }) => new Promise((resolve, reject) => signal.addEventListener("abort", async () => {
    await app.kv("notes").set("aborted", true);
    reject(signal.reason);
  })) },
  deaf: { run: async ({ app }) => {
    const notes = app.kv("notes");
    await notes.set("deaf", Number((await notes.get("deaf")) ?? 0) + 1);
    while ((await notes.get("heard")) !== true) await new Promise((resolve) => setTimeout(resolve, 10));
    await notes.set("deaf", Number(await notes.get("deaf")) - 1);
  } },
  odd: { retries: 0, run: ({ data }) => {
    if (data === "throws") throw Object.defineProperty(new Error(), "message", { get() { throw new Error("no message"); } });
    // As an error is often made of what another server has answered.
    throw Object.assign(new Error("refused"), { message: data });
  } },
  any: { run: async ({ data, app }) => { await app.kv("notes").set("any", data); } },
`;

let platform: TestPlatform;
beforeAll(async () => {
  platform = await testPlatform({ config: CONFIG(JOBS) });
});
afterAll(() => platform.stop());

const insert = (job: string, data: JsonValue = null, options: JsonObject = {}) =>
  platform.post<{ jobId: string }>("/api/db/shared/tables/orders", { job, data, options });
async function enqueue(job: string, data?: JsonValue, options?: JsonObject): Promise<string> {
  const answer = await insert(job, data, options);
  if (answer.status !== 201) throw new Error(JSON.stringify(answer.body));
  return answer.body.jobId;
}
const noteOf = async (key: string): Promise<unknown> =>
  (await platform.service.post<{ value: unknown }>("/api/kv/notes", { action: "get", key })).body.value;

interface Listed {
  id: string;
  name: string;
  state: string;
  attempt: number;
  data: unknown;
  error: string | null;
  createdAt: string;
  dueAt: string;
  startedAt: string | null;
  finishedAt: string | null;
}
const list = async (query = "", client = platform.service) =>
  (await client.get<{ jobs: Listed[]; cursor: string | null }>(`/api/admin/jobs${query}`)).body;
const jobOf = async (id: string) => (await list("?limit=200")).jobs.find((job) => job.id === id);
const untilState = (id: string, state: string) =>
  until(`job ${id} is ${state}`, async () => (await jobOf(id))?.state === state);

test("[JB15] a server that has enqueued nothing has no jobs.db", async () => {
  expect((await list()).jobs).toEqual([]);
  expect((await platform.service.get("/metrics")).status).toBe(200);
  expect(existsSync(join(platform.dataDirectory, "jobs.db"))).toBe(false);
});

test("[JB20] a job of the config runs with its data", async () => {
  const id = await enqueue("charge", { orderId: "o1" });
  await until("it has run", async () => (await noteOf("o1")) !== null);
  expect(await noteOf("o1")).toEqual({ id, attempt: 1 });
  await untilState(id, "done");
  expect(await jobOf(id)).toMatchObject({ name: "charge", data: { orderId: "o1" }, attempt: 1, error: null });
  await until("it is logged", () => /charging/.test(platform.stdout() + platform.stderr()));
});

test("[JB20] delay, at and key; an undeclared name is 404; data is any JSON without a schema", async () => {
  const first = await enqueue("any", [1, { a: null }], { delay: 3600, key: "k" });
  expect(await enqueue("any", "other", { key: "k" })).toBe(first);
  const { state, dueAt, createdAt } = (await jobOf(first)) ?? {};
  expect(state).toBe("waiting");
  expect(Date.parse(dueAt ?? "") - Date.parse(createdAt ?? "")).toBe(3_600_000);
  await untilState(await enqueue("any", 5, { at: "date" }), "done");
  expect(await noteOf("any")).toBe(5);
  expect((await insert("charged", {})).status).toBe(404);
  expect(await insert("any", null, { delay: -1 })).toMatchObject({ status: 400, body: { data: { delay: {} } } });
});

test("[JB20] an option that there is not is refused by name", async () => {
  const unknown = { code: "unknown_field" };
  const others = { retries: 9, group: "g", id: "own" };
  expect(await insert("any", null, { key: "k", ...others })).toMatchObject({
    status: 400,
    body: { data: { retries: unknown, group: unknown, id: unknown } },
  });
});

test("[JB21] data that the schema refuses is 400, and names each field", async () => {
  const refused = async (data?: JsonValue) => {
    const { status, body } = await insert("charge", data);
    return [status, (body as unknown as { data?: Record<string, { code: string }> }).data];
  };
  const required = { "data.orderId": { code: "required", message: "data.orderId is required" } };
  expect(await refused({})).toEqual([400, required]);
  expect(await refused(undefined)).toMatchObject([400, { data: { code: "required" } }]);
  expect(await refused({ orderId: "", email: "nobody" })).toMatchObject([
    400,
    { "data.orderId": { code: "required" }, "data.email": { code: "pattern_mismatch" } },
  ]);
  expect(await refused({ orderId: "a", count: "5" })).toMatchObject([400, { "data.count": { code: "invalid_type" } }]);
  expect(await refused({ orderId: "a", extra: 1 })).toMatchObject([400, { "data.extra": { code: "unknown_field" } }]);
  expect(await refused({ orderId: "a", day: "2026-13-01" })).toMatchObject([400, { "data.day": {} }]);
  const good = { orderId: "a", email: "a@example.org", count: 5, day: "2026-11-01" };
  await untilState(await enqueue("charge", good), "done");
});

test("[JB21] a schema with types that JSON does not have is refused when the config is loaded", async () => {
  const config = CONFIG(`a: { data: { type: "object", properties: { at: { type: "Date" } } }, run() {} }`);
  const failure = await testPlatform({ config }).then(
    (started) => started.stop().then(() => "started"),
    (cause: Error) => cause.message,
  );
  expect(failure).toContain('jobs.a.data: must be a schema such as t.Object({ … }): it has the type "Date"');
});

test("[JB30] jobs are listed newest first, by name and state, page by page", async () => {
  const ids: string[] = [];
  for (let index = 0; index < 5; index++) ids.unshift(await enqueue("any", index, { delay: 3600 + index }));
  const first = await list("?name=any&state=waiting&limit=2");
  expect(first.jobs.map(({ id }) => id)).toEqual(ids.slice(0, 2));
  const second = await list(`?name=any&state=waiting&limit=2&cursor=${first.cursor}`);
  expect(second.jobs.map(({ id }) => id)).toEqual(ids.slice(2, 4));
  const failed = await enqueue("fails");
  await untilState(failed, "failed");
  const ofState = await list("?state=failed");
  expect(ofState.jobs.map(({ id }) => id)).toEqual([failed]);
  expect(ofState.cursor).toBe(null);
  expect(ofState.jobs[0]).toMatchObject({ error: "no luck", attempt: 1, finishedAt: expect.any(String) });
  const all = await list("?limit=200");
  expect(all.jobs[0]?.id).toBe(failed);
  expect([...all.jobs].sort((one, other) => (one.createdAt < other.createdAt ? 1 : -1)).map(({ id }) => id)).toEqual(
    all.jobs.map(({ id }) => id),
  );
  expect((await platform.service.get("/api/admin/jobs?cursor=zzz")).status).toBe(400);
  expect((await platform.service.get("/api/admin/jobs?state=lost")).status).toBe(400);
  expect((await platform.service.get("/api/admin/jobs?nam=any")).status).toBe(400);
});

test("[JB30] a page ends early after 2 MiB of data, and the next one continues", async () => {
  const large = "x".repeat(900 * 1024);
  for (let index = 0; index < 4; index++) await enqueue("any", large, { delay: 9000 });
  const page = await list("?name=any&limit=4");
  expect(page.jobs.length).toBeLessThan(4);
  const next = await list(`?name=any&limit=1&cursor=${page.cursor}`);
  expect(next.jobs[0]?.data).toBe(large);
  expect(page.jobs.map(({ id }) => id)).not.toContain(next.jobs[0]?.id ?? "");
});

test("[JB5] a try that throws an error whose message is no text has failed like any other", async () => {
  const messages: JsonValue[] = [["email must be an email"], { code: 5 }, null, "throws"];
  const ids: string[] = [];
  for (const message of messages) ids.push(await enqueue("odd", message));
  for (const id of ids) await untilState(id, "failed");
  expect(await Promise.all(ids.map(async (id) => (await jobOf(id))?.error))).toEqual([
    "email must be an email",
    "[object Object]",
    "null",
    "what was thrown has no text",
  ]);
});

test("[JB31] retry, run-now and cancel, each in the states that allow it", async () => {
  const change = async (id: string, action: string) =>
    (await platform.service.post(`/api/admin/jobs/${id}/${action}`, undefined)).status;
  const failed = await enqueue("fails");
  await untilState(failed, "failed");
  const { finishedAt } = (await jobOf(failed)) ?? {};
  expect([await change(failed, "cancel"), await change(failed, "run-now")]).toEqual([409, 409]);
  expect(await change(failed, "retry")).toBe(200);
  await until("it has failed again", async () => {
    const job = await jobOf(failed);
    return job?.state === "failed" && job.finishedAt !== finishedAt;
  });

  const later = await enqueue("any", "soon", { delay: 3600 });
  expect(await change(later, "retry")).toBe(409);
  expect(await change(later, "run-now")).toBe(200);
  await untilState(later, "done");
  for (const action of ["retry", "cancel", "run-now"]) expect(await change(later, action)).toBe(409);

  const waiting = await enqueue("any", "never", { delay: 3600 });
  expect(await change(waiting, "cancel")).toBe(200);
  expect(await jobOf(waiting)).toMatchObject({ state: "failed", error: "Cancelled", attempt: 0 });

  const running = await enqueue("waits");
  await untilState(running, "running");
  expect([await change(running, "retry"), await change(running, "run-now")]).toEqual([409, 409]);
  expect(await change(running, "cancel")).toBe(200);
  expect(await jobOf(running)).toMatchObject({ state: "failed", error: "Cancelled", attempt: 1 });
  await until("its signal was aborted", async () => (await noteOf("aborted")) === true);
  expect(await change("unknown", "cancel")).toBe(404);
  expect((await platform.service.post(`/api/admin/jobs/${running}/retry?force=1`, undefined)).status).toBe(400);
});

test("[JB35] a job of the config is run again with other data, as a new job, whatever the state of the first", async () => {
  const again = (id: string, body: JsonValue | undefined, client: Pick<TestPlatform, "post"> = platform.service) =>
    client.post<{ id: string; message: string; data: JsonObject }>(`/api/admin/jobs/${id}/run-again`, body);
  const first = await enqueue("charge", { orderId: "again-1" });
  await untilState(first, "done");
  const added = await again(first, { data: { orderId: "again-2" } });
  expect(added.status).toBe(200);
  await untilState(added.body.id, "done");
  expect(await jobOf(added.body.id)).toMatchObject({ name: "charge", data: { orderId: "again-2" } });
  expect(await jobOf(first)).toMatchObject({ state: "done", data: { orderId: "again-1" } });
  // The data is checked as by enqueue, and nothing is added.
  for (const data of [{}, { orderId: "" }, { orderId: "x", more: 1 }, null]) {
    expect([data, (await again(first, { data })).status]).toEqual([data, 400]);
  }
  expect((await again(first, { data: { orderId: "x" }, delay: 5 })).status).toBe(400);
  expect((await again("unknown", { data: null })).status).toBe(404);
  // Rights come first.
  const [reader, writer] = [
    platform.withKey("reads-charges-0123456789"),
    platform.withKey("writes-charges-0123456789"),
  ];
  expect((await again(first, { data: { orderId: "x" } }, platform)).status).toBe(401);
  expect((await again(first, { wrong: true }, reader)).status).toBe(403);
  const other = await enqueue("any", "of another name");
  expect((await again(other, { data: 1 }, writer)).status).toBe(404);
  expect((await again(first, { data: { orderId: "again-3" } }, writer)).status).toBe(200);
  type Entries = { entries: { target: string; after: JsonObject }[] };
  const { body } = await platform.service.get<Entries>("/api/admin/audit?action=job.run-again");
  expect(body.entries.map(({ after }) => after)).toEqual([
    { data: { orderId: "again-3" }, from: first },
    { data: { orderId: "again-2" }, from: first },
  ]);
});

test("[JB35] the server's own jobs are not run with other data", async () => {
  await platform.service.post("/api/auth/admin/users/invite", { email: "invited@example.com" });
  type Jobs = { jobs: { id: string; name: string }[] };
  const { body } = await platform.service.get<Jobs>("/api/admin/jobs?name=platform.mail");
  const [mail] = body.jobs;
  const answer = await platform.service.post<{ message: string }>(`/api/admin/jobs/${mail?.id}/run-again`, {
    data: {},
  });
  expect([answer.status, answer.body.message]).toEqual([409, expect.stringContaining("platform.mail")] as never);
});

test("[JB31] a cancelled job whose run ignores the signal is 409 at a retry, until the run has ended", async () => {
  const retry = async (id: string) => (await platform.service.post(`/api/admin/jobs/${id}/retry`, undefined)).status;
  const deaf = await enqueue("deaf");
  await until("it runs", async () => (await noteOf("deaf")) === 1);
  expect((await platform.service.post(`/api/admin/jobs/${deaf}/cancel`, undefined)).status).toBe(200);
  expect([await retry(deaf), (await jobOf(deaf))?.state, await noteOf("deaf")]).toEqual([409, "failed", 1]);
  await platform.service.post("/api/kv/notes", { action: "set", key: "heard", value: true });
  await until("its run has ended", async () => (await noteOf("deaf")) === 0);
  await until("it may be tried again", async () => (await retry(deaf)) === 200);
  await untilState(deaf, "done");
});

test("[JB31] a key that another job has taken is 409 at a retry", async () => {
  const failed = await enqueue("fails", null, { key: "same" });
  await untilState(failed, "failed");
  const other = await enqueue("fails", null, { key: "same", delay: 3600 });
  expect(other).not.toBe(failed);
  expect((await platform.service.post(`/api/admin/jobs/${failed}/retry`, undefined)).status).toBe(409);
});

test("[JB32] keys see and change the jobs that their scopes name", async () => {
  const charge = await enqueue("charge", { orderId: "scoped" });
  const any = await enqueue("any", 1, { delay: 3600 });
  await untilState(charge, "done");
  const [reader, writer, other] = [
    "reads-charges-0123456789",
    "writes-charges-0123456789",
    "reads-tables-0123456789",
  ].map((key) => platform.withKey(key));
  if (reader === undefined || writer === undefined || other === undefined) throw new Error("a key is missing");
  expect((await platform.get("/api/admin/jobs")).status).toBe(401);
  expect((await other.get("/api/admin/jobs")).status).toBe(403);
  expect((await writer.get("/api/admin/jobs")).status).toBe(403);
  expect(new Set((await list("?limit=200", reader)).jobs.map(({ name }) => name))).toEqual(new Set(["charge"]));
  expect((await list("?name=charge&state=done", reader)).jobs.map(({ id }) => id)).toContain(charge);
  expect((await reader.get("/api/admin/jobs?name=any")).status).toBe(403);
  const retry = (client: typeof reader, id: string) =>
    client.post(`/api/admin/jobs/${id}/cancel`, undefined).then(({ status }) => status);
  expect(await retry(platform, any)).toBe(401);
  expect(await retry(reader, charge)).toBe(403);
  expect(await retry(writer, charge)).toBe(409);
  expect([await retry(writer, any), await retry(writer, "unknown")]).toEqual([404, 404]);
  expect((await jobOf(any))?.state).toBe("waiting");
});

test("[JB33] the metrics count jobs by name", async () => {
  const text = (await platform.service.get<{ text: string }>("/metrics")).body.text;
  const waiting = (await list("?name=fails&state=waiting&limit=200")).jobs.length;
  expect(waiting).toBeGreaterThan(0);
  expect(text).toContain(`platform_jobs_waiting{name="fails"} ${waiting}\n`);
  expect(text).toContain('platform_jobs_running{name="any"} 0\n');
  expect(text).toMatch(/platform_jobs_failed_total\{name="fails"\} [1-9]/);
  expect(text).toContain('platform_jobs_oldest_waiting_seconds{name="any"} 0\n');
});

test("[JB22] [JB11] jobs survive a SIGKILL; those whose name left the config wait until it is back", async () => {
  const after = await enqueue("charge", { orderId: "after" }, { delay: 1 });
  const running = await enqueue("waits");
  await untilState(running, "running");
  await platform.kill("SIGKILL");
  await platform.restart({ config: CONFIG("any: { run() {} }") });
  await until("it has run again", async () => (await jobOf(running))?.state === "waiting");
  expect(await jobOf(running)).toMatchObject({ attempt: 1, error: "The server ended while the job was running" });
  expect((await insert("charge", { orderId: "b" })).status).toBe(404);
  expect((await jobOf(after))?.state).toBe("waiting");
  await platform.restart({ config: CONFIG(JOBS) });
  await untilState(after, "done");
  expect(await noteOf("after")).toEqual({ id: after, attempt: 1 });
  await until("it runs again", async () => (await jobOf(running))?.attempt === 2);
});

test("[JB10] a stop ends running jobs by their signal, and they run again after the next start", async () => {
  const running = await enqueue("waits");
  await untilState(running, "running");
  await platform.restart();
  await until("it runs again", async () => {
    const job = await jobOf(running);
    return job?.state === "running" && job.attempt === 2;
  });
});
