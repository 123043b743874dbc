import type { JsonObject, JsonValue } from "../../src/kernel/json/json.ts";
import type { Random } from "./random.ts";

/**
 * Random access rules, each as the source text for a config, and as an oracle of its meaning. The oracle is independent of the
 * server's code, and small enough to verify by reading.
 */

export type Auth = { id: string; role: string; custom: JsonObject } | null;
type Condition = readonly [field: string, operator: string, value: JsonValue];
/** A condition, or a group of filters. */
export type Tuple = Condition | { readonly or: readonly (readonly Tuple[])[] } | { readonly not: readonly Tuple[] };

/** Result of a rule: everything, nothing, or what a filter keeps. */
type Says = boolean | readonly Tuple[];

export interface GeneratedRule {
  /** Source text in the config. */
  source: string;
  /** Whether the rule is declared with the record as a parameter, and without the context. */
  looksAtRecord: boolean;
  /** Returns whether a rule with the context reads the record for this caller. `looksUp`: whether it looks up other records. */
  reads?(auth: Auth): boolean;
  looksUp?(auth: Auth): boolean;
  says(auth: Auth, record: JsonObject, next: JsonObject): Says;
}

/** Access that a rule grants before any record is read. */
export type Grant = "all" | "none" | "record" | readonly Tuple[];

export function grantOf(rule: GeneratedRule | null, auth: Auth): Grant {
  if (rule === null) return "none";
  if (rule.looksAtRecord || rule.reads?.(auth) === true) return "record";
  const says = rule.says(auth, {}, {});
  if (typeof says === "boolean") return says ? "all" : "none";
  return says.length === 0 ? "all" : says;
}

export function covers(rule: GeneratedRule | null, auth: Auth, record: JsonObject, next: JsonObject = record): boolean {
  if (rule === null) return false;
  const says = rule.says(auth, record, next);
  return typeof says === "boolean" ? says : says.every((tuple) => holds(tuple, record));
}

/** Evaluates one condition or group on a record. */
export function holds(tuple: Tuple, record: JsonObject): boolean {
  if ("not" in tuple) return !tuple.not.every((one) => holds(one, record));
  if ("or" in tuple) return tuple.or.some((filter) => filter.every((one) => holds(one, record)));
  const [path, operator, wanted] = tuple;
  const value = path.split(".").reduce<JsonValue>((at, name) => memberOf(at, name), record);
  const isIn = Array.isArray(wanted) && wanted.some((one) => one === value);
  switch (operator) {
    case "==":
      return value === wanted;
    case "!=":
      return value !== wanted;
    case "in":
      return isIn;
    case "not in":
      return !isIn;
    case "has":
      return Array.isArray(value) && value.includes(wanted);
    case "hasAny":
      return Array.isArray(value) && Array.isArray(wanted) && wanted.some((one) => value.includes(one));
    case "hasAll":
      return Array.isArray(value) && Array.isArray(wanted) && wanted.every((one) => value.includes(one));
    case "contains":
      if (Array.isArray(value)) return value.some((one) => one === wanted);
      return typeof value === "string" && typeof wanted === "string" && value.includes(wanted);
    case "icontains":
      return String(value).toLowerCase().includes(String(wanted).toLowerCase());
    case "startsWith":
      return String(value).startsWith(String(wanted));
    case "istartsWith":
      return String(value).toLowerCase().startsWith(String(wanted).toLowerCase());
    default:
      return isOrdered(value, operator, wanted);
  }
}

const memberOf = (value: JsonValue, name: string): JsonValue =>
  typeof value === "object" && value !== null && !Array.isArray(value) && Object.hasOwn(value, name)
    ? (value[name] ?? null)
    : null;

function isOrdered(value: JsonValue, operator: string, wanted: JsonValue): boolean {
  // Only values of the same type are ordered; null is not.
  if (value === null || wanted === null || typeof value !== typeof wanted) return false;
  if (operator === ">") return value > wanted;
  if (operator === ">=") return value >= wanted;
  return operator === "<" ? value < wanted : value <= wanted;
}

interface Leaf {
  source: string;
  says: GeneratedRule["says"];
  /** Whether the rule reads the record; false if absent. */
  reads?: boolean;
  looksUp?: boolean;
}

/** Records of the table `facts` about the owners. `circle` has an index, `level` has none. */
export const FACTS = [
  { id: "ann", level: 1, circle: "x" },
  { id: "bob", level: 3, circle: "x" },
  { id: "cyd", level: 2, circle: "y" },
];
const factOf = (id: unknown) => FACTS.find((fact) => fact.id === id);

/** Creates a rule that looks up facts. */
function lookup(r: Random, parameters: readonly string[]): Leaf {
  const facts = 'context.db("shared").table("facts")';
  const kind = r.below(4 + (parameters.includes("record") ? 1 : 0));
  if (kind === 0) {
    const level = 1 + r.below(3);
    return {
      source: `(${facts}.get(auth?.id ?? "")?.level ?? 0) >= ${level}`,
      says: (auth) => (factOf(auth?.id)?.level ?? 0) >= level,
      looksUp: true,
    };
  }
  if (kind === 1) {
    const circle = r.pick(["x", "y", "z"]);
    return {
      source: `[["owner", "in", ${facts}.list([["circle", "==", "${circle}"]]).map(({ id }) => id)]]`,
      says: () => [["owner", "in", FACTS.filter((fact) => fact.circle === circle).map(({ id }) => id)]],
      looksUp: true,
    };
  }
  if (kind === 2) return { source: `${facts}.exists([["level", "==", 1]])`, says: () => false, looksUp: true };
  if (kind === 3) {
    return {
      source: `${facts}.first([["circle", "in", ["y", "x"]]])?.id === (auth?.id ?? "")`,
      says: (auth) => auth?.id === "ann",
      looksUp: true,
    };
  }
  return {
    source: `${facts}.get(record.owner)?.circle === "x"`,
    says: (_auth, record) => factOf(record["owner"])?.circle === "x",
    reads: true,
    looksUp: true,
  };
}

/** Creates a rule that returns a filter with a relation. The oracle names the owners about whom there is such a fact. */
function relation(r: Random): Leaf {
  const [circle, level] = [r.pick(["x", "y", "z"]), 1 + r.below(3)];
  const isFact = (fact: (typeof FACTS)[number]) => fact.circle === circle && fact.level >= level;
  const where = [
    ["id", "==", { field: "owner" }],
    ["circle", "==", circle],
    ["level", ">=", level],
  ];
  const kind = r.pick(["some", "none", "not"]);
  const some = { [kind === "none" ? "none" : "some"]: { table: "facts", where } };
  const source = JSON.stringify(kind === "not" ? { not: [some] } : [some]);
  const owners = FACTS.filter(isFact).map(({ id }) => id);
  return { source: `(${source})`, says: () => [["owner", kind === "some" ? "in" : "not in", owners]] };
}

/** Creates a condition for records of `randomRecord`, with a value that fits its field, or a group of some. */
export function randomTuple(r: Random, ids: readonly string[], level = 0): Tuple {
  if (level < 3 && r.chance(0.25)) {
    const filter = () => Array.from({ length: r.below(3) }, () => randomTuple(r, ids, level + 1));
    return r.chance(0.6) ? { or: Array.from({ length: r.below(3) }, filter) } : { not: filter() };
  }
  const tuples: readonly (() => Condition)[] = [
    () => ["n", r.pick(["==", "!=", ">", ">=", "<", "<="]), r.below(6)],
    () => ["n", r.pick(["in", "not in"]), Array.from({ length: r.below(4) }, () => r.below(6))],
    () => ["n", r.pick(["==", "!="]), null],
    () => ["s", r.pick(["==", "!=", "<", ">="]), r.pick(["alpha w", "beta w", "gamma w"])],
    () => ["s", r.pick(["contains", "icontains"]), r.pick(["a", "eta", "A", "w", "zz"])],
    () => ["s", r.pick(["startsWith", "istartsWith"]), r.pick(["al", "BETA", "gamma w", "w", ""])],
    () => ["b", r.pick(["==", "!="]), r.chance(0.5)],
    () => ["j.k", r.pick(["==", "!=", ">", "<="]), r.below(3)],
    () => ["j.tags", "contains", r.pick(["x", "y"])],
    () => ["owner", r.pick(["==", "!=", "in", "not in"]), r.pick(ids)],
    () => ["refs", "has", r.pick(ids)],
    () => ["refs", r.pick(["hasAny", "hasAll"]), ids.filter(() => r.chance(0.5))],
  ];
  const [field, operator, value] = r.pick(tuples)();
  return [field, operator, operator.endsWith("in") && !Array.isArray(value) ? [value] : value];
}

/** Creates the fields of a record, besides its id. */
export const randomRecord = (r: Random, ids: readonly string[]): JsonObject => ({
  owner: r.pick(ids),
  n: r.chance(0.15) ? null : r.below(6),
  s: r.pick(["alpha w", "beta w", "gamma w"]),
  b: r.chance(0.5),
  refs: FACTS.flatMap(({ id }) => (r.chance(0.5) ? [id] : [])),
  j: r.chance(0.2) ? null : { k: r.below(3), tags: r.chance(0.5) ? ["x"] : ["x", "y"] },
});

const ODD = ["1", '"yes"', "null", "undefined", "({})", "0", "[[1]]", '[["nothing", "==", 1]]', "new Date(0)"];
const THROWS = '(() => { throw new Error("a rule of the test throws"); })()';

/** Creates a leaf of a rule. `parameters`: those the rule declares after `auth`. */
function leaf(r: Random, ids: readonly string[], parameters: readonly string[]): Leaf {
  if (parameters.includes("context") && r.chance(0.4)) return lookup(r, parameters);
  // The first seven kinds need no record, the next two do, the last one needs the record after the change.
  const kind = r.below(7 + (parameters.includes("record") ? 2 : 0) + (parameters.includes("next") ? 1 : 0));
  if (kind === 0) return { source: "false", says: () => false };
  if (kind === 1) return { source: r.pick(ODD), says: () => false };
  if (kind === 2) return { source: THROWS, says: () => false };
  if (kind === 3) return { source: "true", says: () => true };
  if (kind === 4) {
    return {
      source: '[["owner", "==", auth?.id ?? "nobody"]]',
      says: (auth) => [["owner", "==", auth?.id ?? "nobody"]],
    };
  }
  if (kind === 5 && r.chance(0.6)) return relation(r);
  if (kind <= 6) {
    const tuples = Array.from({ length: 1 + r.below(2) }, () => randomTuple(r, ids));
    return { source: JSON.stringify(tuples), says: () => tuples };
  }
  if (kind === 7) {
    return { source: "record.owner === auth?.id", says: (auth, record) => record["owner"] === auth?.id, reads: true };
  }
  const bound = r.below(5);
  if (kind === 9)
    return { source: `next.n !== ${bound}`, says: (_auth, _record, next) => next["n"] !== bound, reads: true };
  return { source: `record.n >= ${bound}`, says: (_auth, record) => Number(record["n"]) >= bound, reads: true };
}

type Branching = Pick<GeneratedRule, "source" | "says" | "reads" | "looksUp">;

/** Creates an expression, which may branch by the caller. */
function expression(r: Random, ids: readonly string[], parameters: readonly string[]): Required<Branching> {
  const first = leaf(r, ids, parameters);
  if (r.chance(0.4)) return { ...first, reads: () => first.reads === true, looksUp: () => first.looksUp === true };
  const second = leaf(r, ids, parameters);
  const [condition, isTrue] = r.pick<readonly [string, (auth: Auth) => boolean]>([
    ["auth === null", (auth) => auth === null],
    ['auth?.role === "editor"', (auth) => auth?.role === "editor"],
    ['auth?.custom.team === "red"', (auth) => auth?.custom["team"] === "red"],
  ]);
  const taken = (auth: Auth): Leaf => (isTrue(auth) ? first : second);
  return {
    source: `${condition} ? ${first.source} : ${second.source}`,
    says: (auth, record, next) => taken(auth).says(auth, record, next),
    reads: (auth) => taken(auth).reads === true,
    looksUp: (auth) => taken(auth).looksUp === true,
  };
}

/** Creates a rule; null: none is declared. `parameters`: those that a rule of this action receives after `auth`. */
export function randomRule(
  r: Random,
  ids: readonly string[],
  parameters: readonly string[],
  record: "may look at the record" | "by filter" = "may look at the record",
): GeneratedRule | null {
  if (r.chance(0.06)) return null;
  if (r.chance(0.2)) {
    const says = r.chance(0.8);
    return { source: String(says), looksAtRecord: false, says: () => says };
  }
  const looksAtRecord = record === "may look at the record" && r.chance(0.5);
  // A rule with the context may read the record or not, whatever its parameters.
  const hasContext = r.chance(0.4);
  const declared = looksAtRecord ? parameters : [];
  const { source, says, reads, looksUp } = expression(r, ids, hasContext ? [...declared, "context"] : declared);
  const isAsync = r.chance(0.35);
  const body = isAsync ? `{ await Bun.sleep(0); return ${source}; }` : source;
  const arrow = (names: readonly string[]) => `${isAsync ? "async " : ""}(${["auth", ...names].join(", ")}) => ${body}`;
  if (!hasContext) return { source: arrow(declared), looksAtRecord, says };
  return { source: arrow([...parameters, "context"]), looksAtRecord: false, says, reads, looksUp };
}
