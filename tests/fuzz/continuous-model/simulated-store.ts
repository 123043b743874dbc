import type { Store } from "../../../src/server/areas/backup/continuous/store/store.ts";
import { BackupError } from "../../../src/server/areas/backup/types.ts";
import type { Random } from "../../support/random.ts";

const tagOf = (bytes: Uint8Array): string => String(Bun.hash(bytes));

/** Behaviour of the store at present. */
export type StoreMood = "well" | "failing" | "dead";

/**
 * An object store that fails: before it has stored an object, or after it, so that the answer is lost; or it stores an object twice,
 * the second time later, after others.
 */
export class SimulatedStore implements Store {
  readonly name = "The store";
  readonly objects = new Map<string, Uint8Array<ArrayBuffer>>();
  /** Copies that the storing process has written to its disk. */
  readonly copies = new Map<string, Uint8Array<ArrayBuffer>>();
  mood: StoreMood = "well";
  /** Called while an object is on its way. */
  meanwhile = (): void => {};
  readonly #random: Random;
  #late: [key: string, bytes: Uint8Array<ArrayBuffer>][] = [];

  constructor(random: Random) {
    this.#random = random;
  }

  async read(key: string): Promise<Uint8Array<ArrayBuffer> | null> {
    if (this.mood === "dead") throw new BackupError("the store is dead");
    return this.objects.get(key) ?? null;
  }

  async fetch(): Promise<boolean> {
    throw new BackupError("the model restores in memory");
  }

  async put(key: string, bytes: Uint8Array<ArrayBuffer>): Promise<void> {
    const random = this.#random;
    this.meanwhile();
    if (this.mood === "dead") throw new BackupError("the store is dead");
    const isFailing = this.mood === "failing" && random.chance(0.4);
    const isStored = !isFailing || random.chance(0.5);
    if (isStored) this.objects.set(key, bytes);
    // A manifest is replaced, and a late one would bring an older back.
    if (!key.startsWith("probes/") && key.includes("/") && random.chance(0.05)) this.#late.push([key, bytes]);
    if (isFailing) throw new BackupError("the store failed");
  }

  async putFile(key: string, path: string): Promise<void> {
    const bytes = this.copies.get(path);
    if (bytes === undefined) throw new BackupError(`${path} is gone`);
    await this.put(key, bytes);
  }

  async *list(prefix: string): AsyncGenerator<{ key: string; bytes: number }> {
    for (const [key, { byteLength }] of this.objects) if (key.startsWith(prefix)) yield { key, bytes: byteLength };
  }

  async readTagged(key: string): Promise<{ text: string; tag: string } | null> {
    const bytes = await this.read(key);
    return bytes === null ? null : { text: new TextDecoder().decode(bytes), tag: tagOf(bytes) };
  }

  async putIf(key: string, bytes: Uint8Array<ArrayBuffer>, tag: string | null): Promise<boolean> {
    const present = this.objects.get(key);
    if ((present === undefined ? null : tagOf(present)) !== tag) return false;
    await this.put(key, bytes);
    return true;
  }

  async remove(key: string): Promise<boolean> {
    if (this.mood !== "well") throw new BackupError("the store failed");
    return this.objects.delete(key);
  }

  /** Stores what was stored twice. */
  arrive(): void {
    for (const [key, bytes] of this.#late) this.objects.set(key, bytes);
    this.#late = [];
  }
}
