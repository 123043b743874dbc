import type { FilterOperator } from "../../../config/types.ts";

interface Operator {
  /**
   * Form of the operator's value: any, one with an order, a part of a text or an element of a JSON array, a text, a list of values, an
   * area of points, or one or several ids, which only several references take.
   */
  takes: "value" | "ordered" | "part" | "text" | "list" | "area" | "id" | "ids";
  /** Sides on which the operator's value bounds a range of an index. */
  bounds: readonly ("lower" | "upper")[];
  /** Whether the operator searches the whole text. */
  isSearch: boolean;
  /** Whether the operator compares A–Z without case, for which it copies the text. */
  isAnyCase: boolean;
}

const PROPERTIES = {
  "==": { takes: "value", bounds: [], isSearch: false, isAnyCase: false },
  "!=": { takes: "value", bounds: [], isSearch: false, isAnyCase: false },
  ">": { takes: "ordered", bounds: ["lower"], isSearch: false, isAnyCase: false },
  ">=": { takes: "ordered", bounds: ["lower"], isSearch: false, isAnyCase: false },
  "<": { takes: "ordered", bounds: ["upper"], isSearch: false, isAnyCase: false },
  "<=": { takes: "ordered", bounds: ["upper"], isSearch: false, isAnyCase: false },
  contains: { takes: "part", bounds: [], isSearch: true, isAnyCase: false },
  icontains: { takes: "text", bounds: [], isSearch: true, isAnyCase: true },
  // The beginning of a text bounds a range on both sides.
  startsWith: { takes: "text", bounds: ["lower", "upper"], isSearch: false, isAnyCase: false },
  istartsWith: { takes: "text", bounds: [], isSearch: false, isAnyCase: true },
  within: { takes: "area", bounds: [], isSearch: false, isAnyCase: false },
  inBox: { takes: "area", bounds: [], isSearch: false, isAnyCase: false },
  in: { takes: "list", bounds: [], isSearch: false, isAnyCase: false },
  "not in": { takes: "list", bounds: [], isSearch: false, isAnyCase: false },
  has: { takes: "id", bounds: [], isSearch: false, isAnyCase: false },
  hasAny: { takes: "ids", bounds: [], isSearch: false, isAnyCase: false },
  hasAll: { takes: "ids", bounds: [], isSearch: false, isAnyCase: false },
} as const satisfies Record<FilterOperator, Operator>;

/**
 * Properties that depend on an operator alone. `filters/filter-sql.ts` and the kernel's `matches` define what each operator
 * means.
 */
export const OPERATORS: Readonly<Record<FilterOperator, Operator>> = PROPERTIES;

type Taking<Form extends Operator["takes"]> = {
  [Name in FilterOperator]: (typeof PROPERTIES)[Name]["takes"] extends Form ? Name : never;
}[FilterOperator];

export type ListOperator = Taking<"list">;
export type TextOperator = Taking<"text">;
export type AreaOperator = Taking<"area">;
export type IdsOperator = Taking<"ids">;

export const OPERATOR_NAMES = Object.keys(OPERATORS).join(", ");

export const isFilterOperator = (name: string): name is FilterOperator => Object.hasOwn(OPERATORS, name);

export const isListOperator = (operator: FilterOperator): operator is ListOperator =>
  OPERATORS[operator].takes === "list";

export const isAreaOperator = (operator: FilterOperator): operator is AreaOperator =>
  OPERATORS[operator].takes === "area";
export const isIdsOperator = (operator: FilterOperator): operator is IdsOperator => OPERATORS[operator].takes === "ids";

/** Whether the operator is one of several references, and takes ids. */
export const isOfReferences = (operator: FilterOperator): boolean =>
  isIdsOperator(operator) || OPERATORS[operator].takes === "id";

export const isTextOperator = (operator: FilterOperator): operator is TextOperator =>
  OPERATORS[operator].takes === "text";
