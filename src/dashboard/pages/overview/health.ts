import { useQuery } from "@tanstack/react-query";
import { server } from "../../api/server.ts";
import { type Begun, endsWithSession, useRights } from "../../api/session.tsx";
import { FIGURES_EVERY_MS } from "../../limits.ts";

/** Looks at the server that the charts of the overview keep: an hour of them. */
const SAMPLES_MAX = 720;

type Figures = { ok: boolean } & Readonly<Record<string, unknown>>;

interface Health {
  status: string;
  version: string;
  /** Seconds. */
  uptime: number;
  /** For keys that may read the system only. */
  checks?: Readonly<Record<string, Figures>>;
}

/** What the server was like at a time. */
export interface Sample {
  at: number;
  realtime: number;
  rooms: number;
  memoryBytes: number;
}

/** Since the dashboard was opened, the oldest first: the server keeps none. */
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
      return { ...health, samples: [...samples] };
    },
  });
}
