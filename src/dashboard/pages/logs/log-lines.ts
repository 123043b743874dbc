import { useQuery } from "@tanstack/react-query";
import { useEffect, useState } from "react";
import { queries, server } from "../../api/server.ts";
import type { useTimeRange } from "../../parts/list/time-range.tsx";

/** Number of log lines that are read initially, and bound of those kept. */
const LOG_LINES_READ = 300;
const LOG_LINES_MAX = 500;

export type Level = "info" | "warn" | "error";

export interface Line {
  at: string;
  level: Level;
  message: string;
  facts: object | null;
}

/** Live stream of the log. */
export const logSocket = server.openSocket("/api/admin/logs/live");

const textOf = ({ at, level, message, facts }: Line): string => JSON.stringify([at, level, message, facts]);

/** Concatenates `newer` and `lines`, without duplicates. */
function joined(newer: readonly Line[], lines: readonly Line[]): readonly Line[] {
  const newest = lines[0];
  if (newest === undefined) return newer;
  const read = new Set(lines.filter(({ at }) => at === newest.at).map(textOf));
  const unread = newer.filter((line) => line.at > newest.at || (line.at === newest.at && !read.has(textOf(line))));
  return [...unread, ...lines].slice(0, LOG_LINES_MAX);
}

type LogRange = Pick<ReturnType<typeof useTimeRange>, "from" | "to" | "key">;

/**
 * Returns the last lines of the log, newest first, followed live. After a lost connection the last lines are reread, as lines
 * logged meanwhile were not sent.
 */
export function useLogLines({ level, q, range }: { level: Level; q: string; range: LogRange }) {
  const read = useQuery({
    queryKey: ["logs", level, q, range.key],
    staleTime: Number.POSITIVE_INFINITY,
    refetchOnWindowFocus: false,
    queryFn: () =>
      server.request<{ lines: Line[] }>("GET", "/api/admin/logs", {
        query: { level, limit: LOG_LINES_READ, q: q === "" ? null : q, from: range.from(), to: range.to },
      }),
  });
  const [newer, setNewer] = useState<readonly Line[]>([]);
  const [refused, setRefused] = useState<string | null>(null);
  useEffect(() => {
    setNewer([]);
    setRefused(null);
    let waiting: Line[] = [];
    let frame: number | null = null;
    const show = (): void => {
      frame = null;
      const lines = waiting.reverse();
      waiting = [];
      setNewer((before) => [...lines, ...before].slice(0, LOG_LINES_MAX));
    };
    const release = logSocket.hold();
    const ends = [
      logSocket.onConnected(() => logSocket.send({ type: "follow", level, q })),
      logSocket.on("following", () => void queries.invalidateQueries({ queryKey: ["logs", level, q] })),
      logSocket.on("error", ({ message }) => setRefused(String(message))),
      logSocket.on("line", ({ line }) => {
        // The server writes lines in this form. Lines that arrive within a frame are shown together.
        waiting.push(line as Line);
        waiting = waiting.slice(-LOG_LINES_MAX);
        frame ??= requestAnimationFrame(show);
      }),
    ];
    return () => {
      for (const end of ends) end();
      if (frame !== null) cancelAnimationFrame(frame);
      release();
    };
  }, [level, q]);
  return { read, refused, lines: read.data === undefined ? null : joined(newer, read.data.lines) };
}

/** Returns how many lines are newer than those shown when paused. */
export function newerThan(paused: readonly Line[], lines: readonly Line[]): number {
  const [first] = paused;
  if (first === undefined) return lines.length;
  const text = textOf(first);
  const index = lines.findIndex((line) => textOf(line) === text);
  return index === -1 ? lines.length : index;
}
