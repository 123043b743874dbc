/** The last versions of pages, the bases of differences: bounded, those that were not changed for longest go first. */
export class Bases {
  readonly #bytesMax: number;
  readonly #versions = new Map<string, { page: Uint8Array; hash: string }>();
  #bytes = 0;

  constructor(bytesMax: number) {
    this.#bytesMax = bytesMax;
  }

  /** Returns the version of a page with this hash, valid until the next `set`; null: the page must be stored whole. */
  get(id: string, page: number, hash: string): Uint8Array | null {
    const known = this.#versions.get(`${id} ${page}`);
    return known?.hash === hash ? known.page : null;
  }

  /** Copies a version, into the memory of the one before it or of the oldest: pages that are taken anew scatter the memory. */
  set(id: string, page: number, version: { page: Uint8Array; hash: string }): void {
    const key = `${id} ${page}`;
    const { byteLength } = version.page;
    let memory = this.#drop(key);
    for (const oldest of this.#versions.keys()) {
      if (this.#bytes + byteLength <= this.#bytesMax) break;
      memory = this.#drop(oldest);
    }
    if (memory?.byteLength === byteLength) memory.set(version.page);
    else memory = version.page.slice();
    this.#versions.set(key, { page: memory, hash: version.hash });
    this.#bytes += byteLength;
  }

  /** Forgets a version. Returns its memory; null: there is none. */
  #drop(key: string): Uint8Array | null {
    const known = this.#versions.get(key);
    if (known === undefined) return null;
    this.#versions.delete(key);
    this.#bytes -= known.page.byteLength;
    return known.page;
  }
}
