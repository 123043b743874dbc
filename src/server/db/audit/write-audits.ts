import type { Millis } from "../../../kernel/clock.ts";
import { shownJson } from "../../../kernel/json/shown.ts";
import type { AuditActor, RequestTrace } from "../../../kernel/observing/request-trace.ts";
import { AUDIT_VALUE_BYTES, AUDITED_SINGLY_MAX } from "../limits.ts";
import type { Actor } from "../outbox/types.ts";
import type { Change } from "../types.ts";
import type { AboutChange, AuditedChange, AuditText } from "./types.ts";

interface Noted {
  actor: AuditActor;
  change: AuditedChange;
}

const NONE: readonly AuditText[] = [];

/** The audit entries of one write. A class, since every write has one and most have no entries. */
export class WriteAudits {
  readonly #trace: RequestTrace | undefined;
  readonly #file: { place: string; now: () => Millis } | null;
  #noted: Noted[] | null = null;

  /** `file`: the prefix of its records' targets, and its time; null: its writes are not audited. */
  constructor(trace: RequestTrace | undefined, file: { place: string; now: () => Millis } | null) {
    this.#trace = trace;
    this.#file = file;
  }

  get count(): number {
    return this.#noted?.length ?? 0;
  }

  /** Drops the entries after the first `count`. */
  cutTo(count: number): void {
    if (this.#noted !== null) this.#noted.length = count;
  }

  /** Adds a change if `by` is the audited caller of the request; `about` is called only then. */
  note(by: Actor, about: AboutChange): void {
    const actor = this.#audited(by);
    if (actor !== null) this.noteBy(actor, about({ isShown: this.count < AUDITED_SINGLY_MAX }));
  }

  /** Adds a change by `actor`; where somebody acts as that user, by them. */
  noteBy(actor: AuditActor, change: AuditedChange): void {
    if (this.#file === null) return;
    const caller = this.#trace?.actor ?? null;
    this.#noted ??= [];
    this.#noted.push({ actor: caller !== null && caller.as === actor.name ? caller : actor, change });
  }

  /** Adds the announced changes of records, under the condition of `note`. */
  noteChanges(by: Actor, changes: readonly Change[]): void {
    const actor = changes.length === 0 ? null : this.#audited(by);
    if (actor === null || this.#file === null) return;
    const { place } = this.#file;
    for (const { table, id, before, after } of changes) {
      const action = before === null ? "record.insert" : after === null ? "record.delete" : "record.update";
      this.noteBy(actor, { action, target: `${place}/${table}/${id}`, before, after });
    }
  }

  /** Returns the entries that have been added; many changes are merged into one. */
  entries(): readonly AuditText[] {
    const [first] = this.#noted ?? [];
    if (this.#noted === null || this.#file === null || first === undefined) return NONE;
    const at = this.#file.now();
    const from = originOf(this.#trace);
    if (this.#noted.length <= AUDITED_SINGLY_MAX) {
      return this.#noted.map(({ actor, change }) => entryText(change, { actor, at, from }));
    }
    return [entryText(together(this.#noted.map(({ change }) => change)), { actor: first.actor, at, from })];
  }

  #audited(by: Actor): AuditActor | null {
    const actor = this.#trace?.actor ?? null;
    return actor !== null && this.#file !== null && isOf(by, actor) ? actor : null;
  }
}

/**
 * Reports whether the write is by the audited actor. Hooks, rules and other code of the server that run in the request write as the
 * server, and not as the caller.
 */
function isOf(by: Actor, { name, as }: AuditActor): boolean {
  if (as === undefined) return by !== null && "key" in by && by.key === name;
  return by === null ? as === "anonymous" : "user" in by && by.user === as;
}

/** Merges many changes into one entry, with the count of each kind: `record.batch` on what they have in common. */
function together(changes: readonly AuditedChange[]): AuditedChange {
  const [first = { action: "", target: "" }] = changes;
  const counts: Record<string, number> = {};
  let common = first.target.split("/").slice(0, -1);
  for (const { action, target } of changes) {
    const [, kind = action] = action.split(".");
    counts[kind] = (counts[kind] ?? 0) + 1;
    const segments = target.split("/");
    const differsAt = common.findIndex((segment, index) => segments[index] !== segment);
    if (differsAt >= 0) common = common.slice(0, differsAt);
  }
  return { action: `${first.action.split(".")[0]}.batch`, target: common.join("/"), after: counts };
}

/** Returns the beginning of an action in an entry's text, as `startOfTarget` of a target: reports find both without parsing. */
export const startOfAction = (action: string): string => `"action":${JSON.stringify(action).slice(0, -1)}`;
export const startOfTarget = (target: string): string => `"target":${JSON.stringify(target).slice(0, -1)}`;

/** Returns the part of an entry that names its request. It is made once for a write, as reading the address costs a lot. */
export function originOf(trace: RequestTrace | undefined): string {
  if (trace === undefined) return NO_ORIGIN;
  const { requester } = trace;
  return `"address":${JSON.stringify(requester.address())},"requestId":${JSON.stringify(requester.requestId)}`;
}

const NO_ORIGIN = `"address":null,"requestId":null`;

/** Formats an entry as JSON. The values before and after are embedded unchanged, since they are JSON already. */
export function entryText(
  { action, target, before, after }: AuditedChange,
  { actor, at, from }: { actor: AuditActor; at: Millis; from: string },
): AuditText {
  const head = `{${startOfAction(action)}",${startOfTarget(target)}","at":${at},"actor":${JSON.stringify(actor)}`;
  const [was, is] = [shownJson(before, AUDIT_VALUE_BYTES), shownJson(after, AUDIT_VALUE_BYTES)];
  const kind = action.startsWith("sign") ? "session" : "change";
  return { kind, text: `${head},${from},"before":${was},"after":${is}}` };
}
