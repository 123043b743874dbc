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

  /** Copies a version, into the memory of the one before it: most pages that change are bases already. */
  set(id: string, page: number, version: { page: Uint8Array; hash: string }): void {
    const key = `${id} ${page}`;
    const known = this.#versions.get(key);
    if (known?.page.byteLength === version.page.byteLength) {
      this.#versions.delete(key);
      known.page.set(version.page);
      known.hash = version.hash;
      this.#versions.set(key, known);
      return;
    }
    if (known !== undefined) this.#drop(key, known.page);
    this.#versions.set(key, { page: version.page.slice(), hash: version.hash });
    this.#bytes += version.page.byteLength;
    for (const [oldest, { page: dropped }] of this.#versions) {
      if (this.#bytes <= this.#bytesMax) break;
      this.#drop(oldest, dropped);
    }
  }

  #drop(key: string, page: Uint8Array): void {
    this.#versions.delete(key);
    this.#bytes -= page.byteLength;
  }
}
