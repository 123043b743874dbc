import { KEPT_MAX_BYTES, KEPT_POSITIONS } from "./limits.ts";
import type { LogEntry, Place } from "./statements.ts";

/** The last positions that a node has applied or appended, without a gap. */
export class KeptEntries {
  #entries: LogEntry[] = [];
  #bytes = 0;

  add(entry: LogEntry): void {
    const last = this.#entries.at(-1);
    const first = this.#entries[0];
    if (first !== undefined && last !== undefined && last.position + 1 !== entry.position) {
      // A file that is fetched anew goes through what is kept once more.
      if (this.#entries[entry.position - first.position]?.nonce === entry.nonce) return;
      this.clear();
    }
    this.#entries.push(entry);
    this.#bytes += bytesOf(entry);
    if (this.#entries.length > 2 * KEPT_POSITIONS) this.#drop(this.#entries.length - KEPT_POSITIONS);
    let count = 0;
    for (let bytes = this.#bytes; bytes > KEPT_MAX_BYTES; count += 1) bytes -= bytesOf(this.#entries[count] ?? entry);
    if (count > 0) this.#drop(count);
  }

  clear(): void {
    this.#drop(this.#entries.length);
  }

  #drop(count: number): void {
    for (const dropped of this.#entries.splice(0, count)) this.#bytes -= bytesOf(dropped);
  }

  /** Whether another content is kept of this place. */
  differs({ position, nonce }: Place): boolean {
    const first = this.#entries[0]?.position ?? 0;
    const kept = this.#entries[position - first];
    return kept !== undefined && kept.nonce !== nonce;
  }

  /** Returns what follows this place, up to a position. null: it is not kept whole, or it follows another content. */
  after(place: Place, position: number): LogEntry[] | null {
    if (position === place.position) return [];
    const first = this.#entries[0];
    if (first === undefined || first.position > place.position + 1) return null;
    const found = this.#entries.slice(place.position + 1 - first.position, position + 1 - first.position);
    if (found.length !== position - place.position || found[0]?.previous !== place.nonce) return null;
    return found;
  }
}

const bytesOf = ({ body }: LogEntry): number => body.reduce((sum, { content }) => sum + content.byteLength, 0);
