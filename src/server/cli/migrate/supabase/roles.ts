import { FALSE, type Formula, isConstant, join, type Need, TRUE, without } from "../rules/formula.ts";
import { CALLERS, type Caller, isOf } from "./plan.ts";
import type { PgCommand, PgTable } from "./source.ts";

/** Returns a part of a rule that is code. */
export const code = (text: string, ...needs: Need[]): Formula => ({ kind: "code", code: text, needs });

/** Holds for every caller with a token. */
export const SIGNED_IN = code("true", "auth");
/** Holds for callers without a token. */
export const NOBODY = code("auth === null");

/** Returns what holds for callers of these roles alone. */
export function onlyFor(roles: readonly Caller[]): Formula {
  if (roles.length === 2) return TRUE;
  if (roles.length === 0) return FALSE;
  return roles[0] === "anon" ? NOBODY : SIGNED_IN;
}

/** Returns a formula for callers of these roles. One that asks who the caller is holds for nobody without a token anyway. */
export function gated(roles: readonly Caller[], formula: Formula): Formula {
  const isForUsers = roles.length === 1 && roles[0] === "authenticated";
  if (isForUsers && isConstant(without(formula, WITHOUT_TOKEN), false)) return formula;
  return join("and", [onlyFor(roles), formula]);
}

const WITHOUT_TOKEN: ReadonlySet<Need> = new Set<Need>(["auth", "email"]);

/** Returns what holds for callers of other roles. */
export const othersThan = (roles: readonly Caller[]): Formula =>
  onlyFor(CALLERS.filter((caller) => !roles.includes(caller)));

/** Whether a caller has a right to a table, or to some of its columns. */
export function isGranted({ grants }: PgTable, caller: Caller, command: PgCommand): boolean {
  return grants.some(({ role, command: right }) => isOf(role, caller) && (right === "all" || right === command));
}

/** Keeps callers from sending columns for which they have no right. */
export function sentColumns({ grants, columns }: PgTable, command: PgCommand): Formula[] {
  const rights = CALLERS.map((caller) =>
    grants.filter(({ role, command: right }) => isOf(role, caller) && (right === "all" || right === command)),
  ).filter((some) => some.length > 0);
  const limited = rights.filter((some) => some.every((right) => right.columns !== null));
  if (limited.length === 0) return [];
  const allowed = columns.filter(({ name }) =>
    limited.every((some) => some.some((right) => right.columns?.includes(name) === true)),
  );
  const names = JSON.stringify(allowed.map(({ name }) => name));
  return [code(`(sent ?? ["?"]).every((name) => ${names}.includes(name))`)];
}
