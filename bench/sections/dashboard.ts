import { measureDashboard } from "../cases/dashboard.ts";
import type { Bench, Result, Section } from "../support/section.ts";
import { milliseconds } from "../support/statistics.ts";

const FIRST_VIEW_MAX_BYTES = 250_000;
const EMBEDDED_MAX_BYTES = 6_000_000;
const CLICK_MAX_MS = 150;
const FRAME_MAX_MS = 17;
const SMOOTH_MIN = 0.95;

const kilobytes = (bytes: number): string => `${Math.round(bytes / 1_000)} kB`;
const percent = (part: number): string => `${Math.round(part * 100)} %`;

export const dashboard: Section = {
  name: "dashboard",
  title: "The dashboard in a browser",
  about:
    "In a real Chromium on the server's machine, which draws without a graphics card and shares the cores with the server. Bytes over the wire are those of the pages' own files, compressed, with their headers. Clicks: Tables, a table of 100,000 records, Users and Settings, four times, from the click until data of the page is in the document. Scrolling: through 100,000 records, 200 pixels a frame.",
  async run(bench: Bench): Promise<Result[]> {
    const figures = await measureDashboard((text) => bench.note(text));
    const none = { p50: null, p99: null, floor: null, ratio: null };
    const firstView = (name: string, bytes: number): Result => ({
      ...none,
      name: `First view: ${name}`,
      measured: kilobytes(bytes),
      target: `≤ ${kilobytes(FIRST_VIEW_MAX_BYTES)}`,
      isMet: bytes <= FIRST_VIEW_MAX_BYTES,
    });
    return [
      firstView("signing in", figures.signInBytes),
      firstView("Overview with its charts", figures.overviewBytes),
      {
        ...none,
        name: "In the executable",
        measured: kilobytes(figures.embeddedBytes),
        target: `≤ ${kilobytes(EMBEDDED_MAX_BYTES)}`,
        isMet: figures.embeddedBytes <= EMBEDDED_MAX_BYTES,
      },
      {
        ...none,
        name: "Data of a page, from the click",
        measured: `${milliseconds(figures.clickP50Ms)}, at most ${milliseconds(figures.clickMaxMs)}`,
        target: `≤ ${CLICK_MAX_MS} ms`,
        isMet: figures.clickMaxMs <= CLICK_MAX_MS,
      },
      {
        ...none,
        name: "Scrolling through 100,000 records",
        measured: `${milliseconds(figures.frameP50Ms)} a frame, p95 ${milliseconds(figures.frameP95Ms)}, ${percent(figures.smoothShare)} within 20 ms`,
        target: `≤ ${FRAME_MAX_MS} ms, ${percent(SMOOTH_MIN)} within 20 ms`,
        isMet: figures.frameP50Ms <= FRAME_MAX_MS && figures.smoothShare >= SMOOTH_MIN,
      },
    ];
  },
};
