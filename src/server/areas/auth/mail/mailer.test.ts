import { expect, test } from "bun:test";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { temporaryDirectory, testClock } from "../../../../../tests/support/index.ts";
import { systemIds } from "../../../../kernel/ids.ts";
import { type Logger, silentLogger } from "../../../../kernel/logger.ts";
import { Foreground } from "../../../../kernel/observing/foreground.ts";
import { MINUTE_MS, SECOND_MS } from "../../../../kernel/time/duration.ts";
import { createStorageEngine, type OutboxRow } from "../../../db/index.ts";
import { createJobsArea } from "../../../jobs/index.ts";
import { Mailer } from "./mailer.ts";

const GIVE_UP_MS = 10_000;

/** A mailer whose mail server does not answer: nothing listens on port 1. */
function mailer(logger: Logger = silentLogger) {
  const clock = testClock();
  const dataDirectory = temporaryDirectory();
  const engine = createStorageEngine({ clock });
  const base = { dataDirectory, clock, ids: systemIds, logger, isDrill: false };
  const secrets = { jwtSecret: "s".repeat(32) };
  const app = () => {
    throw new Error("not used");
  };
  const audit = async () => {};
  const foreground = new Foreground();
  const jobs = createJobsArea({ ...base, engine, foreground, secrets, jobs: {}, cron: {}, app, audit });
  const config = { smtp: { host: "127.0.0.1", port: 1 } };
  const made = new Mailer({ ...base, config, appName: () => "", queue: jobs.queue });
  const stop = async () => {
    await jobs.stop();
    made.stop();
    await engine.stop();
  };
  /** Writes a mail down, and passes it to the queue, as the outbox of a file does. */
  const post = async (delivery: "mail" | "none"): Promise<void> => {
    const rows: OutboxRow[] = [];
    const posted = made.post({ enqueue: (row) => void rows.push(row) }, { ...MAIL, delivery });
    await jobs.pass(rows.flatMap(({ names, ...row }) => names.map((name) => ({ ...row, name }))));
    await posted();
  };
  return { clock, dataDirectory, jobs, post, stop };
}
const MAIL = {
  kind: "magicLink",
  values: { email: "ann@example.com", link: "https://example.com/?token=t" },
  language: null,
  ttlMs: 5 * MINUTE_MS,
} as const;

async function until(isSo: () => boolean): Promise<void> {
  const giveUpAt = performance.now() + GIVE_UP_MS;
  while (!isSo()) {
    if (performance.now() > giveUpAt) throw new Error("timed out");
    await new Promise((resolve) => setImmediate(resolve));
  }
}

test("[AU262] a mail whose link or code has expired is not sent any more", async () => {
  const reasons: string[] = [];
  const note = (_: string, facts: Record<string, unknown> = {}) => void reasons.push(String(facts["cause"]));
  const { clock, jobs, post, stop } = mailer({ info() {}, warn: note, error: note });
  await jobs.start();
  await post("mail");
  await until(() => reasons.length === 1);
  expect(reasons[0]).toContain("ECONNREFUSED");
  for (let elapsedMs = 0; elapsedMs < MAIL.ttlMs; elapsedMs += SECOND_MS) {
    await clock.advanceAsync(SECOND_MS);
    const [{ running = 0 } = {}] = jobs.load;
    if (running > 0) await until(() => jobs.load.every((load) => load.running === 0));
  }
  await clock.advanceAsync(10 * MINUTE_MS);
  await until(() => jobs.load.some(({ failedTotal }) => failedTotal === 1));
  expect(reasons.at(-1)).toContain("expired before it could be sent");
  await stop();
});

test("[AU261] a mail that nobody gets is the same durable write, and leaves no job", async () => {
  const { dataDirectory, jobs, post, stop } = mailer();
  await jobs.start();
  await post("none");
  expect(existsSync(join(dataDirectory, "jobs.db"))).toBe(true);
  expect(jobs.load).toEqual([]);
  await stop();
});
