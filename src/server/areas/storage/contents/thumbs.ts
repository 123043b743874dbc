import { mkdirSync } from "node:fs";
import { readdir, rmdir } from "node:fs/promises";
import { join } from "node:path";
import { LRUCache } from "lru-cache";
import type { Clock } from "../../../../kernel/clock.ts";
import { AppError, clientGone, tooLarge } from "../../../../kernel/errors.ts";
import type { Ids } from "../../../../kernel/ids.ts";
import { SECOND_MS } from "../../../../kernel/time/duration.ts";
import type { StorageConfig } from "../../../config/types.ts";
import type { ReadCaller } from "../../../db/index.ts";
import type { Blocks, Job } from "../../../db/processes/job.ts";
import { ProcessPool } from "../../../db/processes/pool.ts";
import {
  PIXELS_PER_MEGAPIXEL,
  THUMB_BLOCK_BYTES,
  THUMB_PROCESS_IDLE_MS,
  THUMB_PROCESSOR_MS,
  THUMB_PROCESSOR_MS_PER_MEGAPIXEL,
  THUMB_SOURCE_MAX_BYTES,
  THUMB_SOURCE_MEGAPIXELS_DEFAULT,
  THUMB_TIME_PER_PROCESSOR_TIME,
  THUMBS_AT_ONCE_DEFAULT,
  THUMBS_REFUSED_MAX,
  THUMBS_REFUSED_MS,
  THUMBS_WAIT_MS,
  THUMBS_WAITING_MAX,
} from "../limits.ts";
import type { Bucket, Content, StoredId, StoredObject } from "../model/types.ts";
import { FOLDER_NAME_LENGTH, thumbContent, thumbFolder, thumbPath, undeclared } from "./kept-thumbs.ts";
import { removeFile } from "./local-files.ts";
import { isWholeWebp, parseSize } from "./picture.ts";
import { type ThumbFailure, type ThumbRequest, TIME_OVER_EXIT_CODE } from "./thumb-job.ts";

interface ThumbsDeps {
  directory: string;
  config: StorageConfig["thumbs"];
  ids: Ids;
  clock: Clock;
  /** Processor time that decoding may take at the default of `maxMegapixels`; by default 2,000. */
  decodeMs?: number;
}

/**
 * Makes and keeps thumbnails of pictures, as `directory/XX/FILE-ID/SIZE`; XX are the last two characters of the id.
 * Pictures are decoded in processes that can be killed: how long one takes is known only when it is done. [ST330]
 */
export class Thumbs {
  readonly #directory: string;
  readonly #ids: Ids;
  readonly #pixelsMax: number;
  readonly #decodeMs: number;
  readonly #pool: ProcessPool;
  /** Files that took too long to decode: a page that shows one would occupy a process for each of its visitors. */
  readonly #refused = new LRUCache<string, AppError>({ max: THUMBS_REFUSED_MAX, ttl: THUMBS_REFUSED_MS });

  constructor({ directory, config, ids, clock, decodeMs = THUMB_PROCESSOR_MS }: ThumbsDeps) {
    const { atOnce = THUMBS_AT_ONCE_DEFAULT, maxMegapixels = THUMB_SOURCE_MEGAPIXELS_DEFAULT } = config ?? {};
    this.#directory = directory;
    this.#ids = ids;
    this.#pixelsMax = maxMegapixels * PIXELS_PER_MEGAPIXEL;
    this.#decodeMs = decodeMs * Math.max(1, maxMegapixels / THUMB_SOURCE_MEGAPIXELS_DEFAULT);
    this.#pool = new ProcessPool({
      clock,
      program: "areas/storage/contents/thumb-job",
      settings: null,
      processesMax: atOnce,
      placesMax: THUMBS_WAITING_MAX,
      idleMs: THUMB_PROCESS_IDLE_MS,
      // One process stays free for the pictures of other callers.
      shareOf: (_, free) => Math.ceil(free / 2),
    });
    mkdirSync(directory, { recursive: true });
  }

  /**
   * Returns the picture scaled to fit into `size` (`200x200`), never enlarged, as WebP; made once and kept. Errors: 400 for
   * a size that the bucket does not declare, 415 for a file that is not a picture, 413 for one that is too large to decode
   * or takes too long, 503 when too many requests wait, 499 when the caller is gone.
   */
  async content(bucket: Bucket, object: StoredObject, size: string, caller: ReadCaller): Promise<Content> {
    if (bucket.config.thumbs?.includes(size) !== true) throw undeclared(bucket);
    const asked = { directory: this.#directory, fileId: object.fileId, size };
    const path = thumbPath(asked);
    if (!isWholeWebp(path)) await this.#make({ bucket, object, size, path }, caller);
    return thumbContent(asked);
  }

  /** Removes the thumbnails of a file in every size. */
  async remove(fileId: string): Promise<void> {
    const folder = thumbFolder({ directory: this.#directory, fileId });
    for (const name of await readdir(folder).catch(() => [])) await removeFile(join(folder, name));
    await rmdir(folder).catch(() => {}); // Most files have no thumbnails.
  }

  /** Yields the files that have thumbnails, in groups, for the sweep. */
  async *fileIds(): AsyncGenerator<readonly StoredId[]> {
    for (const name of await readdir(this.#directory)) {
      // Skips what a file manager leaves there, such as `.DS_Store`.
      if (name.length !== FOLDER_NAME_LENGTH) continue;
      yield (await readdir(join(this.#directory, name))).map((fileId) => ({ fileId, writtenAt: null }));
    }
  }

  stop(): Promise<void> {
    return this.#pool.stop();
  }

  async #make(
    { bucket, object, size, path }: { bucket: Bucket; object: StoredObject; size: string; path: string },
    { callerName, signal }: ReadCaller,
  ): Promise<void> {
    const { fileId } = object;
    const fit = parseSize(size);
    if (fit === null) throw undeclared(bucket);
    if (object.size > THUMB_SOURCE_MAX_BYTES) {
      throw tooLarge(`A picture must be at most ${THUMB_SOURCE_MAX_BYTES} bytes for a thumbnail, got ${object.size}`);
    }
    const known = this.#refused.get(fileId);
    if (known !== undefined) throw known;
    const encodeMs = THUMB_PROCESSOR_MS_PER_MEGAPIXEL * ((fit.width * fit.height) / PIXELS_PER_MEGAPIXEL);
    const processorMs = this.#decodeMs + encodeMs;
    const source = bucket.files.localPath(fileId);
    const unfinishedPath = `${path}.${this.#ids.uuid()}`;
    const ended = (exit: string): AppError => {
      if (exit !== TIME_OVER_EXIT) return new AppError(503, "The process that makes thumbnails ended unexpectedly");
      const error = tooLarge(`This picture takes more than ${(processorMs / SECOND_MS).toFixed(1)} s to scale down`);
      this.#refused.set(fileId, error);
      return error;
    };
    const pixelsMax = this.#pixelsMax;
    const job: Job = {
      request: { source, size: fit, pixelsMax, processorMs, path, unfinishedPath } satisfies ThumbRequest,
      ...(source === null ? { attached: () => blocksOf(bucket, object) } : null),
      caller: callerName,
      places: 1,
      waitMs: THUMBS_WAIT_MS,
      runMs: processorMs * THUMB_TIME_PER_PROCESSOR_TIME,
      signals: signal === undefined ? [] : [{ signal, reason: clientGone }],
      refusals: { ...REFUSALS, ended },
      failed: failureOf,
    };
    try {
      await this.#pool.run(job);
    } catch (cause) {
      await removeFile(unfinishedPath).catch(() => {});
      throw cause;
    }
  }
}

/** Text of `describeExit` for that exit code. */
const TIME_OVER_EXIT = `exit code ${TIME_OVER_EXIT_CODE}`;

const REFUSALS: Omit<Job["refusals"], "ended"> = {
  queueFull: () => new AppError(503, "Too many thumbnails are being made"),
  waitedTooLong: () =>
    new AppError(503, `The thumbnail waited ${THUMBS_WAIT_MS / SECOND_MS} s for others and has not begun`),
  ranTooLong: () => new AppError(503, "The thumbnail could not be made in time"),
};

function failureOf(failure: unknown): Error {
  const { status, message } = failure as ThumbFailure; // The shape that the program sends.
  return status === null ? new Error(`A thumbnail cannot be made: ${message}`) : new AppError(status, message);
}

/** Reads the bytes of a file in an object store. Errors: 503. */
async function blocksOf({ files }: Bucket, { fileId, size }: StoredObject): Promise<Blocks> {
  const body = await files.body(fileId, { start: 0, end: size, size });
  const bytes = await new Response(body).bytes();
  const blocks: Uint8Array<ArrayBuffer>[] = [];
  // Copies: a message transfers the whole buffer of its bytes.
  for (let from = 0; from < size; from += THUMB_BLOCK_BYTES) blocks.push(bytes.slice(from, from + THUMB_BLOCK_BYTES));
  return blocks;
}
