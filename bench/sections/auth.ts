import { ARGON2_MEMORY_KIB, ARGON2_PASSES } from "../../src/server/areas/auth/limits.ts";
import { measureAuth } from "../cases/auth.ts";
import type { Section } from "../support/section.ts";
import { duration, plain, rate } from "./figures.ts";

const REFRESH_TARGET_PER_SECOND = 2_000;
const HEALTH_TARGET_MS = 100;
const IMPORT_TARGET_SECONDS = 60;

export const authentication: Section = {
  name: "auth",
  title: "Authentication",
  about: `Refreshes (durable, each with its own token) and \`GET /api/auth/me\` by 32 connections of wrk, three rounds of three seconds
each in turns, medians; sign-ins by 8 clients; an import of 1,000 plaintext passwords with a health check every few milliseconds.`,
  async run(bench) {
    bench.note("authentication");
    const figures = await measureAuth({ memoryKiB: ARGON2_MEMORY_KIB, passes: ARGON2_PASSES });
    return [
      {
        ...rate("refresh", { perSecond: figures.refreshPerSecond, p99Ms: figures.refreshP99Ms }),
        ...{ target: `≥ ${REFRESH_TARGET_PER_SECOND}`, isMet: figures.refreshPerSecond >= REFRESH_TARGET_PER_SECOND },
      },
      rate("GET /api/auth/me", { perSecond: figures.mePerSecond, p99Ms: figures.meP99Ms }),
      rate("sign-in with a password", { perSecond: figures.signInPerSecond }),
      duration(`one argon2id hash (${figures.hashParameters})`, figures.hashMs),
      {
        ...plain("import of 1,000 plaintext passwords", `${figures.importSeconds.toFixed(1)} s`),
        ...{ target: `≤ ${IMPORT_TARGET_SECONDS} s`, isMet: figures.importSeconds <= IMPORT_TARGET_SECONDS },
      },
      {
        ...plain("slowest GET /api/health beside it", `${figures.healthMaxMs.toFixed(1)} ms`),
        p99: `${figures.healthP99Ms.toFixed(1)} ms`,
        ...{ target: `< ${HEALTH_TARGET_MS} ms`, isMet: figures.healthMaxMs < HEALTH_TARGET_MS },
      },
    ];
  },
};
