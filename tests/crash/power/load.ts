import { readFileSync } from "node:fs";
import { join } from "node:path";
import { platformCommand, type TestPlatform, temporaryDirectory, testPlatform, until } from "../../support/index.ts";
import { random as seeded, testSeed } from "../../support/random.ts";
import { TRACED } from "./trace.ts";

export const SEED = testSeed(2_612);
export const random = seeded(SEED);
const LOAD_MS = 4_000;
const WRITERS = 8;
const INSTANCES = 3;
export const TEXT = "some words of a text ".repeat(60);

/** Returns the config of the recorded server, with more members. */
export const configWith = (more: string) => `{
  databases: {
    shared: { tables: { notes: { schema: { text: { type: "text" }, n: { type: "integer" } }, fts: ["text"], indexes: [{ fields: ["n"] }] } } },
    tenants: { instance: true, tables: { notes: { schema: { text: { type: "text" }, n: { type: "integer" } } } } },
  },
  storage: { buckets: { files: {} } },
  kv: { cache: {} },
  d1: { main: {} },
  rateLimits: { auth: { requests: 1000000, window: 60 } },
  ${more}
}`;

export const hasTracer =
  process.platform === "linux" &&
  Bun.which("strace") !== null &&
  Bun.spawnSync(["strace", "-qq", "true"]).exitCode === 0;
if (!hasTracer) console.warn("no power cut is tested: strace is not here, or may not trace");

export const places = [
  "/api/db/shared/tables/notes",
  ...Array.from({ length: INSTANCES }, (_, n) => `/api/db/tenants/t${n}/tables/notes`),
];

/** Sends writes, one after the other, until `isOver`. Each record and file names what it is in its answer. */
async function write(platform: TestPlatform, writer: number, isOver: () => boolean): Promise<void> {
  for (let count = 0; !isOver(); count++) {
    const place = random.below(places.length);
    const path = places[place] ?? "";
    const id = `${place}-${writer}-${count}`;
    const kind = random.below(10);
    if (kind === 0) {
      const form = new FormData();
      form.set("key", id);
      form.set("file", new Blob([id.repeat(1 + random.below(2_000))]), id);
      await platform.service.fetch("/api/storage/files/upload", { method: "POST", body: form });
    } else if (kind === 1) {
      const inserts = Array.from({ length: 20 }, (_, index) => ({ id: `${id}-${index}`, n: 1, text: TEXT }));
      await platform.service.post(`${path}/batch`, { inserts });
    } else if (kind === 3) {
      await platform.service.post("/api/kv/cache", { action: "set", key: id, value: { key: id } });
      // The answer of a set does not say what was set; this one does.
      await platform.service.post("/api/kv/cache", { action: "get", key: id });
    } else if (kind === 4) {
      await platform.service.post("/api/d1/main", { query: "INSERT INTO notes VALUES (?) RETURNING id", params: [id] });
    } else if (kind === 2) {
      await platform.service.post("/api/auth/admin/users", {
        email: `user-${id}@example.com`,
        password: "long enough",
      });
    } else {
      await platform.service.post(path, { id, n: 1, text: TEXT });
      for (let n = 2; n <= 1 + random.below(3); n++) await platform.service.patch(`${path}/${id}`, { n });
    }
  }
}

/** Under `load` until it is killed: what it did to its files, and sent. */
export async function record(
  load: (platform: TestPlatform) => Promise<void>,
  { config, program = platformCommand() }: { config: string; program?: readonly string[] },
): Promise<{ trace: string; root: string }> {
  const file = join(temporaryDirectory(), "trace");
  // The tracer is not the server's parent, so that the server is killed and not the tracer.
  const prefix = ["strace", "-D", "-f", "-y", "-xx", "-q", "-s", "4000000", "-e", `trace=${TRACED}`, "-o", file];
  const platform = await testPlatform({ config, prefix, program });
  await load(platform);
  const { pid } = platform.process;
  await platform.kill("SIGKILL");
  const end = new RegExp(`^${pid} +\\+\\+\\+ killed by SIGKILL`, "m");
  await until("the trace is complete", () => end.test(readFileSync(file, "utf8")));
  return { trace: readFileSync(file, "utf8"), root: platform.dataDirectory };
}

export async function writeAll(platform: TestPlatform): Promise<void> {
  const endsAt = performance.now() + LOAD_MS;
  const isOver = () => performance.now() > endsAt;
  await platform.service.post("/api/d1/main", { query: "CREATE TABLE notes (id TEXT)" });
  await Promise.all(Array.from({ length: WRITERS }, (_, writer) => write(platform, writer, isOver)));
}
