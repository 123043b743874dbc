import { expect, test } from "bun:test";
import { settle, testClock } from "../../../../tests/support/clock.ts";
import type { Logger } from "../../../kernel/logger.ts";
import { ANONYMOUS, type Principal } from "../../access/principal.ts";
import { bucketOf } from "./latency-buckets.ts";
import {
  DROP_REPORT_INTERVAL_MS,
  WAITING_EVENTS_MAX,
  WAITING_EVENTS_MAX_BYTES,
  WAITING_EVENTS_SOFT_MAX,
  WAITING_REQUEST_ROWS_MAX,
  WRITE_DELAY_MS,
  WRITE_RETRY_MS,
  WRITE_STEP_LENGTH,
  WRITE_STEP_ROWS,
} from "./limits.ts";
import type { LatencyRow, RequestRow, TrackedEvent } from "./model.ts";
import { createRecording } from "./recording.ts";
import type { AnalyticsStore } from "./store.ts";
import { createTargets } from "./targets.ts";

const targets = createTargets({ databases: { shared: { tables: { posts: {} } } }, kv: { cache: {} } });

/** Creates a recording whose store keeps its input and can be made to fail. */
function world() {
  const clock = testClock();
  const written = { events: [] as TrackedEvent[][], requests: [] as RequestRow[][], latencies: [] as LatencyRow[] };
  const logged: string[] = [];
  const log = (message: string): void => void logged.push(message);
  const logger: Logger = { info: log, warn: log, error: log };
  const state = { isBroken: false };
  const store: AnalyticsStore = {
    async insertEvents(events) {
      if (state.isBroken) throw new Error("no space left");
      written.events.push([...events]);
    },
    async insertRequests(rows) {
      if (state.isBroken) throw new Error("no space left");
      written.requests.push([...rows]);
    },
    async insertLatencies(rows) {
      if (state.isBroken) throw new Error("no space left");
      written.latencies.push(...rows);
    },
  };
  const recording = createRecording({
    store,
    targets,
    slow: { fromMs: 500, record() {}, async write() {} },
    clock,
    logger,
  });
  const answer = (
    route: string | null,
    options: { status?: number; principal?: Principal; durationMs?: number; params?: Record<string, string> } = {},
  ) =>
    recording.onAnswer({
      request: new Request("http://localhost/"),
      requestId: "r1",
      params: {},
      trace: null,
      route,
      status: 200,
      durationMs: 1,
      principal: ANONYMOUS,
      ...options,
    });
  return { clock, written, logged, state, recording, answer };
}

const event = (name: string, properties = "{}"): TrackedEvent => ({ name, timestamp: 0, userId: null, properties });
const userOf = (id: string): Principal => ({
  kind: "user",
  sessionId: "s",
  auth: {
    id,
    email: null,
    emailVerified: false,
    role: "user",
    isAnonymous: false,
    custom: {},
    phone: null,
    invitation: null,
  },
});

test("[AN5] waiting events are written together, within the delay of the first", async () => {
  const { clock, written, recording } = world();
  await recording.accept([event("a")]);
  clock.advance(WRITE_DELAY_MS - 1);
  await recording.accept([event("b")]);
  expect(written.events).toEqual([]);
  await clock.advanceAsync(1);
  expect(written.events.flat().map(({ name }) => name)).toEqual(["a", "b"]);
  expect(clock.waiting).toBe(0);
});

test("[AN5] when many are waiting they are written at once, and the sender waits for it", async () => {
  const { written, recording } = world();
  expect(recording.accept([event("a")])).toBeUndefined();
  await recording.accept(Array.from({ length: WAITING_EVENTS_SOFT_MAX }, () => event("a")));
  expect(written.events.flat()).toHaveLength(WAITING_EVENTS_SOFT_MAX + 1);
});

test("[AN5] many events are written in steps of bounded size", async () => {
  const { written, recording } = world();
  await recording.accept(Array.from({ length: 2 * WRITE_STEP_ROWS + 1 }, () => event("a")));
  await recording.flush();
  expect(written.events.map(({ length }) => length)).toEqual([WRITE_STEP_ROWS, WRITE_STEP_ROWS, 1]);
  const large = event("b", "x".repeat(WRITE_STEP_LENGTH / 2));
  await recording.accept([large, large, large]);
  await recording.flush();
  expect(written.events.slice(3).map(({ length }) => length)).toEqual([2, 1]);
});

test("[AN5] above the bounds a request is 503, and none of its events is accepted", async () => {
  const { clock, written, state, recording } = world();
  const full = expect.objectContaining({ status: 503 });
  const attempt = (events: readonly TrackedEvent[]) => (async () => recording.accept(events))();
  state.isBroken = true;
  await attempt(Array.from({ length: WAITING_EVENTS_MAX - 1 }, () => event("a")));
  expect(await attempt([event("b"), event("b")]).catch((cause: unknown) => cause)).toEqual(full);
  await attempt([event("b")]);
  state.isBroken = false;
  await clock.advanceAsync(WRITE_RETRY_MS);
  expect(written.events.flat()).toHaveLength(WAITING_EVENTS_MAX);

  const large = event("c", "x".repeat(4096));
  const fitting = Math.floor(WAITING_EVENTS_MAX_BYTES / (2 * 4097 + 64));
  state.isBroken = true;
  await attempt(Array.from({ length: fitting }, () => large));
  expect(await attempt([large]).catch((cause: unknown) => cause)).toEqual(full);
});

test("[AN5] a failed write of events is retried and logged once", async () => {
  const { clock, written, logged, state, recording } = world();
  state.isBroken = true;
  await recording.accept([event("a")]);
  await clock.advanceAsync(WRITE_DELAY_MS);
  await clock.advanceAsync(3 * WRITE_RETRY_MS);
  expect([written.events, logged]).toEqual([[], ["analytics: write failed"]]);
  state.isBroken = false;
  await clock.advanceAsync(WRITE_RETRY_MS);
  expect(written.events.flat()).toEqual([event("a")]);
  expect(clock.waiting).toBe(0);
});

test("[AN5] a stop writes waiting events and logs how many it could not write", async () => {
  const { clock, written, recording } = world();
  await recording.accept([event("a")]);
  await recording.stop();
  expect(written.events.flat()).toEqual([event("a")]);
  expect(clock.waiting).toBe(0);

  const failing = world();
  failing.state.isBroken = true;
  await failing.recording.accept([event("a")]);
  await failing.recording.stop();
  expect(failing.logged.at(-1)).toMatch(/events were lost/);
  expect(failing.clock.waiting).toBe(0);
});

test("[AN9] requests of one second with the same endpoint, status and user share a row", async () => {
  const { clock, written, recording, answer } = world();
  const second = clock.now() / 1000;
  answer("/api/kv/:namespace", { durationMs: 1.5 });
  answer("/api/kv/:namespace", { durationMs: 2 });
  answer("/api/kv/:namespace", { status: 404 });
  answer("/api/kv/:namespace", { principal: userOf("ann") });
  answer("/api/db/:namespace/tables/:table/", { principal: userOf("ann") });
  answer(null, { status: 404 });
  clock.advance(1000);
  await recording.flush();
  answer("/api/kv/:namespace");
  answer("/api/kv/:namespace");
  await recording.flush();
  const row = {
    second,
    method: "GET",
    route: "/api/kv/:namespace",
    category: "kv",
    target: "",
    status: 200,
    userId: "",
  };
  expect(written.requests.flat()).toEqual([
    { ...row, requests: 2, durationUs: 3500 },
    { ...row, status: 404, requests: 1, durationUs: 1000 },
    { ...row, userId: "ann", requests: 1, durationUs: 1000 },
    { ...row, route: "/api/db/:namespace/tables/:table", category: "db", userId: "ann", requests: 1, durationUs: 1000 },
    { ...row, route: "(none)", category: "other", status: 404, requests: 1, durationUs: 1000 },
    { ...row, second: second + 1, requests: 2, durationUs: 2000 },
  ] as RequestRow[]);
});

test("[AN9] requests above the bound, or that could not be written, are counted and logged", async () => {
  const { clock, written, logged, state, recording, answer } = world();
  for (let at = 0; at < WAITING_REQUEST_ROWS_MAX; at++) answer("/api/config", { principal: userOf(`user-${at}`) });
  answer("/api/config", { principal: userOf("one too many") });
  answer("/api/config", { principal: userOf("user-0") });
  expect(recording.droppedRequests).toBe(1);
  await recording.flush();
  expect(written.requests.flat()).toHaveLength(WAITING_REQUEST_ROWS_MAX);
  expect(logged).toEqual(["analytics: requests were dropped from the request log"]);

  state.isBroken = true;
  answer("/api/config");
  answer("/api/config");
  await recording.flush();
  await settle();
  expect(recording.droppedRequests).toBe(3);
  expect(logged.slice(1)).toEqual(["analytics: write failed"]);
  await clock.advanceAsync(DROP_REPORT_INTERVAL_MS);
  expect(logged.slice(2)).toEqual(["analytics: requests were dropped from the request log"]);
  await recording.stop();
  expect(clock.waiting).toBe(0);
});

test("[AN101] targets are counted apart, and names that the config does not declare have none", async () => {
  const { written, recording, answer } = world();
  const table = "/api/db/:namespace/tables/:table";
  answer(table, { params: { namespace: "shared", table: "posts" } });
  answer("/api/db/:namespace/:instance/tables/:table", {
    params: { namespace: "shared", instance: "a", table: "posts" },
  });
  for (const invented of ["a", "b", "c"]) answer(table, { params: { namespace: "shared", table: invented } });
  answer("/api/kv/:namespace", { params: { namespace: "cache" } });
  answer("/api/functions/hello/:name", { params: {} });
  await recording.flush();
  expect(written.requests.flat().map(({ route, target, requests }) => [route, target, requests])).toEqual([
    [table, "shared.posts", 1],
    ["/api/db/:namespace/:instance/tables/:table", "shared.posts", 1],
    [table, "", 3],
    ["/api/kv/:namespace", "cache", 1],
    ["/api/functions/hello/:name", "hello", 1],
  ]);
});

test("[AN102] a histogram is of one minute and endpoint, whatever users and statuses its requests have", async () => {
  const { clock, written, recording, answer } = world();
  const minute = Math.floor(clock.now() / 60_000);
  answer("/api/config", { durationMs: 2 });
  answer("/api/config", { durationMs: 2, status: 404, principal: userOf("ann") });
  answer("/api/config", { durationMs: 900 });
  clock.advance(60_000);
  answer("/api/config", { durationMs: 2 });
  await recording.flush();
  await recording.flush();
  expect(written.latencies.map((row) => [row.minute, row.bucket, row.requests])).toEqual([
    [minute, bucketOf(2_000), 2],
    [minute, bucketOf(900_000), 1],
    [minute + 1, bucketOf(2_000), 1],
  ]);
});
