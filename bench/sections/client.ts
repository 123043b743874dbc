import { measureClient } from "../../scripts/client/size.ts";
import { type ClientFigures, measureClientInBrowser } from "../cases/client.ts";
import type { Bench, Result, Section } from "../support/section.ts";
import { milliseconds } from "../support/statistics.ts";

const OPENING_MAX_MS = 60;
const SCREEN_P50_MAX_MS = 15;
const CORE_MAX = 0.25;
const BYTES_PER_KB = 1_000;
/** Target sizes of the bundle with tables, sign-in and live queries; with everything. */
const SIZE_TARGETS = [15 * BYTES_PER_KB, 30 * BYTES_PER_KB];

const percent = (part: number): string => `${(part * 100).toFixed(1)} %`;
const kilobytes = (bytes: number): string => `${(bytes / BYTES_PER_KB).toFixed(1)} KB`;

function coreResult(name: string, share: ClientFigures["apart"]): Result {
  const { process, changesPerSecond, notices } = share;
  const details = `${Math.round(changesPerSecond)} changes/s, ${Math.round(notices)} notices/s`;
  return {
    name: `${name}: ${details}`,
    measured: `${percent(process)} of a core`,
    p50: null,
    p99: null,
    floor: null,
    ratio: null,
    target: `< ${percent(CORE_MAX)}`,
    isMet: process < CORE_MAX,
  };
}

export const client: Section = {
  name: "client",
  title: "The client in a browser",
  about:
    "Live queries in a real Chromium on the server's machine, which shares its cores with the server and with what writes. First result: from `live()` of a new client, with its connection, until 50 items are there (40 times). Screen: from the request of another program until the new item is in the document (300 inserts). Load: 50 live queries of 1,000 records with listeners that read the items, 200 changes a second for 15 s, CPU time of the page's process; each change concerns one query, or all 50 (in different orders). Sizes: minified and gzipped, all files of the module that a page loads.",
  async run(bench: Bench): Promise<Result[]> {
    const { sizes } = await measureClient();
    const figures = await measureClientInBrowser((text) => bench.note(text));
    const none = { p50: null, p99: null, floor: null, ratio: null };
    return [
      ...sizes.map(({ what, bytes, maxBytes }, index) => ({
        ...none,
        name: `Size: ${what}`,
        measured: kilobytes(bytes),
        target: `≤ ${kilobytes(SIZE_TARGETS[index] ?? maxBytes)}`,
        isMet: bytes <= (SIZE_TARGETS[index] ?? maxBytes),
      })),
      {
        ...none,
        name: "First result after live()",
        measured: `${milliseconds(figures.openingP50Ms)}, at most ${milliseconds(figures.openingMaxMs)}`,
        target: `≤ ${OPENING_MAX_MS} ms`,
        isMet: figures.openingP50Ms <= OPENING_MAX_MS,
      },
      {
        ...none,
        name: "Another client's insert, to the screen",
        measured: milliseconds(figures.screenP50Ms),
        p50: milliseconds(figures.screenP50Ms),
        p99: milliseconds(figures.screenP99Ms),
        target: `p50 ≤ ${SCREEN_P50_MAX_MS} ms`,
        isMet: figures.screenP50Ms <= SCREEN_P50_MAX_MS,
      },
      coreResult("50 live queries of 1,000 records, one for each change", figures.apart),
      coreResult("50 live queries of 1,000 records, all for each change", figures.together),
    ];
  },
};
