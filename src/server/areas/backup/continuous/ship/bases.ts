/** The last versions of pages, the bases of differences: bounded, those that were not changed for longest go first. */
export class Bases {
  readonly #bytesMax: number;
  readonly #versions = new Map<string, { page: Uint8Array; hash: string }>();
  #bytes = 0;

  constructor(bytesMax: number) {
    this.#bytesMax = bytesMax;
  }

  /** Returns the version of a page with this hash; null: the page must be stored whole. */
  get(id: string, page: number, hash: string): Uint8Array | null {
    const known = this.#versions.get(`${id} ${page}`);
    return known?.hash === hash ? known.page : null;
  }

  set(id: string, page: number, version: { page: Uint8Array; hash: string }): void {
    const key = `${id} ${page}`;
    const known = this.#versions.get(key);
    if (known !== undefined) {
      this.#versions.delete(key);
      this.#bytes -= known.page.byteLength;
    }
    this.#versions.set(key, version);
    this.#bytes += version.page.byteLength;
    for (const [oldest, { page: dropped }] of this.#versions) {
      if (this.#bytes <= this.#bytesMax) break;
      this.#versions.delete(oldest);
      this.#bytes -= dropped.byteLength;
    }
  }
}
