import { measureStorage } from "../cases/storage.ts";
import type { Section } from "../support/section.ts";
import { latency, rate } from "./figures.ts";

const DOWNLOAD_TARGET = 0.8;
const UPLOAD_TARGET = 0.6;
const LIST_TARGET_MS = 5;

export const storage: Section = {
  name: "storage",
  title: "File storage",
  about: `Files of 1 MiB, 16 connections of wrk; uploads are forms as browsers send them, durable when answered. The floor is a bare
server that answers with \`Bun.file\`, and one that writes and syncs what it is sent (\`bench/storage-floor.ts\`). In turns, five
rounds of three seconds; medians. Lists: one client, pages of 100 at random places of a bucket with 100,000 files.`,
  async run(bench) {
    bench.note("file storage");
    const figures = await measureStorage();
    const down = rate("download of 1 MiB", {
      ...{ perSecond: figures.downloadsPerSecond, p99Ms: figures.downloadP99Ms },
      floorPerSecond: figures.downloadFloorPerSecond,
    });
    const up = rate("upload of 1 MiB, durable", {
      ...{ perSecond: figures.uploadsPerSecond, p99Ms: figures.uploadP99Ms },
      floorPerSecond: figures.uploadFloorPerSecond,
    });
    return [
      { ...down, target: `≥ ${DOWNLOAD_TARGET} of the floor`, isMet: (down.ratio ?? 0) >= DOWNLOAD_TARGET },
      { ...up, target: `≥ ${UPLOAD_TARGET} of the floor`, isMet: (up.ratio ?? 0) >= UPLOAD_TARGET },
      {
        ...latency("list of 100 among 100,000", { p50Ms: figures.listP50Ms, p99Ms: figures.listP99Ms }),
        ...{ target: `p50 < ${LIST_TARGET_MS} ms`, isMet: figures.listP50Ms < LIST_TARGET_MS },
      },
    ];
  },
};
