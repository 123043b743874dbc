import { mkdir, open, readFile, rename } from "node:fs/promises";
import { dirname } from "node:path";
import { AppError, insufficientStorage, isDiskFull, isMissing } from "../../../../kernel/errors.ts";
import { serveJobs } from "../../../db/processes/program.ts";
import { THUMB_PROCESSOR_CHECK_MS } from "../limits.ts";
import { bytesMissing } from "./local-files.ts";
import { isWholeWebp, type PictureSize, scaled } from "./picture.ts";

const MICROSECONDS_PER_MS = 1_000;

/** Request of the server: the thumbnail of one picture, and the path to write it to. */
export interface ThumbRequest {
  /** Path of the picture; null when its bytes came with the request. */
  source: string | null;
  size: PictureSize;
  pixelsMax: number;
  /** Processor time that decoding may take. */
  processorMs: number;
  path: string;
  /** Path to which the thumbnail is written before the rename. The server removes this file after it has killed the process. */
  unfinishedPath: string;
}

export interface ThumbFailure {
  /** HTTP status; null for an unexpected failure. */
  status: number | null;
  message: string;
}

/** Exit code of a process whose picture has used up its processor time. */
export const TIME_OVER_EXIT_CODE = 3;

/**
 * Runs the program that decodes pictures: a hostile one may take minutes, and only the end of a process ends that.
 * Processor time is limited, so that a busy machine refuses no ordinary picture.
 */
export function start(): void {
  serveJobs<ThumbRequest>({
    async run(request, { attached }) {
      const unwatch = watchProcessorTime(request.processorMs);
      try {
        // Another request may have made the same thumbnail meanwhile.
        if (isWholeWebp(request.path)) return;
        const source = request.source === null ? Buffer.concat(attached) : await readSource(request.source);
        await writeWhole(request, await scaled(source, request.size, request.pixelsMax));
      } finally {
        unwatch();
      }
    },
    failureOf: (thrown): ThumbFailure => {
      const cause = isDiskFull(thrown) ? insufficientStorage(thrown) : thrown;
      const message = cause instanceof Error ? cause.message : String(cause);
      return { status: cause instanceof AppError ? cause.status : null, message };
    },
  });
}

/** Ends the process after `maxMs` of processor time. Works during decoding, which runs on another thread. */
function watchProcessorTime(maxMs: number): () => void {
  const before = process.cpuUsage();
  const timer = setInterval(() => {
    const { user, system } = process.cpuUsage(before);
    if ((user + system) / MICROSECONDS_PER_MS > maxMs) process.exit(TIME_OVER_EXIT_CODE);
  }, THUMB_PROCESSOR_CHECK_MS);
  return () => clearInterval(timer);
}

async function readSource(path: string): Promise<Buffer> {
  try {
    return await readFile(path);
  } catch (cause) {
    if (isMissing(cause)) throw bytesMissing();
    throw cause;
  }
}

/** Writes and syncs the thumbnail, then renames it into place: no reader and no crash finds a part of it under its name. */
async function writeWhole({ path, unfinishedPath }: ThumbRequest, bytes: Uint8Array): Promise<void> {
  await mkdir(dirname(path), { recursive: true });
  const handle = await open(unfinishedPath, "wx", 0o600);
  try {
    await handle.writeFile(bytes);
    await handle.datasync();
  } finally {
    await handle.close();
  }
  await rename(unfinishedPath, path);
}
