import { type Running, SERVICE_KEY, startPlatform } from "../support/processes.ts";
import { processorTime } from "../support/processor-time.ts";
import type { Bench, Result, Section } from "../support/section.ts";
import { median, milliseconds, quantile } from "../support/statistics.ts";

const POINTS = 1_000_000;
const BATCH = 500;
const NEAR_REQUESTS = 300;
const WARM_UP = 20;
const NEAR_P50_MS = 5;
const ROUNDS = 7;
const SIGN_UPS = 40;
const GUESTS = 200;
const UPLOADS = 300;
const FILE_KIB = [64, 1024] as const;
const CLIENTS = 8;
const SIGN_UP_RATIO_MAX = 1.15;
const UPLOAD_RATIO_MIN = 0.8;

const UNLIMITED = "{ requests: 100000000, window: 60 }";
const LIMITS = `rateLimits: { global: ${UNLIMITED}, auth: ${UNLIMITED}, signup: ${UNLIMITED} }`;
const CONFIG = `export default {
  ${LIMITS},
  auth: { anonymous: true },
  storage: { buckets: { files: {} } },
  databases: { shared: { tables: {
    places: { schema: { at: { type: "geo" }, name: { type: "string" } }, access: { read: true } },
    docs: { schema: { title: { type: "string" }, file: { type: "file", bucket: "files" } } },
  } } },
};`;
const WITH_USERS = CONFIG.replace(
  "anonymous: true",
  `anonymous: true, users: { in: "shared", schema: { bio: { type: "text" } }, access: { read: true } }`,
);

const headers = { "content-type": "application/json", "x-platform-service-key": SERVICE_KEY };

async function post(url: string, body: string | FormData, sent: Record<string, string> = headers): Promise<void> {
  const response = await fetch(url, { method: "POST", headers: sent, body });
  if (!response.ok) throw new Error(`${url} answered ${response.status}: ${await response.text()}`);
  await response.arrayBuffer();
}

/** Sends requests by a few clients at once. Returns the processor time of the server for one of them, in microseconds. */
async function cost({ pid }: Running, count: number, send: (index: number) => Promise<void>): Promise<number> {
  const before = processorTime(pid);
  let next = 0;
  const client = async () => {
    for (let index = next++; index < count; index = next++) await send(index);
  };
  await Promise.all(Array.from({ length: CLIENTS }, client));
  return (processorTime(pid) - before) / count;
}

/** Compares the processor time of two kinds of requests, in turns, by medians after a round that does not count. */
async function inTurns(
  own: (round: number) => Promise<number>,
  floor: (round: number) => Promise<number>,
): Promise<{ own: number; floor: number }> {
  const rounds: { own: number; floor: number }[] = [];
  for (let round = 0; round <= ROUNDS; round++) {
    const one = { own: await own(round), floor: await floor(round) };
    if (round > 0) rounds.push(one);
  }
  return { own: median(rounds.map(({ own }) => own)), floor: median(rounds.map(({ floor }) => floor)) };
}

const micros = (value: number): string => `${Math.round(value).toLocaleString("en")} µs`;

function compared(
  name: string,
  { own, floor }: { own: number; floor: number },
  isMet: boolean,
  target: string,
): Result {
  return { name, measured: micros(own), p50: null, p99: null, floor: micros(floor), ratio: own / floor, target, isMet };
}

async function signUps(withUsers: Running, without: Running): Promise<Result[]> {
  let address = 0;
  const account = (server: Running) => () =>
    post(
      `${server.url}/api/auth/signup`,
      JSON.stringify({ email: `user-${address++}@example.com`, password: "correct horse battery" }),
      { "content-type": "application/json" },
    );
  const guest = (server: Running) => () => post(`${server.url}/api/auth/signin/anonymous`, "", {});
  const both = (count: number, send: (server: Running) => () => Promise<void>) =>
    inTurns(
      () => cost(withUsers, count, send(withUsers)),
      () => cost(without, count, send(without)),
    );
  const accounts = await both(SIGN_UPS, account);
  const guests = await both(GUESTS, guest);
  const target = `≤ ${SIGN_UP_RATIO_MAX} of the floor`;
  return [
    compared(
      "sign-up with `auth.users`; the floor is one without",
      accounts,
      accounts.own / accounts.floor <= SIGN_UP_RATIO_MAX,
      target,
    ),
    {
      ...compared("anonymous sign-in, which hashes no password, the same", guests, true, ""),
      target: null,
      isMet: null,
    },
  ];
}

async function upload(server: Running, kib: number): Promise<Result> {
  const file = new Blob([new Uint8Array(kib * 1024).fill(65)], { type: "text/plain" });
  const key = { "x-platform-service-key": SERVICE_KEY };
  const record = () => {
    const form = new FormData();
    form.append("record", JSON.stringify({ title: "Minutes" }));
    form.append("file", file, "minutes.txt");
    return post(`${server.url}/api/db/shared/tables/docs`, form, key);
  };
  const alone = (round: number) => (index: number) => {
    const form = new FormData();
    form.append("key", `minutes/${kib}/${round}/${index}`);
    form.append("file", file, "minutes.txt");
    return post(`${server.url}/api/storage/files/upload`, form, key);
  };
  const times = await inTurns(
    () => cost(server, UPLOADS, record),
    (round) => cost(server, UPLOADS, alone(round)),
  );
  const ratio = times.floor / times.own;
  const name = `upload of ${kib.toLocaleString("en")} KiB together with its record; the floor is the upload alone`;
  const isMet = ratio >= UPLOAD_RATIO_MIN;
  return { ...compared(name, times, isMet, `floor / own ≥ ${UPLOAD_RATIO_MIN}`), ratio };
}

/** Points spread over the land of a small country, most of them in its towns, as places are. */
function pointAt(index: number): { lat: number; lng: number } {
  const of = (salt: number) => (((Math.sin(index * 12.9898 + salt) * 43_758.5453) % 1) + 1) % 1;
  const town = { lat: 46.5 + ((index % 40) / 40) * 2.5, lng: 9.6 + (((index * 7) % 40) / 40) * 7 };
  const width = index % 3 === 0 ? 2 : 0.05;
  return { lat: town.lat + (of(1) - 0.5) * width, lng: town.lng + (of(2) - 0.5) * width };
}

async function nearest(bench: Bench, server: Running): Promise<Result> {
  const table = `${server.url}/api/db/shared/tables/places`;
  bench.note(`filling ${POINTS} points`);
  for (let index = 0; index < POINTS; index += BATCH) {
    const inserts = Array.from({ length: BATCH }, (_, offset) => ({
      ...{ id: `p${index + offset}`, at: pointAt(index + offset), name: `Place ${index + offset}` },
    }));
    await post(`${table}/batch`, JSON.stringify({ inserts }));
  }
  bench.note("distances");
  const taken: number[] = [];
  for (let index = 0; index < NEAR_REQUESTS + WARM_UP; index++) {
    const { lat, lng } = pointAt(index * 3_331 + 7);
    const startedAt = performance.now();
    const response = await fetch(`${table}?near=at:${lat}:${lng}&limit=20&total=false`);
    const { items } = (await response.json()) as { items: unknown[] };
    if (items.length !== 20) throw new Error(`a list by distance has ${items.length} items`);
    if (index >= WARM_UP) taken.push(performance.now() - startedAt);
  }
  const p50 = median(taken);
  return {
    ...{ name: `list of 20 by distance, in ${POINTS.toLocaleString("en")} points`, measured: milliseconds(p50) },
    ...{ p50: milliseconds(p50), p99: milliseconds(quantile(taken, 0.99)), floor: null, ratio: null },
    ...{ target: `p50 ≤ ${NEAR_P50_MS} ms`, isMet: p50 <= NEAR_P50_MS },
  };
}

export const productData: Section = {
  name: "product-data",
  title: "Data in the shape that products have",
  about:
    `Sign-ups and uploads by ${CLIENTS} clients: the processor time of the whole server for one request, in turns, medians of ${ROUNDS} rounds after one that does not count. ` +
    `Distances: one client, ${NEAR_REQUESTS} requests, each around another point. Searches under a rule are among the large tables, rules with a relation in a table of their own.`,
  async run(bench) {
    const [withUsers, without] = [
      await startPlatform(bench.executable, bench.directory("with-users"), WITH_USERS),
      await startPlatform(bench.executable, bench.directory("without-users"), CONFIG),
    ];
    try {
      bench.note("sign-ups and uploads");
      const results = await signUps(withUsers, without);
      for (const kib of FILE_KIB) results.push(await upload(without, kib));
      return [...results, await nearest(bench, without)];
    } finally {
      await Promise.all([withUsers.stop(), without.stop()]);
    }
  },
};
