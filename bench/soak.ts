import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { resolve } from "node:path";
import { testPlatform } from "../tests/support/index.ts";
import { random as seeded, testSeed } from "../tests/support/random.ts";
import { renewed } from "../tests/support/sign-in.ts";
import { figuresOf } from "./sections/soak.ts";
import type { Client } from "./soak/client.ts";
import { configOf } from "./soak/config.ts";
import { Minutes } from "./soak/minutes.ts";
import { createClients, requestsOf } from "./soak/requests.ts";
import { playInRoom, watchTable } from "./soak/sockets.ts";
import { executableToMeasure } from "./support/executable.ts";
import { residentBytes } from "./support/processes.ts";
import { busyNote, sectionText, withSection } from "./support/report.ts";

// `npm run bench:soak` (10 minutes) or `npm run bench:soak -- 3`: mixed traffic to every area, to find what grows.

const CLIENTS = 16;
/** Pause between two requests of a client: constant traffic, far below the server's capacity. */
const PAUSE_MS = 10;
const MINUTE_MS = 60_000;
const RENEW_MS = 5 * MINUTE_MS;
const MEMORY_EVERY_MS = 1_000;
/** Number of log lines read at the end. */
const LOG_LINES_SHOWN_MAX = 1_000;
const ERRORS_SHOWN_MAX = 20;
const RESULTS = resolve(import.meta.dir, "RESULTS.md");

const minutes = Number(process.argv[2] ?? 10);
if (!Number.isInteger(minutes) || minutes < 3) {
  console.error("minutes must be a whole number from 3: the first two are for warming up");
  process.exit(2);
}
process.env["PLATFORM_EXECUTABLE"] = executableToMeasure();
const measured = { day: new Date().toISOString().slice(0, 10), busyNote: await busyNote() };
/** Receiver of the webhooks. */
const receiver = Bun.serve({ port: 0, hostname: "127.0.0.1", fetch: () => new Response(null, { status: 204 }) });
const platform = await testPlatform({ config: configOf(receiver.url.href) });
const random = seeded(testSeed(1));
const clients = await createClients(platform, CLIENTS, () => seeded(random.below(2 ** 31)));

const stats = new Minutes();
const errors: string[] = [];
let isOver = false;
const fail = (what: string): void => {
  errors.push(what);
  if (errors.length <= ERRORS_SHOWN_MAX) console.error(what);
};

async function work(client: Client): Promise<void> {
  const requests = requestsOf(client);
  while (!isOver) {
    const startedAt = performance.now();
    try {
      const { status, body } = await client.random.pick(requests)(client);
      stats.request(performance.now() - startedAt);
      if (status >= 300) fail(`${status} ${JSON.stringify(body)}`);
    } catch (cause) {
      fail(String(cause));
    }
    await Bun.sleep(PAUSE_MS);
  }
}

/** Access tokens expire after 15 minutes. */
const renewing = setInterval(() => {
  for (const client of clients) {
    renewed(platform, client.user).then(
      (user) => {
        client.user = user;
      },
      (cause: unknown) => fail(String(cause)),
    );
  }
}, RENEW_MS);

const over = () => isOver;
const traffic = clients.flatMap((client) => [
  work(client),
  watchTable(client, over, fail),
  playInRoom(client, over, fail),
]);
const sampling = setInterval(() => stats.memory(residentBytes(platform.process.pid)), MEMORY_EVERY_MS);
for (let minute = 1; minute <= minutes; minute++) {
  await Bun.sleep(MINUTE_MS);
  const { requests, p99Ms, memoryBytes } = stats.close();
  console.error(
    `minute ${minute}: ${requests} requests, p99 ${p99Ms.toFixed(1)} ms, ${Math.round(memoryBytes / 1024 ** 2)} MiB`,
  );
}
isOver = true;
clearInterval(sampling);
clearInterval(renewing);
await Promise.all(traffic);
// Failures that no client sees: of jobs, triggers and webhooks.
const { body: log } = await platform.service.get<{ lines: { message: string; facts: unknown }[] }>("/api/admin/logs", {
  query: { level: "warn", limit: LOG_LINES_SHOWN_MAX },
});
for (const { message, facts } of log.lines) fail(`${message} ${JSON.stringify(facts)}`);
const exitCode = await platform.stop();
await receiver.stop(true);
if (exitCode !== 0) fail(`the server ended with ${exitCode}`);

const section = figuresOf(stats.all, errors.length);
const text = sectionText(section, section.results, measured);
console.log(text);
const report = existsSync(RESULTS) ? readFileSync(RESULTS, "utf8") : "";
writeFileSync(RESULTS, withSection(report, section.title, text));
process.exit(section.results.every(({ isMet }) => isMet !== false) ? 0 : 1);
