import type { Formula } from "./formula.ts";

/** The bounds of a filter of this server. */
const LEVELS_MAX = 4;
const PARTS_MAX = 100;

/** Returns why this server does not take a formula as a filter; null: it does. */
export function boundProblem(formula: Formula): string | null {
  if (levelsOf(formula) > LEVELS_MAX) return `it has more than ${LEVELS_MAX} levels`;
  return partsOf(formula) > PARTS_MAX ? `it has more than ${PARTS_MAX} parts` : null;
}

function levelsOf(formula: Formula): number {
  if (formula.kind === "and") return Math.max(0, ...formula.parts.map(levelsOf));
  if (formula.kind === "or") return 1 + Math.max(0, ...formula.parts.map(levelsOf));
  if (formula.kind === "some" || formula.kind === "none") return 1 + levelsOf(formula.inner);
  return formula.kind === "not" ? 1 : 0;
}

function partsOf(formula: Formula): number {
  if (formula.kind === "and" || formula.kind === "or")
    return formula.parts.reduce((sum, part) => sum + partsOf(part), 1);
  if (formula.kind === "some" || formula.kind === "none") return 2 + partsOf(formula.inner);
  return formula.kind === "not" ? 2 : 1;
}

/** A question about related records. */
export type Relation = Extract<Formula, { kind: "some" | "none" }>;

/** Returns all relations of a formula. */
export function relationsOf(formula: Formula): Relation[] {
  if (formula.kind === "and" || formula.kind === "or") return formula.parts.flatMap(relationsOf);
  return formula.kind === "some" || formula.kind === "none" ? [formula, ...relationsOf(formula.inner)] : [];
}
