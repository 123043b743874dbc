import { statSync } from "node:fs";
import { join } from "node:path";
import { SERVICE_KEY, startPlatform } from "../support/processes.ts";
import type { Bench, Result, Section } from "../support/section.ts";
import { median, milliseconds, perSecond } from "../support/statistics.ts";

const ROWS = 400_000;
const REQUEST_RECORDS = 500;
/** Characters of a record's text, half of which compresses away. */
const TEXT_CHARACTERS = 800;
const WRITERS = 8;
const ALONE_MS = 10_000;
const PAUSE_MAX_MS = 100;
const BYTES_PER_MIB = 1024 * 1024;

const CONFIG = `import { defineConfig } from "platform";

export default defineConfig({
  databases: { shared: { tables: { rows: { schema: { n: { type: "integer" }, text: { type: "string" } } } } } },
});
`;
const HEADERS = { "content-type": "application/json", "x-platform-service-key": SERVICE_KEY };

/** Returns a reproducible generator of text that is neither random nor repetitive. */
function createText(): () => string {
  let state = 1;
  return () => {
    let text = "";
    while (text.length < TEXT_CHARACTERS) {
      state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
      text += `${state.toString(36)} the words between `;
    }
    return text;
  };
}

async function post(url: string, body: unknown): Promise<void> {
  const response = await fetch(url, { method: "POST", headers: HEADERS, body: JSON.stringify(body) });
  const text = await response.text();
  if (!response.ok) throw new Error(`${url} answered ${response.status}: ${text.slice(0, 500)}`);
}

/** Inserts records sequentially from each of the writers until `until` settles. Returns the latencies, ascending. */
async function write(url: string, until: Promise<unknown>): Promise<number[]> {
  let isOver = false;
  const taken: number[] = [];
  const text = createText();
  const writer = async () => {
    while (!isOver) {
      const startedAt = performance.now();
      await post(url, { n: taken.length, text: text() });
      taken.push(performance.now() - startedAt);
    }
  };
  const writers = Array.from({ length: WRITERS }, writer);
  await until;
  isOver = true;
  await Promise.all(writers);
  return taken.sort((one, other) => one - other);
}

async function command(executable: string, args: readonly string[]): Promise<number> {
  const startedAt = performance.now();
  const child = Bun.spawn([executable, ...args], { stdin: "ignore", stdout: "ignore", stderr: "pipe" });
  const errors = await child.stderr.text();
  if ((await child.exited) !== 0) throw new Error(`${args.join(" ")} failed: ${errors}`);
  return performance.now() - startedAt;
}

const line = (name: string, measured: string): Result => ({
  ...{ name, measured, p50: null, p99: null, floor: null, ratio: null, target: null, isMet: null },
});

function writeLines(name: string, taken: readonly number[], elapsedMs: number): [rate: Result, maxMs: number] {
  const p99Ms = taken[Math.floor(taken.length * 0.99)] ?? 0;
  const rate = line(name, perSecond((taken.length / elapsedMs) * 1_000, "inserts"));
  return [{ ...rate, p50: milliseconds(median(taken)), p99: milliseconds(p99Ms) }, taken.at(-1) ?? 0];
}

async function measure(bench: Bench): Promise<Result[]> {
  const directory = bench.directory("backup");
  const data = join(directory, "data");
  const platform = await startPlatform(bench.executable, directory, CONFIG);
  try {
    const rows = `${platform.url}/api/db/shared/tables/rows`;
    bench.note(`filling ${ROWS} rows`);
    const text = createText();
    for (let index = 0; index < ROWS; index += REQUEST_RECORDS) {
      const inserts = Array.from({ length: REQUEST_RECORDS }, (_, offset) => ({ n: index + offset, text: text() }));
      await post(`${rows}/batch`, { inserts });
    }
    bench.note("writes without and with a backup");
    const alone = await write(rows, Bun.sleep(ALONE_MS));
    const file = join(directory, "backup.tar.zst");
    const backup = command(bench.executable, ["backup", file, "--data", data]);
    const beside = await write(rows, backup);
    const backupMs = await backup;
    const sizeMib = statSync(join(data, "databases/shared.db")).size / BYTES_PER_MIB;
    const fileMib = statSync(file).size / BYTES_PER_MIB;
    bench.note("a restore");
    const restoreMs = await command(bench.executable, ["restore", file, "--data", join(directory, "restored")]);
    const [aloneLine, aloneMaxMs] = writeLines(`${WRITERS} writers, no backup`, alone, ALONE_MS);
    const [besideLine, maxMs] = writeLines(`${WRITERS} writers during a backup`, beside, backupMs);
    return [
      aloneLine,
      besideLine,
      {
        ...line("the longest that one of them waited during it", milliseconds(maxMs)),
        ...{ floor: milliseconds(aloneMaxMs), target: `≤ ${PAUSE_MAX_MS} ms`, isMet: maxMs <= PAUSE_MAX_MS },
      },
      line(`the backup, ${Math.round(sizeMib)} MiB into ${Math.round(fileMib)} MiB`, milliseconds(backupMs)),
      line("restoring it", milliseconds(restoreMs)),
    ];
  } finally {
    await platform.stop();
  }
}

export const backups: Section = {
  name: "backup",
  title: "Backup",
  about: `A table of ${ROWS.toLocaleString("en")} records of ${TEXT_CHARACTERS} characters; ${WRITERS} clients in one process insert one record after the other, each
durable, without and with \`platform backup\` at work beside them on the same disk. The floor of the longest wait is that without.`,
  run: measure,
};
