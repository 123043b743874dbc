import { mkdirSync, rmSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { readFilms } from "../../example/films.ts";
import { PAGES_BUILD } from "../../example/web/build.ts";
import { createAuthority } from "../../tests/support/tls/certificates.ts";
import { type Running, residentBytes, SERVICE_KEY, startConfigured } from "../support/processes.ts";
import type { Bench } from "../support/section.ts";
import { median } from "../support/statistics.ts";
import { compareByTurns, WRK_RESULT } from "./wrk.ts";

const STARTS = 15;
const SETTLE_MS = 10_000;
const BATCH = 500;
const CONNECTIONS = 32;
/** Number of clients that reconnect continuously. */
const HANDSHAKING = 4;
const HANDSHAKE_SECONDS = 3;
const HANDSHAKE_ROUNDS = 5;
const ROOT = resolve(import.meta.dir, "../..");
const FILM = "/api/db/shared/tables/films/film-0001";
const UNCHECKED = { tls: { rejectUnauthorized: false } };

type Figures = Awaited<ReturnType<typeof compareByTurns>>;

export interface TlsFigures {
  /** Median time from the start of the process to the first response over HTTPS. */
  startMs: number;
  idleBytes: number;
  idlePlainBytes: number;
  /** Reads of one record over persistent connections, compared with the bare server, and with the same server without TLS. */
  kept: Figures;
  keptBesidePlain: Figures;
  /** Connections that close after the handshake. */
  handshakes: Pick<Figures, "perSecond" | "floorPerSecond">;
}

/** Measures the film club with its site, dashboard and jobs, with and without TLS. */
export async function measureTls(bench: Bench): Promise<TlsFigures> {
  const directory = bench.directory("tls");
  const certificates = join(directory, "certificates");
  mkdirSync(certificates);
  const { cert, key } = await (await createAuthority(certificates)).sign();
  writeFileSync(join(certificates, "cert.pem"), cert);
  writeFileSync(join(certificates, "key.pem"), key);
  await Bun.build(PAGES_BUILD);
  const configs = { tls: join(directory, "tls.config.ts"), plain: join(directory, "plain.config.ts") };
  writeFileSync(configs.tls, clubConfig(`tls: ${JSON.stringify(pathsIn(certificates))}`));
  writeFileSync(configs.plain, clubConfig(""));
  const start = (config: string, data: string) =>
    startConfigured(bench.executable, { cwd: directory, config, data: join(directory, data) });

  bench.note("starts with TLS");
  const startMs = await coldStart(() => start(configs.tls, "starts"), join(directory, "starts"));
  const running: { stop(): unknown }[] = [];
  try {
    for (const name of ["tls", "plain"] as const) {
      const importing = await start(configs[name], name);
      await importFilms(importing);
      await importing.stop();
    }
    const tls = await start(configs.tls, "tls");
    running.push(tls);
    const plain = await start(configs.plain, "plain");
    running.push(plain);
    bench.note("idle memory with TLS");
    await Bun.sleep(SETTLE_MS);
    const [idleBytes, idlePlainBytes] = [residentBytes(tls.pid), residentBytes(plain.pid)];
    const answerFile = join(directory, "answer.json");
    await Bun.write(answerFile, await (await fetch(tls.url + FILM, UNCHECKED)).text());
    const floor = await startFloor(certificates, answerFile);
    running.push(floor);
    const script = (name: string, text: string): string => {
      const path = join(directory, name);
      writeFileSync(path, `${text}\n${WRK_RESULT}`);
      return path;
    };
    const kept = script("kept.lua", "");
    bench.note("requests over TLS");
    const both: [string, string] = [tls.url + FILM, floor.url + FILM];
    return {
      startMs,
      idleBytes,
      idlePlainBytes,
      kept: await compareByTurns(both, { script: kept, connections: CONNECTIONS }),
      keptBesidePlain: await compareByTurns([tls.url + FILM, plain.url + FILM], {
        script: kept,
        connections: CONNECTIONS,
      }),
      handshakes: await compareHandshakes(both),
    };
  } finally {
    await Promise.all(running.map((one) => one.stop()));
  }
}

/**
 * Alternates between our server and the floor, and returns medians. Uses OpenSSL's client, as wrk counts every closed connection
 * as an error.
 */
async function compareHandshakes(urls: readonly [string, string]): Promise<TlsFigures["handshakes"]> {
  const rounds: [number, number][] = [];
  for (let round = 0; round < HANDSHAKE_ROUNDS; round++) {
    rounds.push([await handshakesPerSecond(urls[0]), await handshakesPerSecond(urls[1])]);
  }
  return { perSecond: median(rounds.map(([ours]) => ours)), floorPerSecond: median(rounds.map(([, floor]) => floor)) };
}

async function handshakesPerSecond(url: string): Promise<number> {
  const args = ["s_time", "-new", "-time", String(HANDSHAKE_SECONDS), "-connect", new URL(url).host];
  const startedAt = performance.now();
  const clients = Array.from({ length: HANDSHAKING }, async () => {
    const client = Bun.spawn(["openssl", ...args], { stdin: "ignore", stdout: "pipe", stderr: "ignore" });
    const [, count] = /(\d+) connections in \d+ real seconds/.exec(await client.stdout.text()) ?? [];
    if (count === undefined) throw new Error("openssl s_time made no connections");
    return Number(count);
  });
  const counts = await Promise.all(clients);
  return (counts.reduce((sum, count) => sum + count, 0) / (performance.now() - startedAt)) * 1_000;
}

const pathsIn = (folder: string) => ({ cert: join(folder, "cert.pem"), key: join(folder, "key.pem") });

/** Returns a config that imports the film club, whose pages are found wherever the config lies. */
const clubConfig = (server: string): string => `import club from ${JSON.stringify(join(ROOT, "platform.config.ts"))};
export default {
  ...club,
  site: { ...club.site, directory: ${JSON.stringify(join(ROOT, "example/web/public"))} },
  rateLimits: { global: { requests: 1_000_000_000, window: 1 } },
  server: { ${server} },
};
`;

async function coldStart(start: () => Promise<Running>, data: string): Promise<number> {
  const timesMs: number[] = [];
  for (let turn = 0; turn < STARTS; turn++) {
    rmSync(data, { recursive: true, force: true });
    const startedAt = performance.now();
    const platform = await start();
    const answer = await fetch(`${platform.url}/api/db/shared/tables/films`, UNCHECKED);
    await answer.text();
    timesMs.push(performance.now() - startedAt);
    await platform.stop();
    if (!answer.ok) throw new Error(`the first request was answered ${answer.status}`);
  }
  return median(timesMs);
}

async function importFilms({ url }: Running): Promise<void> {
  const films = await readFilms();
  const headers = { "content-type": "application/json", "x-platform-service-key": SERVICE_KEY };
  for (let start = 0; start < films.length; start += BATCH) {
    const body = JSON.stringify({ inserts: films.slice(start, start + BATCH) });
    const answer = await fetch(`${url}/api/db/shared/tables/films/batch`, {
      method: "POST",
      headers,
      body,
      ...UNCHECKED,
    });
    if (!answer.ok) throw new Error(`the films were answered ${answer.status}: ${await answer.text()}`);
  }
}

async function startFloor(certificates: string, answerFile: string): Promise<{ url: string; stop(): void }> {
  const child = Bun.spawn([process.execPath, join(import.meta.dir, "../tls-floor.ts"), certificates, answerFile], {
    stdin: "ignore",
    stdout: "pipe",
    stderr: "inherit",
  });
  const { value } = await child.stdout.getReader().read();
  return { url: new TextDecoder().decode(value).trim(), stop: () => child.kill() };
}
