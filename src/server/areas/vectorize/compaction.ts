import type { Logger } from "../../../kernel/logger.ts";
import type { DatabaseFile } from "../../db/index.ts";
import { COMPACT_AFTER_DELETIONS, COMPACT_STEP_VECTORS } from "./limits.ts";

/**
 * sqlite-vec adds vectors to its newest chunk only, and frees a chunk when its last vector is deleted. After many scattered
 * deletions, nearly empty chunks would remain and still be searched, so their remaining vectors are moved to the newest one.
 */
export interface Compaction {
  /** Counts deletions, and compacts in the background when there have been many. */
  afterDeletions(count: number): void;
  /** Stops compacting. Resolves when no step is running. */
  stop(): Promise<void>;
}

/** The emptiest chunk that is at most half full, except the newest one, which is being filled. */
const SPARSE_CHUNK = `SELECT chunk_id FROM vectors_rowids GROUP BY chunk_id
  HAVING count(*) * 2 <= ?1 AND chunk_id < (SELECT max(chunk_id) FROM vectors_chunks) ORDER BY count(*) LIMIT 1`;
const ROWS_OF_CHUNK = "SELECT rowid FROM vectors_rowids WHERE chunk_id = ?1 LIMIT ?2";

export function createCompaction(deps: { file: DatabaseFile; chunkVectors: number; logger: Logger }): Compaction {
  const { file, chunkVectors, logger } = deps;
  let deletionCount = 0;
  let isStopped = false;
  let running: Promise<void> | null = null;

  const moveSome = (chunkId: number): Promise<number> =>
    file.write((tx) => {
      const rows = tx.query<{ rowid: number }>(ROWS_OF_CHUNK).all(chunkId, COMPACT_STEP_VECTORS);
      for (const { rowid } of rows) {
        const stored = tx.query<{ embedding: Uint8Array }>("SELECT embedding FROM vectors WHERE rowid = ?1").get(rowid);
        if (stored === null) continue;
        tx.query("DELETE FROM vectors WHERE rowid = ?1").run(rowid);
        tx.query("INSERT INTO vectors (rowid, embedding) VALUES (?1, ?2)").run(rowid, stored.embedding);
      }
      return rows.length;
    });
  const compact = async (): Promise<void> => {
    while (!isStopped) {
      const [sparse] = await file.read(SPARSE_CHUNK, [chunkVectors]);
      const chunkId = sparse?.[0];
      if (typeof chunkId !== "number") return;
      while (!isStopped && (await moveSome(chunkId)) > 0);
    }
  };

  return {
    afterDeletions(count) {
      deletionCount += count;
      if (deletionCount < COMPACT_AFTER_DELETIONS || running !== null || isStopped) return;
      deletionCount = 0;
      running = compact()
        .catch((cause: unknown) => logger.error("compacting a vector index failed", { path: file.path, cause }))
        .finally(() => {
          running = null;
        });
    },
    async stop() {
      isStopped = true;
      await running;
    },
  };
}
