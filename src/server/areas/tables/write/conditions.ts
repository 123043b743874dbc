import { chain, type MaybePromise } from "../../../../kernel/maybe-promise.ts";
import { type ParsedFilter, parseFilter, type ReadableTables } from "../filters/filter.ts";
import { filterJson } from "../filters/filter-json.ts";
import { FILTER_CONDITIONS_MAX } from "../limits.ts";
import type { TableModel } from "../model/model.ts";
import { markPlaced } from "../model/problems.ts";
import type { ByFilterBody } from "../model/requests.ts";
import { filtersOf } from "../query/list-query.ts";
import { createRelatedGrants, noRelationsOn, type RelatedGrants, readableOf } from "../query/readable-tables.ts";
import type { Asker, RecordRights } from "../rules/access.ts";
import { Suspended } from "../rules/decisions.ts";
import type { Asking } from "./asking.ts";
import type { WriteContext } from "./write-context.ts";

/** Condition (`if`) of a change on the stored record. A problem of its form is thrown once the record is found. [TB302] */
export type Precondition = { filterNow(context: WriteContext): ParsedFilter };

/** Filter of a batch as it is searched for, and by what its caller may read at a point of the transaction. */
export interface BatchFilter extends Precondition {
  filter: ParsedFilter;
}

/** Conditions of one request on records of the tables of a file. */
type Conditions = ReturnType<typeof conditionsBy>;

/**
 * Returns the conditions of a request that has these filters on tables beside `model`. Their relations ask what the caller may read: the
 * rules are asked before the transaction, and inside of it again where they have looked something up. [TB610]
 */
export type FindConditions = (
  asker: Asker,
  model: TableModel | undefined,
  filters: readonly unknown[],
) => MaybePromise<Conditions>;

export function createConditions({ rights, asking }: { rights: RecordRights; asking: Pick<Asking, "readingNow"> }) {
  const grantsFor = createRelatedGrants(rights);
  const find: FindConditions = (asker, model, filters) =>
    chain(model === undefined ? null : grantsFor(asker, model, filters), (grants) =>
      conditionsBy(grants === null ? plainReadings(asker) : readings(asking, asker, grants)),
    );
  return {
    find,
    /** Returns the condition in a request's query; null when there is none. */
    ofText(asker: Asker, model: TableModel, text: string | null): MaybePromise<Precondition | null> {
      if (text === null) return null;
      const value = held(() => filterJson(text, "if"));
      if ("fault" in value) return { filterNow: () => fail(value.fault) };
      return chain(find(asker, model, [value.result]), (conditions) =>
        conditions.ofOperation(model, value.result, "if"),
      );
    },
  };
}

/** Tables that the relations of filters may ask, before the transaction and in it; `now` is null where they name no table. */
interface Readings {
  before: (model: TableModel) => ReadableTables;
  now: ((context: WriteContext) => ReadableTables) | null;
}

const plainReadings = ({ principal }: Asker): Readings => ({
  before: (model) => noRelationsOn(model, principal),
  now: null,
});

const readings = (asking: Pick<Asking, "readingNow">, { principal }: Asker, grants: RelatedGrants): Readings => ({
  before: () => readableOf(principal, (model) => grants.get(model)),
  now: (context) =>
    readableOf(principal, (model) => {
      const grant = grants.get(model);
      return grant === undefined ? undefined : asking.readingNow(context, grant, { model });
    }),
});

function conditionsBy({ before, now }: Readings) {
  return {
    /** Parses the `if` of an operation; null when there is none. `value` is JSON. Errors of its form name `name` in full. */
    ofOperation(model: TableModel, value: unknown, name: string): Precondition | null {
      if (value === undefined || value === null) return null;
      const parse = (readable: ReadableTables) =>
        parseFilter(model, value, { name, conditionsMax: FILTER_CONDITIONS_MAX, readable });
      const placed = <T>(result: Held<T>): T => {
        if (!("fault" in result)) return result.result;
        // An operation's names are complete.
        if (name !== "if") markPlaced(result.fault);
        return fail(result.fault);
      };
      if (now !== null) return { filterNow: (context) => placed(held(() => parse(now(context)))) };
      const parsed = held(() => parse(before(model)));
      return { filterNow: () => placed(parsed) };
    },
    /** Parses the filter of a batch. Errors: 400. */
    ofBatch(model: TableModel, body: ByFilterBody): BatchFilter {
      const filter = filtersOf(model, body, before(model));
      return { filter, filterNow: (context) => (now === null ? filter : filtersOf(model, body, now(context))) };
    },
  };
}

type Held<T> = { result: T } | { fault: unknown };

/** Returns what the function returns, or throws. A rule that has to be awaited is no fault. */
function held<T>(parse: () => T): Held<T> {
  try {
    return { result: parse() };
  } catch (fault) {
    if (fault instanceof Suspended) throw fault;
    return { fault };
  }
}

function fail(fault: unknown): never {
  throw fault;
}
