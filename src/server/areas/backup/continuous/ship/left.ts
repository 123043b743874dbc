import { commitsOf, FRAME_HEADER_BYTES } from "../../../../db/capture/commit-frames.ts";
import type { LeftFrames } from "../capture/records.ts";
import type { ChainEntry } from "./chain.ts";
import { follows, type Tracked } from "./tracked-file.ts";

export function beginLeft(file: Tracked, { number, nonce }: LeftFrames): void {
  const since = file.doubtedSince ?? file.chain?.last;
  file.left = since == null ? null : { number, nonce, since, frames: null, open: new Map() };
}

/** Leads the chain on by frames that a crash has left. false: something before them is missing. */
export function followLeft(
  file: Tracked,
  { left, content }: { left: LeftFrames; content: Uint8Array<ArrayBuffer> },
  take: (entry: ChainEntry) => void,
): boolean {
  const { chain, left: known } = file;
  if (chain === null || known === null) return true;
  const { pageBytes, salts, first } = left;
  const isNext = follows(known.frames, left) && chain.id === left.file && chain.hashes.pageBytes === pageBytes;
  known.frames = { salts, next: first + content.byteLength / (FRAME_HEADER_BYTES + pageBytes) };
  for (const commit of isNext ? commitsOf(content, pageBytes, known.open) : []) {
    // Nothing says whether the file was opened, changed and closed since the last commit that is stored.
    const entry = chain.commit(commit, "same");
    if (entry === "known") continue;
    if (entry === "broken") {
      file.left = null;
      return false;
    }
    take(entry);
  }
  if (!isNext) file.left = null;
  return isNext;
}

/** Reports whether the chain has come to the last commit that was left. */
export const isFollowed = ({ chain, left }: Tracked): boolean =>
  left !== null && chain?.last?.number === left.number && chain.last.nonce === left.nonce;

/** Goes on with the chain of a file that was left open. What it holds is confirmed later. */
export function resume(file: Tracked): void {
  file.state = "ready";
  file.doubtedSince = file.left?.since ?? null;
  file.left = null;
}
