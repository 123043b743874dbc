import { afterAll, beforeAll, expect, test } from "bun:test";
import { mkdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { Webhook } from "standardwebhooks";
import type { JsonObject } from "../../../src/kernel/json/json.ts";
import { SERVICE_KEY, testClock, until } from "../../support/index.ts";
import { type TimedPlatform, timedPlatform } from "../../support/timed-platform.ts";

const SECRET = `whsec_${Buffer.alloc(32, 7).toString("base64")}`;
const HOUR_MS = 3_600_000;
/** The time that passes while a test waits, in which outboxes are emptied step by step. */
const STEP_MS = 25;

interface Received {
  path: string;
  headers: Record<string, string>;
  body: string;
  payload: JsonObject & {
    type: string;
    timestamp: string;
    data: { before: JsonObject | null; after: JsonObject | null; instanceId: string | null };
  };
}

const received: Received[] = [];
/** Answers of the receiver by path; 204 by default. */
const answers = new Map<string, () => Response | Promise<Response>>();
let atOnce = 0;
let mostAtOnce = 0;

const receiver = Bun.serve({
  port: 0,
  async fetch(request) {
    const { pathname: path } = new URL(request.url);
    const body = await request.text();
    received.push({ path, headers: Object.fromEntries(request.headers), body, payload: JSON.parse(body) });
    atOnce += 1;
    mostAtOnce = Math.max(mostAtOnce, atOnce);
    try {
      return (await answers.get(path)?.()) ?? new Response(null, { status: 204 });
    } finally {
      atOnce -= 1;
    }
  },
});

const url = (path: string) => `http://127.0.0.1:${receiver.port}${path}`;
const table = (name: string) => ({ on: { table: `shared.${name}` }, secret: SECRET });
const open = { read: true, insert: true, update: true, delete: true };
const tables = Object.fromEntries(
  ["plain", "retried", "many", "full", "gone", "long"].map((name) => [name, { access: open }]),
);

const config = () => ({
  databases: {
    shared: { tables },
    spaces: { instance: true, access: { create: true, open: true }, tables: { plain: { access: open } } },
  },
  auth: {},
  webhooks: {
    plain: {
      ...table("plain"),
      url: url("/plain?token=in-address"),
      headers: { Authorization: "Bearer in-header", "X-Own": 'key="a/b c"' },
    },
    paid: { ...table("plain"), url: url("/paid"), filter: [["status", "==", "paid"]] as const },
    space: { on: { table: "spaces.plain" }, secret: SECRET, url: url("/space") },
    accounts: { on: { auth: ["signup"] as const }, secret: SECRET, url: url("/accounts") },
    retried: { ...table("retried"), url: url("/retried") },
    many: { ...table("many"), url: url("/many") },
    full: { ...table("full"), url: url("/full") },
    gone: { ...table("gone"), url: url("/gone") },
    long: { ...table("long"), url: url("/long") },
  },
});

const logged: string[] = [];
const log = (...entry: unknown[]) => void logged.push(JSON.stringify(entry));
const logger = { debug: log, info: log, warn: log, error: log };
const clock = testClock();
let platform: TimedPlatform;

beforeAll(async () => {
  platform = await timedPlatform(config(), { clock, logger });
});
afterAll(async () => {
  await platform.stop();
  await receiver.stop(true);
});

const at = (path: string) => received.filter((one) => one.path === path);
/** Waits for deliveries. What a change sets off is passed to the queue in steps, between which a little time passes. */
const arrived = (path: string, count: number) =>
  until(`${count} at ${path}`, () => {
    if (at(path).length < count) clock.advance(STEP_MS);
    return at(path).length >= count;
  });
const P = (name: string) => `/api/db/shared/tables/${name}`;
const service = { headers: { "x-platform-service-key": SERVICE_KEY } };

interface Answer {
  status: number;
  contentType: string | null;
  body: string;
  isCut: boolean;
}
interface JobsAnswer {
  jobs: (JsonObject & {
    id: string;
    state: string;
    attempt: number;
    error: string | null;
    dueAt: string;
    answer: Answer | null;
  })[];
}
const jobs = async (name: string) =>
  (await platform.get<JobsAnswer>(`/api/admin/jobs?name=webhook:${name}`, service)).body.jobs;

/** Waits until a delivery has failed its try, and lets the delay of the next one pass. */
async function nextTry(name: string, attempt: number): Promise<number> {
  const failed = async () => (await jobs(name)).find((job) => job.attempt === attempt && job.state === "waiting");
  await until(`try ${attempt} of ${name} has failed`, async () => (await failed()) !== undefined);
  const delayMs = Date.parse((await failed())?.dueAt ?? "") - clock.now();
  clock.advance(delayMs);
  return delayMs;
}

test("[WH2] [WH3] a change is sent with its record, signed so that the library of Standard Webhooks accepts it", async () => {
  const changedAt = clock.now();
  const { body } = await platform.post(P("plain"), { id: "a", title: "A", status: "paid" });
  await platform.patch(`${P("plain")}/a`, { title: "B", status: "open" });
  await platform.post("/api/db/spaces/x/tables/plain", { id: "s" });
  await platform.post("/api/auth/signup", { email: "a@example.com", password: "correct horse battery" });
  await arrived("/plain", 2);
  const [first, second] = at("/plain").toSorted((one, other) => (one.payload.type < other.payload.type ? -1 : 1));
  expect(first?.payload).toEqual({
    type: "shared.plain.insert",
    timestamp: new Date(changedAt).toISOString(),
    data: { before: null, after: body, instanceId: null },
  });
  expect(second?.payload).toMatchObject({
    type: "shared.plain.update",
    data: { before: { title: "A" }, after: { title: "B" } },
  });
  const headers = first?.headers ?? {};
  expect(headers).toMatchObject({ authorization: "Bearer in-header", "content-type": "application/json" });
  // The library compares the timestamp with the real time: the signature is checked for the time that it names.
  const sentAt = new Date(Number(headers["webhook-timestamp"]) * 1_000);
  const expected = new Webhook(SECRET).sign(headers["webhook-id"] ?? "", sentAt, first?.body ?? "");
  expect(headers["webhook-signature"]).toBe(expected);
  expect(sentAt.getTime()).toBeWithin(Math.floor(changedAt / 1_000) * 1_000, clock.now() + 1);
  await arrived("/paid", 1);
  await arrived("/space", 1);
  await arrived("/accounts", 1);
  expect(at("/paid").map(({ payload }) => payload.type)).toEqual(["shared.plain.insert"]);
  expect(at("/space")[0]?.payload).toMatchObject({ type: "spaces.plain.insert", data: { instanceId: "x" } });
  expect(at("/accounts")[0]?.payload).toMatchObject({
    type: "auth.signup",
    data: { after: { email: "a@example.com" } },
  });
});

test("[WH4] [WH6] other statuses, redirects and silence are tried again with the same id and body, and hold back nothing", async () => {
  const silent = Promise.withResolvers<Response>();
  const failing = [
    () => new Response("no", { status: 500 }),
    () => Response.redirect(url("/elsewhere"), 302),
    () => silent.promise,
  ];
  answers.set("/retried", () => failing.shift()?.() ?? new Response("fine", { status: 299 }));
  await platform.post(P("retried"), { id: "r" });
  await arrived("/retried", 1);
  expect(await nextTry("retried", 1)).toBeWithin(0.8 * 5_000, 5_000 + 1);
  await arrived("/retried", 2);
  expect(await nextTry("retried", 2)).toBeWithin(0.8 * 10_000, 10_000 + 1);
  await arrived("/retried", 3);
  // A later delivery is sent while the third try hangs.
  await platform.post(P("retried"), { id: "later" });
  await arrived("/retried", 4);
  clock.advance(15_000);
  await nextTry("retried", 3);
  await arrived("/retried", 5);
  silent.resolve(new Response());
  const tries = at("/retried").filter(({ payload }) => payload.data.after?.["id"] === "r");
  expect(tries.length).toBe(4);
  expect(new Set(tries.map(({ headers, body }) => `${headers["webhook-id"]} ${body}`)).size).toBe(1);
  expect(new Set(tries.map(({ headers }) => headers["webhook-timestamp"])).size).toBe(4);
  expect(at("/elsewhere")).toEqual([]);
  await until("both are done", async () => (await jobs("retried")).every(({ state }) => state === "done"));
});

test("[WH6] at most 10 deliveries of a webhook are under way at once", async () => {
  const release = Promise.withResolvers<void>();
  answers.set("/many", () => release.promise.then(() => new Response()));
  mostAtOnce = 0;
  await platform.post(`${P("many")}/batch`, {
    inserts: Array.from({ length: 25 }, (_, index) => ({ id: `m${index}` })),
  });
  await arrived("/many", 10);
  expect((await jobs("many")).filter(({ state }) => state === "running").length).toBe(10);
  release.resolve();
  await arrived("/many", 25);
  expect(mostAtOnce).toBe(10);
});

test("[WH7] 410 that cannot be written down, as on a full disk, is asked for again until it is", async () => {
  answers.set("/full", () => new Response(null, { status: 410 }));
  const inTheWay = join(platform.dataDirectory, "webhooks.json", "in the way");
  mkdirSync(inTheWay, { recursive: true });
  await platform.post(P("full"), { id: "f1" });
  await until("the try has failed", async () => {
    clock.advance(STEP_MS);
    return typeof (await jobs("full"))[0]?.error === "string";
  });
  rmSync(join(platform.dataDirectory, "webhooks.json"), { recursive: true });
  await nextTry("full", 1);
  await until("the delivery has failed", async () => (await jobs("full"))[0]?.state === "failed");
  await platform.stop();
  platform = await timedPlatform(config(), { clock, logger, dataDirectory: platform.dataDirectory });
  await platform.post(P("full"), { id: "f2" });
  await until("the next one has failed", async () => {
    clock.advance(STEP_MS);
    return (await jobs("full")).filter(({ state }) => state === "failed").length === 2;
  });
  expect(at("/full").map(({ payload }) => payload.data.after?.["id"])).toEqual(["f1", "f1"]);
});

test("[WH7] 410 ends the deliveries until one is retried or the config changes, also over a restart", async () => {
  answers.set("/gone", () => new Response(null, { status: 410 }));
  const failed = async (count: number) =>
    until(`${count} have failed`, async () => {
      clock.advance(STEP_MS);
      return (await jobs("gone")).filter(({ state }) => state === "failed").length === count;
    });
  await platform.post(P("gone"), { id: "g1" });
  await failed(1);
  await platform.post(P("gone"), { id: "g2" });
  await failed(2);
  expect(at("/gone").length).toBe(1);
  for (const { error } of await jobs("gone")) expect(error).toContain("410 Gone");

  const { dataDirectory } = platform;
  await platform.stop();
  platform = await timedPlatform(config(), { clock, logger, dataDirectory });
  await platform.post(P("gone"), { id: "g3" });
  await failed(3);
  expect(at("/gone").length).toBe(1);

  answers.delete("/gone");
  const second = (await jobs("gone")).find((job) => JSON.stringify(job).includes('"g2"'));
  await platform.post(`/api/admin/jobs/${second?.id}/retry`, undefined, service);
  await arrived("/gone", 2);
  await platform.post(P("gone"), { id: "g4" });
  await arrived("/gone", 3);
  expect(at("/gone").map(({ payload }) => payload.data.after?.["id"])).toEqual(["g1", "g2", "g4"]);

  answers.set("/gone", () => new Response(null, { status: 410 }));
  await platform.post(P("gone"), { id: "g5" });
  await failed(3);
  await platform.stop();
  const changed = config();
  platform = await timedPlatform(
    { ...changed, webhooks: { ...changed.webhooks, gone: { ...changed.webhooks.gone, url: url("/moved") } } },
    { clock, logger, dataDirectory },
  );
  await platform.post(P("gone"), { id: "g6" });
  await arrived("/moved", 1);
});

test("[WH8] of an endless answer the beginning is read", async () => {
  let isCancelled = false;
  answers.set("/long", () => {
    const endless = new ReadableStream({
      pull: (controller) => controller.enqueue(new Uint8Array(65_536)),
      cancel() {
        isCancelled = true;
      },
    });
    return new Response(endless);
  });
  await platform.post(P("long"), { id: "l" });
  await arrived("/long", 1);
  await until("it is delivered", async () => (await jobs("long"))[0]?.state === "done");
  await until("the answer is broken off", () => isCancelled);
  expect((await jobs("long"))[0]?.answer).toEqual({
    status: 200,
    contentType: null,
    body: "\0".repeat(4096),
    isCut: true,
  });
});

test("[WH8] a body that does not come does not hold its delivery", async () => {
  answers.set("/long", () => {
    const waiting = new ReadableStream({
      start: (controller) => controller.enqueue(new TextEncoder().encode("first")),
    });
    return new Response(waiting, { headers: { "content-type": "text/plain" } });
  });
  await platform.post(P("long"), { id: "slow" });
  await arrived("/long", 2);
  const first = async () => (await jobs("long"))[0];
  await until("it is delivered", async () => {
    clock.advance(STEP_MS);
    return (await first())?.state === "done";
  });
  expect(await first()).toMatchObject({
    error: null,
    answer: { status: 200, contentType: "text/plain", body: "first", isCut: true },
  });
});

test("[WH8] a compressed body is not decompressed: a few bytes could become gigabytes", async () => {
  const before = at("/long").length;
  answers.set("/long", () => new Response("this is not compressed", { headers: { "content-encoding": "br" } }));
  await platform.post(P("long"), { id: "compressed" });
  await arrived("/long", before + 1);
  const first = async () => (await jobs("long"))[0];
  await until("the try has ended", async () => (await first())?.state !== "running");
  expect(at("/long").at(-1)?.headers["accept-encoding"]).toBe("identity");
  expect(await first()).toMatchObject({ state: "done", answer: { status: 200, body: "", isCut: true } });
});

test("[WH10] [JB34] the latest answer is kept; secrets that it repeats are hidden", async () => {
  const echo = (status: number) => () => {
    const { headers } = at("/plain").at(-1) ?? { headers: {} };
    const body = JSON.stringify({
      status,
      url: url("/plain?token=in-address"),
      token: "in-address",
      secret: SECRET,
      headers,
    });
    return new Response(body, { status, headers: { "content-type": "application/json; charset=utf-8" } });
  };
  const before = at("/plain").length;
  answers.set("/plain", echo(500));
  await platform.post(P("plain"), { id: "echoed", status: "open" });
  await arrived("/plain", before + 1);
  const delivery = async () => (await jobs("plain"))[0];
  await until("it has failed", async () => (await delivery())?.error !== null);
  expect((await delivery())?.answer).toMatchObject({ status: 500, contentType: "application/json", isCut: false });
  answers.set("/plain", echo(202));
  await nextTry("plain", 1);
  await until("it is delivered", async () => (await delivery())?.state === "done");
  const answer = (await delivery())?.answer;
  expect(answer?.status).toBe(202);
  expect(JSON.parse(answer?.body ?? "")).toMatchObject({
    status: 202,
    url: "[hidden]",
    token: "[hidden]",
    secret: "[hidden]",
    headers: { authorization: "[hidden]", "x-own": "[hidden]" },
  });
  // As some write JSON.
  const echoed = echo(202);
  answers.set("/plain", async () => new Response((await echoed().text()).replaceAll("/", "\\/")));
  await platform.post(P("plain"), { id: "escaped", status: "open" });
  await until("it is delivered", async () => {
    clock.advance(STEP_MS);
    return (await delivery())?.answer?.body.includes("application\\/json") === true;
  });
  const { url: address, headers } = JSON.parse((await delivery())?.answer?.body ?? "");
  expect([address, headers["x-own"]]).toEqual(["[hidden]", "[hidden]"]);
  // One that is cut off where the reading ends.
  answers.set("/plain", () => new Response(`${"x".repeat(4090)}${SECRET}`));
  await platform.post(P("plain"), { id: "cut", status: "open" });
  await until("it is delivered", async () => {
    clock.advance(STEP_MS);
    return (await delivery())?.answer?.body.startsWith("xxx") === true;
  });
  expect((await delivery())?.answer?.body).toBe(`${"x".repeat(4090)}[hidden]`);
  answers.delete("/plain");
});

test("[WH5] after three days the next failure is the last one", async () => {
  answers.set("/long", () => new Response(null, { status: 503 }));
  await platform.post(P("long"), { id: "never" });
  await arrived("/long", 2);
  const startedAt = clock.now();
  const delays: number[] = [];
  const isDone = async () => (await jobs("long")).some(({ state }) => state === "failed");
  for (let attempt = 1; attempt < 60 && !(await isDone()); attempt++) {
    await until(
      `try ${attempt}`,
      async () =>
        (await isDone()) || (await jobs("long")).some((job) => job.attempt === attempt && job.state === "waiting"),
    );
    if (!(await isDone())) delays.push(await nextTry("long", attempt));
  }
  // The time counts from when the queue has the delivery, some steps before it arrives.
  expect(clock.now() - startedAt).toBeWithin(72 * HOUR_MS - 60_000, 72 * HOUR_MS + 1);
  expect(Math.max(...delays)).toBeWithin(3.2 * HOUR_MS, 4 * HOUR_MS + 1);
  expect((await jobs("long")).find(({ state }) => state === "failed")?.error).toBe("The receiver answered 503");
});

test("[WH9] secrets, headers and addresses are in no list of jobs and no log", async () => {
  const listed = JSON.stringify(await Promise.all(Object.keys(config().webhooks).map(jobs)));
  expect(listed).toContain('"shared.plain.insert"');
  for (const text of [SECRET, SECRET.slice(6), "in-header", "in-address", `:${receiver.port}`]) {
    expect([text, listed.includes(text), logged.join("\n").includes(text)]).toEqual([text, false, false]);
  }
});
