import type { Millis } from "../../../kernel/clock.ts";
import { shownJson } from "../../../kernel/json/shown.ts";
import type { AuditActor, RequestTrace } from "../../../kernel/observing/request-trace.ts";
import { AUDIT_VALUE_BYTES } from "../limits.ts";
import type { AuditedChange, AuditText } from "./types.ts";

/** How the text of an entry begins: reports find actions and targets in it without parsing it. */
export const startOfAction = (action: string): string => `"action":${JSON.stringify(action).slice(0, -1)}`;
export const startOfTarget = (target: string): string => `"target":${JSON.stringify(target).slice(0, -1)}`;

/** The part of an entry that says which request it is of: the same for all of a write, as asking for the address costs a lot. */
export function originOf(trace: RequestTrace | undefined): string {
  if (trace === undefined) return NO_ORIGIN;
  const { requester } = trace;
  return `"address":${JSON.stringify(requester.address())},"requestId":${JSON.stringify(requester.requestId)}`;
}

const NO_ORIGIN = `"address":null,"requestId":null`;

/** An entry as JSON. What was before and after is embedded as it is, since it is JSON already. */
export function entryText(
  { action, target, before, after }: AuditedChange,
  { actor, at, from }: { actor: AuditActor; at: Millis; from: string },
): AuditText {
  const head = `{${startOfAction(action)}",${startOfTarget(target)}","at":${at},"actor":${JSON.stringify(actor)}`;
  const [was, is] = [shownJson(before, AUDIT_VALUE_BYTES), shownJson(after, AUDIT_VALUE_BYTES)];
  const kind = action.startsWith("sign") ? "session" : "change";
  return { kind, text: `${head},${from},"before":${was},"after":${is}}` };
}
