import { AsyncLocalStorage } from "node:async_hooks";
import { WAITING_FOR_ROOM_MAX } from "../limits.ts";
import type { OpenedFile } from "../types.ts";

interface Waiting {
  /** Begins the work synchronously. */
  begin(file: OpenedFile): void;
  reject(error: unknown): void;
}

/** Work that waits until the file of its instance is open. */
export class WaitingWork {
  /** Waiting work by instance, in order of arrival. */
  readonly #byInstance = new Map<string, Waiting[]>();
  #count = 0;

  get isEmpty(): boolean {
    return this.#count === 0;
  }

  get isFull(): boolean {
    return this.#count >= WAITING_FOR_ROOM_MAX;
  }

  /**
   * Returns the instances in the order in which work first came for them. Those that are taken during the iteration are left out.
   */
  instanceIds(): Iterable<string> {
    return this.#byInstance.keys();
  }

  /**
   * Resolves to the result of `work`, which runs in the context of the request that adds it: the request that opens the file has
   * another actor for the audit log, and another origin for triggers. [DB105]
   */
  add<T>(instanceId: string, work: (file: OpenedFile) => Promise<T>): Promise<T> {
    const asAdded = AsyncLocalStorage.bind(work);
    return new Promise<T>((resolve, reject) => {
      const waiting: Waiting = { begin: (file) => resolve(Promise.try(asAdded, file)), reject };
      const group = this.#byInstance.get(instanceId);
      if (group === undefined) this.#byInstance.set(instanceId, [waiting]);
      else group.push(waiting);
      this.#count += 1;
    });
  }

  begin(instanceId: string, file: OpenedFile): void {
    for (const waiting of this.#take(instanceId)) waiting.begin(file);
  }

  refuse(instanceId: string, error: unknown): void {
    for (const waiting of this.#take(instanceId)) waiting.reject(error);
  }

  refuseAll(error: unknown): void {
    for (const instanceId of this.instanceIds()) this.refuse(instanceId, error);
  }

  #take(instanceId: string): readonly Waiting[] {
    const group = this.#byInstance.get(instanceId) ?? [];
    this.#byInstance.delete(instanceId);
    this.#count -= group.length;
    return group;
  }
}
