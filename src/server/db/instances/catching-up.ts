import type { OpenedFile } from "../types.ts";

/** Returns the work of a file that was opened, before anybody uses it; undefined: there is none. */
export type CatchUp = (file: OpenedFile) => Promise<void> | undefined;

/** Keeps others from files of instances until their work after the opening is done, and these files open meanwhile. */
export class CatchingUp {
  readonly #catchUp: CatchUp | undefined;
  /** The work of opened files before they are used; null: it has failed. */
  readonly #behind = new Map<string, Promise<void> | null>();
  /** Files that stay open, by the number of those who need them. */
  readonly #held = new Map<string, number>();

  constructor(catchUp: CatchUp | undefined) {
    this.#catchUp = catchUp;
  }

  /** Whether files have such work at all. */
  get isNeeded(): boolean {
    return this.#catchUp !== undefined;
  }

  /** Whether the file has to stay open. */
  isHeld(instanceId: string): boolean {
    return this.#held.has(instanceId);
  }

  forget(instanceId: string): void {
    this.#behind.delete(instanceId);
  }

  /** Does the work of a file beside its use. */
  async run(instanceId: string, file: OpenedFile): Promise<void> {
    await this.#holding(instanceId, this.#catchUp?.(file));
  }

  /** Begins the work of a file that was opened. */
  begin(instanceId: string, file: OpenedFile): void {
    const work = this.#catchUp?.(file);
    if (work === undefined) {
      this.#behind.delete(instanceId);
      return;
    }
    const done = this.#holding(instanceId, work).then(
      () => void this.#behind.delete(instanceId),
      (cause: unknown) => {
        this.#behind.set(instanceId, null);
        throw cause;
      },
    );
    // Those who wait get the error.
    done.catch(() => {});
    this.#behind.set(instanceId, done);
  }

  /** Resolves when the open file may be used; undefined: now. Work that has failed is begun again. */
  before(instanceId: string, file: OpenedFile): Promise<void> | undefined {
    if (this.#behind.size === 0) return undefined;
    if (this.#behind.get(instanceId) === null) this.begin(instanceId, file);
    return this.#behind.get(instanceId) ?? undefined;
  }

  async #holding(instanceId: string, work: Promise<void> | undefined): Promise<void> {
    this.#held.set(instanceId, (this.#held.get(instanceId) ?? 0) + 1);
    try {
      await work;
    } finally {
      const others = (this.#held.get(instanceId) ?? 1) - 1;
      if (others === 0) this.#held.delete(instanceId);
      else this.#held.set(instanceId, others);
    }
  }
}
