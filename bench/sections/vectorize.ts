import { measureVectors } from "../cases/vectorize.ts";
import type { Bench, Result, Section } from "../support/section.ts";
import { milliseconds, perSecond } from "../support/statistics.ts";

const TARGET_RATIO = 1.3;
const HEALTH_TARGET_MS = 20;

const plain = (name: string, measured: string): Result => ({
  ...{ name, measured, p50: null, p99: null, floor: null, ratio: null, target: null, isMet: null },
});

export const vectors: Section = {
  name: "vectorize",
  title: "Vectors",
  about:
    "50,000 GloVe embeddings of 100 dimensions, the 10 nearest, one search after another through HTTP. What they are compared with " +
    "is sqlite-vec's own query on a file of its own in the process that measures, without a server: a ratio of times, the lower " +
    "the better.",
  async run(bench: Bench): Promise<Result[]> {
    bench.note("vectors: searches of 50,000 embeddings");
    // What the tests' support starts.
    process.env["PLATFORM_EXECUTABLE"] = bench.executable;
    const figures = await measureVectors();
    const ratio = figures.searchP50Ms / figures.bareP50Ms;
    return [
      {
        ...plain("search (cosine)", milliseconds(figures.searchP50Ms)),
        ...{ p50: milliseconds(figures.searchP50Ms), floor: milliseconds(figures.bareP50Ms), ratio },
        ...{ target: `≤ ${TARGET_RATIO} of the bare query`, isMet: ratio <= TARGET_RATIO },
      },
      plain("search (cosine), filtered to one in twenty", milliseconds(figures.filteredP50Ms)),
      plain("search (dot product)", milliseconds(figures.productP50Ms)),
      plain("upsert, 1000 a request", perSecond(figures.upsertedPerSecond, "vectors")),
      {
        ...plain("GET /api/health beside eight searches", milliseconds(figures.healthP99Ms)),
        ...{ p99: milliseconds(figures.healthP99Ms), target: `p99 < ${HEALTH_TARGET_MS} ms` },
        isMet: figures.healthP99Ms < HEALTH_TARGET_MS,
      },
    ];
  },
};
