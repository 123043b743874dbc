import type { JsonObject } from "../../kernel/json/json.ts";
import type { WriteOperation } from "../tables/writes.ts";
import { Overlay } from "./overlay.ts";
import { idOf, isSame, type Plan } from "./plan.ts";
import type { RecordWindow } from "./window.ts";

const MILLISECOND = 1;

/** Overlays of this client's writes on the records of one query: writes in flight, and those whose change has not arrived. */
export class LocalState {
  readonly #plan: Plan;
  readonly #window: RecordWindow;
  #overlays: Overlay[] = [];
  /** Shown forms of records with writes, which keep their identity. */
  #shown = new Map<string, JsonObject>();
  /**
   * Returns whether a write of a record is in flight. Replaced by a new function whenever the set of writes in flight changes.
   */
  isPending = this.#pending();

  constructor(plan: Plan, window: RecordWindow) {
    this.#plan = plan;
    this.#window = window;
  }

  get isEmpty(): boolean {
    return this.#overlays.length === 0;
  }

  /** Adds an overlay. `now`: the time of this machine, which may be wrong. */
  add(operation: WriteOperation, about: { newId: string; now: number }): Overlay {
    const overlay = new Overlay(operation, { id: this.#idFor(operation, about.newId), now: this.#timeOf(about.now) });
    this.#overlays.push(overlay);
    this.isPending = this.#pending();
    return overlay;
  }

  /** Completes a write. `result`: the server's record; null for a deleted one. Returns true if its change is still to come. */
  done(overlay: Overlay, result: JsonObject | null): boolean {
    if (!this.#overlays.includes(overlay)) return false;
    const base = this.#window.get(overlay.id) ?? null;
    const kept = result === null ? null : this.#plan.kept(result);
    // A caller that may not read the record receives only parts of it.
    if (kept !== null && (Object.keys(kept).length < 2 || (base !== null && isPart(kept, base)))) {
      this.drop(overlay);
      return false;
    }
    overlay.result = kept;
    this.isPending = this.#pending();
    if (kept !== null) overlay.id = idOf(kept);
    const expected = this.#expected(overlay);
    const present = this.#window.get(overlay.id) ?? null;
    const hasCome = isSame(present, expected) || overlay.hasSeen(expected);
    if (hasCome) this.drop(overlay);
    return !hasCome;
  }

  drop(overlay: Overlay): void {
    this.#overlays = this.#overlays.filter((one) => one !== overlay);
    if (overlay.result === undefined) this.isPending = this.#pending();
    if (!this.#overlays.some(({ id }) => id === overlay.id)) this.#shown.delete(overlay.id);
  }

  /** Returns completed writes whose change has not arrived. A list requested now includes them. */
  expecting(): readonly Overlay[] {
    return this.#overlays.filter(({ result }) => result !== undefined);
  }

  clear(): void {
    this.#overlays = [];
    this.#shown.clear();
    this.isPending = this.#pending();
  }

  #pending() {
    return (id: string): boolean => this.#overlays.some((one) => one.id === id && one.result === undefined);
  }

  /**
   * Notes a state of a record from the server; null: not in the subscription. Returns the state to keep: the shown object, if
   * both are equal.
   */
  note(id: string, state: JsonObject | null): JsonObject | null {
    if (this.isEmpty) return state;
    const before = this.#window.get(id) ?? null;
    let kept = state;
    for (const overlay of this.#overlays) {
      if (overlay.id !== id) continue;
      overlay.note(state, before);
      if (overlay.result === undefined || !isSame(state, this.#expected(overlay))) continue;
      kept = state === null ? null : (overlay.result ?? state);
      this.drop(overlay);
    }
    return kept;
  }

  /** Returns the records of the window with the overlays applied. */
  over(records: readonly JsonObject[]): JsonObject[] {
    const shown = [...records];
    for (const id of new Set(this.#overlays.map((overlay) => overlay.id))) {
      const base = this.#window.get(id);
      if (base !== undefined) shown.splice(shown.indexOf(base), 1);
      const record = this.#recordOf(id, base ?? null);
      if (record === null || !this.#plan.matches(record, base) || !this.#window.covers(record)) continue;
      shown.splice(this.#window.placeOf(record, shown), 0, record);
    }
    return shown;
  }

  #recordOf(id: string, base: JsonObject | null): JsonObject | null {
    let record = base;
    for (const overlay of this.#overlays) if (overlay.id === id) record = overlay.apply(record);
    if (record === null || record === base) return record;
    const before = this.#shown.get(id);
    const next = this.#plan.kept(record);
    if (before !== undefined && isSame(before, next)) return before;
    this.#shown.set(id, next);
    return next;
  }

  /** Returns the state that the subscription will send after the write, wherever the window ends; null: not this record. */
  #expected({ result = null }: Overlay): JsonObject | null {
    return result !== null && this.#plan.matches(result, this.#window.get(idOf(result))) ? result : null;
  }

  #idFor(operation: WriteOperation, newId: string): string {
    if (operation.type === "update" || operation.type === "delete") return operation.id;
    const { id } = operation.record;
    if (operation.type === "upsert" && operation.conflictTarget !== "id") {
      const value = operation.record[operation.conflictTarget];
      const stored = this.#window.records.find((record) => isSame(record[operation.conflictTarget], value));
      if (stored !== undefined) return idOf(stored);
    }
    return typeof id === "string" ? id : newId;
  }

  /**
   * Returns a time no earlier than that of any known record, so that a new record is the newest even if this machine's clock is
   * slow.
   */
  #timeOf(now: number): string {
    let latest = new Date(now).toISOString();
    for (const { createdAt } of this.#window.records) {
      if (typeof createdAt === "string" && createdAt > latest) latest = createdAt;
    }
    const time = Date.parse(latest);
    return time > now ? new Date(time + MILLISECOND).toISOString() : latest;
  }
}

const isPart = (part: JsonObject, whole: JsonObject): boolean =>
  Object.keys(whole).some((name) => !Object.hasOwn(part, name));
