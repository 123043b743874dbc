import { LARGE_ANSWER_BYTES, LARGE_ANSWERS_MAX_BYTES } from "../limits.ts";

/** A reservation of memory for one answer. */
export interface Reservation {
  /** Resolves when the answer may be taken in. */
  ready: Promise<void>;
  /** Releases the memory, or stops waiting for it. A second call does nothing. */
  release(): void;
}

interface Entry {
  callerName: string;
  sizeBytes: number;
  grant: () => void;
}

const SMALL: Reservation = { ready: Promise.resolve(), release: () => {} };

/**
 * Budget of memory for large answers, from the moment they leave their query process until their client has them. While it is full,
 * answers stay in their processes. [DB180]
 */
export type AnswerRoom = ReturnType<typeof createAnswerRoom>;

export function createAnswerRoom() {
  /** Waiting entries in order of arrival. */
  const waiting = new Set<Entry>();
  const held = new Set<Entry>();
  let heldBytes = 0;
  const heldBy = (callerName: string): number => {
    let bytes = 0;
    for (const entry of held) if (entry.callerName === callerName) bytes += entry.sizeBytes;
    return bytes;
  };
  /** Admits one answer of each caller, and more of them in half of the room. */
  const mayHold = ({ callerName, sizeBytes }: Entry): boolean => {
    const bytes = heldBy(callerName);
    return bytes === 0 || bytes + sizeBytes <= LARGE_ANSWERS_MAX_BYTES / 2;
  };
  /** Returns the next entry to admit: that of the caller who holds least. */
  const next = (): Entry | null => {
    let found: Entry | null = null;
    let least = Number.POSITIVE_INFINITY;
    for (const entry of waiting) {
      const bytes = heldBy(entry.callerName);
      if (bytes >= least || !mayHold(entry)) continue;
      found = entry;
      least = bytes;
    }
    return found;
  };
  const admit = (): void => {
    for (let entry = next(); entry !== null; entry = next()) {
      if (heldBytes > 0 && heldBytes + entry.sizeBytes > LARGE_ANSWERS_MAX_BYTES) return;
      waiting.delete(entry);
      held.add(entry);
      heldBytes += entry.sizeBytes;
      entry.grant();
    }
  };
  return {
    reserve(callerName: string, sizeBytes: number): Reservation {
      if (sizeBytes < LARGE_ANSWER_BYTES) return SMALL;
      const { promise: ready, resolve: grant } = Promise.withResolvers<void>();
      const entry: Entry = { callerName, sizeBytes, grant };
      waiting.add(entry);
      admit();
      return {
        ready,
        release() {
          if (held.delete(entry)) heldBytes -= sizeBytes;
          waiting.delete(entry);
          admit();
        },
      };
    },
  };
}
