import { describe, expect, test } from "bun:test";
import { readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import type { JsonObject } from "../../src/kernel/json/json.ts";
import { type TestPlatform, temporaryDirectory, testPlatform } from "../support/index.ts";
import { faultsOfFiles } from "./files.ts";
import { SimulatedDisk } from "./power/disk.ts";
import { configWith, hasTracer, places, random, record, SEED, TEXT, writeAll } from "./power/load.ts";
import { type Traced, tracedCalls } from "./power/trace.ts";

// A server works under load while every call that changes a file is recorded, with every answer that it sends. From the record,
// disks are made as power cuts would leave them at random moments: whatever was not synced may be missing, torn or in another
// order. A server that starts on such a disk has everything that was answered before the cut.

/** During a first start, which makes every file. */
const START_CUTS = 4 * Number(process.env["PLATFORM_CRASH_ROUNDS"] ?? 3);
const CUTS = 4 * Number(process.env["PLATFORM_CRASH_ROUNDS"] ?? 3);
/** Number of records, of about 1 MB each. */
const BATCHES = 40;
/** A WAL that restarts while it is written is longer. */
const RESTART_BYTES = 8 * 1024 * 1024;

const CONFIG = configWith("");

/** Writes so much into one instance that its WAL passes the length at which it restarts, and a little behind that. */
async function fillWal(platform: TestPlatform): Promise<void> {
  const path = places[1] ?? "";
  const text = TEXT.repeat(80);
  let isFull = false;
  const fill = async () => {
    for (let count = 0; count < BATCHES; count++) {
      const inserts = Array.from({ length: 10 }, (_, index) => ({ id: `1-full-${count}-${index}`, n: 1, text }));
      await platform.service.post(`${path}/batch`, { inserts });
    }
    isFull = true;
  };
  const others = async (writer: number) => {
    for (let count = 0; !isFull; count++)
      await platform.service.post(path, { id: `1-${writer}-${count}`, n: 1, text: TEXT });
  };
  await Promise.all([fill(), others(1), others(2)]);
}

/** The places of headers of WALs that are written over those of before, in files that keep their length. */
function restartsOf(calls: readonly Traced[]): number[] {
  const lengths = new Map<string, number>();
  return calls.flatMap((call, index) => {
    if (call.kind === "truncate") lengths.set(call.path, call.size);
    if (call.kind !== "write" || !call.path.endsWith("-wal") || call.offset === null) return [];
    const before = lengths.get(call.path) ?? 0;
    lengths.set(call.path, Math.max(before, call.offset + call.data.length));
    return call.offset === 0 && before > RESTART_BYTES ? [index] : [];
  });
}

/** Answered changes: the number of each record's last change, by its path; files and users by their keys. */
class Answered {
  readonly records = new Map<string, number>();
  readonly files = new Set<string>();
  readonly users = new Set<string>();
  readonly values = new Set<string>();
  readonly rows = new Set<string>();

  add(sent: Buffer): void {
    const text = sent.toString();
    const body = text.startsWith("HTTP/1.1 20") ? text.slice(text.indexOf("\r\n\r\n") + 4) : "";
    if (!body.startsWith("{")) return;
    this.#addBody(JSON.parse(body) as JsonObject);
  }

  #addBody(body: JsonObject): void {
    const { id, n, key, email, user, value, inserted, results } = body;
    if (typeof id === "string" && typeof n === "number") this.records.set(id, Math.max(n, this.records.get(id) ?? 0));
    else if (typeof email === "string") this.users.add(email);
    else if (typeof user === "object" && user !== null) this.#addBody(user as JsonObject);
    else if (typeof key === "string") this.files.add(key);
    else if (Array.isArray(inserted)) for (const one of inserted) this.#addBody(one as JsonObject);
    else if (Array.isArray(results)) for (const row of results) this.rows.add(String((row as JsonObject)["id"]));
    else if (typeof value === "object" && value !== null) this.values.add(String((value as JsonObject)["key"]));
  }
}

/** Returns the answered changes that a server lacks. */
async function missing(platform: TestPlatform, answered: Answered): Promise<string[]> {
  const lost: string[] = [];
  for (const [id, n] of answered.records) {
    const { status, body } = await platform.service.get<{ n: number }>(`${places[Number(id.split("-")[0])]}/${id}`);
    if (status !== 200 || body.n < n) lost.push(`record ${id}: ${status}, ${body.n} instead of ${n}`);
  }
  for (const key of answered.files) {
    const response = await platform.service.fetch(`/api/storage/files/${key}`);
    const text = await response.text();
    if (response.status !== 200 || !text.startsWith(key)) lost.push(`file ${key}: ${response.status}`);
  }
  for (const email of answered.users) {
    const { body } = await platform.service.get<{ users: unknown[] }>("/api/auth/admin/users", { query: { email } });
    if (body.users.length !== 1) lost.push(`user ${email}`);
  }
  for (const key of answered.values) {
    const { body } = await platform.service.post("/api/kv/cache", { action: "get", key });
    if (JSON.stringify(body["value"]) !== JSON.stringify({ key })) lost.push(`value ${key}`);
  }
  if (answered.rows.size > 0) {
    const { body } = await platform.service.post<{ results?: { id: string }[] }>("/api/d1/main", {
      query: "SELECT id FROM notes",
    });
    const found = new Set((body.results ?? []).map(({ id }) => id));
    for (const id of answered.rows) if (!found.has(id)) lost.push(`row ${id}`);
  }
  return lost;
}

/** Servers start on the disks that cuts at these moments leave. Resolves to all that was answered in the end. */
async function cutsAt(moments: ReadonlySet<number>, calls: readonly Traced[], root: string): Promise<Answered> {
  const disk = new SimulatedDisk(root);
  const answered = new Answered();
  for (const [index, call] of calls.entries()) {
    if (call.kind === "sent") answered.add(call.data);
    else disk.apply(call, call.line);
    if (!moments.has(index)) continue;
    const data = join(temporaryDirectory(), "data");
    disk.cut(data, random);
    const platform = await testPlatform({ config: CONFIG, data });
    const lost = await missing(platform, answered);
    await platform.kill("SIGTERM");
    const { faults } = faultsOfFiles(data);
    expect({ seed: SEED, index, lost, faults }).toEqual({ seed: SEED, index, lost: [], faults: [] });
    rmSync(data, { recursive: true });
  }
  return answered;
}

test("the simulated disk knows a file that is synced by the name that it is about to get", () => {
  const hex = (word: string): string => [...Buffer.from(word)].map((byte) => `\\x${byte.toString(16)}`).join("");
  const [from, to, directory, content] = ["/root/a/file", "/root/b/file", "/root/b", "content"].map(hex);
  const trace = [
    `1 open("${from}", O_WRONLY|O_CREAT) = 3<${from}>`,
    `1 write(3<${from}>, "${content}", 7) = 7`,
    `2 rename("${from}", "${to}" <unfinished ...>`,
    `1 fdatasync(3<${to}>) = 0`,
    "2 <... rename resumed>) = 0",
    `2 fsync(4<${directory}>) = 0`,
  ];
  const disk = new SimulatedDisk("/root");
  for (const call of tracedCalls(trace.join("\n"), "/root")) if (call.kind !== "sent") disk.apply(call, call.line);
  for (let cut = 0; cut < 10; cut++) {
    const data = join(temporaryDirectory(), "data");
    disk.cut(data, random);
    expect(readFileSync(join(data, "b", "file"), "utf8")).toBe("content");
  }
});

describe.if(hasTracer)("a power cut", () => {
  test("[DB25] whatever a first start has made until then, the next one starts", async () => {
    const { trace, root } = await record(async () => {}, { config: CONFIG });
    const calls = [...tracedCalls(trace, root)].filter(({ kind }) => kind !== "sent");
    const moments = new Set(Array.from({ length: START_CUTS }, () => random.below(calls.length)));
    const disk = new SimulatedDisk(root);
    for (const [index, call] of calls.entries()) {
      if (call.kind !== "sent") disk.apply(call, call.line);
      if (!moments.has(index)) continue;
      const data = join(temporaryDirectory(), "data");
      disk.cut(data, random);
      const platform = await testPlatform({ config: CONFIG, data });
      const { status } = await platform.service.post("/api/db/shared/tables/notes", { text: "first" });
      expect({ seed: SEED, index, status }).toEqual({ seed: SEED, index, status: 201 });
      await platform.kill("SIGTERM");
      expect(faultsOfFiles(data).faults).toEqual([]);
      rmSync(data, { recursive: true });
    }
  }, 600_000);

  test("[DB3] whatever of the unsynced writes the disk has kept, everything that was answered is there", async () => {
    const { trace, root } = await record(writeAll, { config: CONFIG });
    const calls = [...tracedCalls(trace, root)];
    const sentCount = calls.filter(({ kind }) => kind === "sent").length;
    expect(sentCount).toBeGreaterThan(50);
    const moments = new Set(Array.from({ length: CUTS }, () => random.below(calls.length)));
    const answered = await cutsAt(moments, calls, root);
    const { records, files, users, values, rows } = answered;
    const counts = Object.entries({ records, files, users, values, rows }).map(([name, { size }]) => [name, size]);
    console.info(`${moments.size} cuts among ${calls.length} calls; answered:`, Object.fromEntries(counts));
    // Each kind of write was tried.
    expect(counts.filter(([, size]) => size === 0)).toEqual([]);
  }, 600_000);

  test("[DB3] [DB321] the same where a WAL begins anew within its file", async () => {
    const { trace, root } = await record(fillWal, { config: CONFIG });
    const calls = [...tracedCalls(trace, root)];
    const restarts = restartsOf(calls);
    console.info(`a WAL began anew ${restarts.length} times within ${calls.length} calls`);
    expect(restarts.length).toBeGreaterThan(0);
    // Half of them while it happens, the others at any time afterwards; cuts before it have other tests.
    const [first = 0] = restarts;
    const moments = Array.from({ length: CUTS }, (_, count) => {
      const restart = restarts[count % restarts.length] ?? 0;
      return count < CUTS / 2 ? restart - 20 + random.below(60) : first + random.below(calls.length - first);
    });
    await cutsAt(new Set(moments), calls, root);
  }, 600_000);
});
