import { measureKeyValue } from "../cases/kv.ts";
import { measureRealtime } from "../cases/realtime.ts";
import { type ActionFigures, measureRooms } from "../cases/rooms.ts";
import { measureVectors } from "../cases/vectorize.ts";
import type { Section } from "../support/section.ts";
import { latency, plain, rate } from "./figures.ts";

const mebibytes = (value: number): string => `${Math.round(value)} MiB`;

export const keyValue: Section = {
  name: "kv",
  title: "Key-value",
  about: `32 connections of wrk on 10,000 keys. The floor is a bare server with the same statements on a file of its own, each set a
transaction with \`synchronous=FULL\` (\`bench/kv-floor.ts\`). In turns, five rounds of three seconds; medians.`,
  async run(bench) {
    bench.note("key-value");
    const figures = await measureKeyValue();
    const { getPerSecond, getP99Ms, getFloorPerSecond, setPerSecond, setP99Ms, setFloorPerSecond } = figures;
    return [
      rate("get", { perSecond: getPerSecond, p99Ms: getP99Ms, floorPerSecond: getFloorPerSecond }),
      rate("set, durable", { perSecond: setPerSecond, p99Ms: setP99Ms, floorPerSecond: setFloorPerSecond }),
    ];
  },
};

export const vectors: Section = {
  name: "vectorize",
  title: "Vectors",
  about: `Word vectors of 100 dimensions from an npm package (\`bench/cases/vectorize.ts\` says how many). The floor is the bare query of
sqlite-vec in one process.`,
  async run(bench) {
    bench.note("vectors");
    const figures = await measureVectors();
    return [
      latency("search, cosine", { p50Ms: figures.searchP50Ms }, figures.bareP50Ms),
      latency("search, cosine, filtered", { p50Ms: figures.filteredP50Ms }),
      latency("search, dot product", { p50Ms: figures.productP50Ms }),
      rate("upsert, durable", { perSecond: figures.upsertedPerSecond, unit: "vectors" }),
      plain("p99 of GET /api/health beside eight searches", `${figures.healthP99Ms.toFixed(1)} ms`),
    ];
  },
};

export const realtime: Section = {
  name: "realtime",
  title: "Realtime",
  about: `1,000 connections subscribed to one table. Latency: from the request that inserts until the last of them has the change. The
floor is a bare server that publishes what is posted, and stores nothing (\`bench/realtime-floor.ts\`).`,
  async run(bench) {
    bench.note("realtime");
    const figures = await measureRealtime();
    return [
      latency(
        "a change to 1,000 subscribers, 50 changes/s",
        { p50Ms: figures.latencyP50Ms, p99Ms: figures.latencyP99Ms },
        figures.floorLatencyP50Ms,
      ),
      rate("deliveries", {
        ...{ perSecond: figures.deliveredPerSecond, floorPerSecond: figures.floorDeliveredPerSecond, unit: "messages" },
      }),
      plain("memory with 10,000 idle connections", mebibytes(figures.idleMemoryMiB)),
    ];
  },
};

const actions = (name: string, figures: ActionFigures) => [
  rate(`${name}: actions`, { ...figures, perSecond: figures.actionsPerSecond, unit: "actions" }),
  plain(`${name}: deltas sent`, `${Math.round(figures.deltasPerSecond).toLocaleString("en")} deltas/s`),
  plain(`${name}: deltas missed by a client`, String(figures.missedDeltas)),
  plain(`${name}: processor time, of one core`, `${Math.round(figures.serverCpuPercent)} %`),
];

export const rooms: Section = {
  name: "rooms",
  title: "Rooms",
  about: "100 rooms of 10 players for 10 s; then 1,000 rooms with 100 KB of state each that go to rest.",
  async run(bench) {
    bench.note("rooms");
    const { usual, heavy, idle } = await measureRooms();
    return [
      ...actions("5 actions per second and player", usual),
      ...actions("20 actions per second and player", heavy),
      plain("memory before 1,000 rooms", mebibytes(idle.beforeMiB)),
      plain("memory after they have gone to rest", mebibytes(idle.afterMiB)),
    ];
  },
};
