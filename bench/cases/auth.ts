import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { type TestPlatform, temporaryDirectory, testPlatform } from "../../tests/support/index.ts";

const CONNECTIONS = 32;
const ROUND_SECONDS = 3;
const ROUNDS = 3;
const HASHES = 20;
const IMPORTED_USERS = 1_000;
const UNLIMITED = { requests: 100_000_000, window: 60 };
const PASSWORD = "correct horse battery";

export interface AuthFigures {
  refreshPerSecond: number;
  refreshP99Ms: number;
  mePerSecond: number;
  meP99Ms: number;
  signInPerSecond: number;
  hashMs: number;
  hashParameters: string;
  importSeconds: number;
  healthP99Ms: number;
  healthMaxMs: number;
}

interface Round {
  perSecond: number;
  p99Ms: number;
}

const median = (numbers: readonly number[]): number =>
  numbers.toSorted((a, b) => a - b)[Math.floor(numbers.length / 2)] ?? Number.NaN;

const RESULT = `
  done = function(summary, latency)
    local errors = summary.errors.status + summary.errors.connect + summary.errors.read + summary.errors.timeout
    io.write(string.format("RESULT %f %f %d", summary.requests / summary.duration * 1e6, latency:percentile(99) / 1e3, errors))
  end`;

/** Returns a wrk script in which each connection takes the oldest token, and queues the one that it receives. */
function refreshScript(path: string, tokens: readonly string[]): string {
  writeFileSync(
    path,
    `wrk.method = "POST"
     wrk.headers["content-type"] = "application/json"
     local tokens = {${tokens.map((token) => `"${token}"`).join(",")}}
     local first, last = 1, #tokens
     request = function()
       local token = tokens[first]
       tokens[first] = nil
       first = first + 1
       return wrk.format(nil, "/api/auth/refresh", nil, '{"refreshToken":"' .. token .. '"}')
     end
     response = function(status, headers, body)
       last = last + 1
       tokens[last] = string.match(body, '"refreshToken":"([^"]+)"')
     end
     ${RESULT}`,
  );
  return path;
}

function plainScript(path: string): string {
  writeFileSync(path, RESULT);
  return path;
}

async function load(url: string, script: string, headers: readonly string[] = []): Promise<Round> {
  const args = ["-t1", `-c${CONNECTIONS}`, `-d${ROUND_SECONDS}`, "-s", script];
  const wrk = Bun.spawn(["wrk", ...args, ...headers.flatMap((header) => ["-H", header]), url], { stdout: "pipe" });
  const [, perSecond, p99Ms, errors] = /RESULT (\S+) (\S+) (\d+)/.exec(await new Response(wrk.stdout).text()) ?? [];
  if (perSecond === undefined || errors !== "0")
    throw new Error(`wrk against ${url}: ${errors ?? "no"} errors reported`);
  return { perSecond: Number(perSecond), p99Ms: Number(p99Ms) };
}

interface Tokens {
  accessToken: string;
  refreshToken: string;
}

async function signIn(platform: TestPlatform): Promise<Tokens> {
  const { body } = await platform.post<Tokens>("/api/auth/signin", { email: "bench@example.com", password: PASSWORD });
  return body;
}

async function signInsPerSecond(platform: TestPlatform): Promise<number> {
  const until = performance.now() + ROUND_SECONDS * 1_000;
  let count = 0;
  const client = async (): Promise<void> => {
    while (performance.now() < until) {
      await signIn(platform);
      count++;
    }
  };
  await Promise.all(Array.from({ length: 8 }, client));
  return count / ROUND_SECONDS;
}

/** Measures the import of plaintext passwords, and the latency of others meanwhile. */
async function importBesideHealth(platform: TestPlatform) {
  const users = Array.from({ length: IMPORTED_USERS }, (_, n) => ({
    email: `user-${n}@example.com`,
    password: PASSWORD,
  }));
  const startedAt = performance.now();
  let seconds = 0;
  const running = platform.service.post("/api/admin/auth/users/import", { users }).then(({ status }) => {
    if (status !== 200) throw new Error(`the import answered ${status}`);
    seconds = (performance.now() - startedAt) / 1_000;
  });
  const times: number[] = [];
  while (seconds === 0) {
    const askedAt = performance.now();
    await platform.get("/api/health");
    times.push(performance.now() - askedAt);
    await Bun.sleep(5);
  }
  await running;
  times.sort((a, b) => a - b);
  const p99Ms = times[Math.floor(times.length * 0.99)] ?? Number.NaN;
  return { seconds, healthP99Ms: p99Ms, healthMaxMs: times.at(-1) ?? Number.NaN };
}

async function hashMs(options: { memoryCost: number; timeCost: number }): Promise<number> {
  const times: number[] = [];
  for (let run = 0; run < HASHES; run++) {
    const startedAt = performance.now();
    await Bun.password.hash(PASSWORD, { algorithm: "argon2id", ...options });
    times.push(performance.now() - startedAt);
  }
  return median(times);
}

/**
 * Measures refreshes and reads with a token by 32 connections, sign-ins by 8 clients, and an import with concurrent health
 * checks.
 */
export async function measureAuth(argon2: { memoryKiB: number; passes: number }): Promise<AuthFigures> {
  const directory = temporaryDirectory();
  const platform = await testPlatform({
    config: { rateLimits: { auth: UNLIMITED, signup: UNLIMITED, signin: UNLIMITED } },
  });
  try {
    await platform.service.post("/api/auth/admin/users", { email: "bench@example.com", password: PASSWORD });
    const sessions = await Promise.all(Array.from({ length: 2 * CONNECTIONS }, () => signIn(platform)));
    const bearer = `Authorization: Bearer ${sessions[0]?.accessToken}`;
    const refreshes: Round[] = [];
    const reads: Round[] = [];
    for (let round = 0; round < ROUNDS; round++) {
      const fresh = await Promise.all(Array.from({ length: 2 * CONNECTIONS }, () => signIn(platform)));
      const script = refreshScript(
        join(directory, `refresh-${round}.lua`),
        fresh.map((one) => one.refreshToken),
      );
      refreshes.push(await load(platform.url, script));
      reads.push(await load(`${platform.url}/api/auth/me`, plainScript(join(directory, "me.lua")), [bearer]));
    }
    const imported = await importBesideHealth(platform);
    return {
      refreshPerSecond: median(refreshes.map((round) => round.perSecond)),
      refreshP99Ms: median(refreshes.map((round) => round.p99Ms)),
      mePerSecond: median(reads.map((round) => round.perSecond)),
      meP99Ms: median(reads.map((round) => round.p99Ms)),
      signInPerSecond: await signInsPerSecond(platform),
      hashMs: await hashMs({ memoryCost: argon2.memoryKiB, timeCost: argon2.passes }),
      hashParameters: `m=${argon2.memoryKiB} KiB, t=${argon2.passes}, p=1`,
      importSeconds: imported.seconds,
      healthP99Ms: imported.healthP99Ms,
      healthMaxMs: imported.healthMaxMs,
    };
  } finally {
    await platform.stop();
  }
}
