import { measurePush } from "../cases/push.ts";
import type { Section } from "../support/section.ts";
import { latency, rate } from "./figures.ts";

const HEALTH_TARGET_MS = 20;

export const push: Section = {
  name: "push",
  title: "Push",
  about: `Broadcasts to 10,000 devices of 200 users, one after another, through an FCM on loopback that takes each message at once (a
process of its own, \`bench/fcm-server.ts\`); every device has its row in the log. The floor makes the same calls from a bare process, also 40
at a time. In turns, three rounds; medians. Beside the broadcasts a health check every 2 ms.`,
  async run(bench) {
    bench.note("push");
    const figures = await measurePush();
    const sent = rate("broadcast to 10,000 devices", {
      ...{ perSecond: figures.sentPerSecond, floorPerSecond: figures.floorPerSecond, unit: "messages" },
    });
    const { healthP50Ms: p50Ms, healthP99Ms: p99Ms } = figures;
    return [
      sent,
      {
        ...latency("GET /api/health beside it", { p50Ms, p99Ms }),
        ...{ target: `p99 < ${HEALTH_TARGET_MS} ms`, isMet: p99Ms < HEALTH_TARGET_MS },
      },
    ];
  },
};
