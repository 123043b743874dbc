import { badField } from "../../../../kernel/errors.ts";
import { EXPAND_DEPTH_MAX, EXPAND_PATHS_MAX } from "../limits.ts";
import type { ReferenceEdge, TableModel } from "../model/model.ts";

/** One name of a path: the references to follow from a record, and what to expand in the records found. */
export interface ExpandStep {
  /** The name in the request and in the answer: `author`, or `comments(taskId)`. */
  name: string;
  /** `one`: along the record's own reference. `many`: to the records that refer to it. */
  direction: "one" | "many";
  edge: ReferenceEdge;
  next: ExpandStep[];
}

/**
 * Parses `author,project.owner,comments(taskId).author`. null: nothing to expand. Errors: 400 for too many or too deep
 * paths, and for a name that is not a reference. [TB402]
 */
export function parseExpand(model: TableModel, text: string | undefined): readonly ExpandStep[] | null {
  if (text === undefined || text === "") return null;
  const paths = text.split(",");
  if (paths.length > EXPAND_PATHS_MAX) {
    throw badField("expand", "too_long", `expand takes at most ${EXPAND_PATHS_MAX} paths, got ${paths.length}`);
  }
  const steps: ExpandStep[] = [];
  for (const path of paths) addPath(model, steps, path.trim());
  return steps;
}

function addPath(model: TableModel, steps: ExpandStep[], path: string): void {
  const names = path.split(".");
  if (names.length > EXPAND_DEPTH_MAX) {
    const message = `expand: ${path} has ${names.length} steps; at most ${EXPAND_DEPTH_MAX} are followed`;
    throw badField("expand", "too_long", message);
  }
  let from = model;
  let siblings = steps;
  for (const name of names) {
    const known = siblings.find((step) => step.name === name);
    const step = known ?? stepOf(from, name);
    if (step === null) {
      const message = `expand: "${name}" is no reference of ${from.name}; it may be a field with references, or table(field)`;
      throw badField("expand", "unknown_field", message);
    }
    if (known === undefined) siblings.push(step);
    siblings = step.next;
    from = step.direction === "one" ? step.edge.to : step.edge.from;
  }
}

function stepOf(model: TableModel, name: string): ExpandStep | null {
  const own = [...model.outgoing, ...model.far].find(({ column }) => column.name === name);
  if (own !== undefined) return { name, direction: "one", edge: own, next: [] };
  const referring = model.incoming.find((edge) => referringName(edge) === name);
  return referring === undefined ? null : { name, direction: "many", edge: referring, next: [] };
}

/** Returns the name of the records that refer to a table by this edge. */
export const referringName = ({ from, column }: ReferenceEdge): string => `${from.name}(${column.name})`;
