import { useQuery } from "@tanstack/react-query";
import { server } from "../../api/server.ts";
import { type Begun, endsWithSession, useRights } from "../../api/session.tsx";
import { FIGURES_EVERY_MS } from "../../limits.ts";

/** Bound of the samples kept for the overview's charts: one hour. */
const SAMPLES_MAX = 720;

type Figures = { ok: boolean } & Readonly<Record<string, unknown>>;

/** A process of the server. */
export interface Process {
  pid: number;
  role: string;
  requests: number;
  /** Resident bytes. */
  memory: number;
  loopMs: number;
}

interface Health {
  status: string;
  version: string;
  /** Uptime in seconds. */
  uptime: number;
  /** Checks, only for keys that may read the system. */
  checks?: Readonly<Record<string, Figures>> & { readonly processes?: readonly Process[] & Figures };
}

/** State of the server at one time. */
export interface Sample {
  at: number;
  realtime: number;
  rooms: number;
  memoryBytes: number;
}

/** Samples since the dashboard was opened, oldest first. The server keeps none. */
const samples: Sample[] = [];

const SAMPLES: Begun = {
  finish: async () => {},
  forget() {
    samples.length = 0;
  },
};

function keep({ sockets, memory }: NonNullable<Health["checks"]>): void {
  const amount = (figures: Figures | undefined, name: string): number => Number(figures?.[name] ?? 0);
  endsWithSession(SAMPLES);
  samples.push({
    at: Date.now(),
    realtime: amount(sockets, "realtime"),
    rooms: amount(sockets, "rooms"),
    memoryBytes: amount(memory, "residentBytes"),
  });
  if (samples.length > SAMPLES_MAX) samples.shift();
}

export function useHealth() {
  const isFull = useRights().may("system", "*", "*", "read");
  return useQuery({
    queryKey: ["health", isFull],
    refetchInterval: FIGURES_EVERY_MS,
    async queryFn() {
      const health = await server.request<Health>("GET", isFull ? "/api/health?full" : "/api/health");
      if (health.checks !== undefined) keep(health.checks);
      const processes: readonly Process[] = health.checks?.processes ?? [];
      return { ...health, processes, samples: [...samples] };
    },
  });
}
