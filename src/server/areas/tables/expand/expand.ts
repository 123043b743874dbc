import { tooLarge } from "../../../../kernel/errors.ts";
import type { JsonValue } from "../../../../kernel/json/json.ts";
import { chain, type MaybePromise } from "../../../../kernel/maybe-promise.ts";
import type { Principal } from "../../../access/principal.ts";
import type { TableRecord } from "../../../config/types.ts";
import type { DatabaseFile, ReadCaller } from "../../../db/index.ts";
import { EXPANDED_BYTES_MAX, EXPANDED_PER_RECORD_MAX, EXPANDED_RECORDS_MAX, LARGE_ANSWER_BYTES } from "../limits.ts";
import type { RuleScope } from "../lookups/calls.ts";
import type { TableModel } from "../model/model.ts";
import type { Table } from "../records/namespaces.ts";
import type { RecordRights } from "../rules/access.ts";
import type { ExpandStep } from "./paths.ts";
import { createReadable, type Readable } from "./readable.ts";

/** Adds related records to an answer: those that its records refer to, and those that refer to them. */
export type Expanding = ReturnType<typeof createExpanding>;

/** A record with its number of occurrences in the answer: many records may refer to one. */
interface Occurring {
  record: TableRecord;
  times: number;
}

export function createExpanding(deps: {
  tableOf(model: TableModel): Table;
  rights: RecordRights;
  fileOf(namespace: string): DatabaseFile;
}) {
  return {
    /**
     * Returns the answers for `records`, which were read for this request, as made by `shown`; with `expand` unless `steps` is
     * null. Each expanded record passes the read rule of its own table. Errors: 413 for an answer that would be too large.
     * [TB402]–[TB407]
     */
    answers<Shown extends TableRecord>(
      principal: Principal,
      { file, rules }: { file: DatabaseFile | null; rules: RuleScope },
      steps: readonly ExpandStep[] | null,
      records: readonly TableRecord[],
      shown: (record: TableRecord, place: number) => Shown,
      caller: ReadCaller | undefined,
    ): MaybePromise<Shown[]> {
      if (steps === null || file === null || records.length === 0) {
        return records.map((record, place) => shown(record, place));
      }
      const budget = createBudget();
      const { namespace } = rules.about;
      const readable = createReadable({ ...deps, asker: { principal, rules }, namespace, file, caller });
      const parents = records.map((record) => ({ record, times: 1 }));
      return chain(expandAll({ readable, budget }, steps, parents), (expanded) => {
        // A large answer is sent in pieces; there is no place to release.
        if (budget.bytes > LARGE_ANSWER_BYTES) caller?.keepUntilSent?.(() => {});
        return records.map((record, place) => {
          const answer = shown(record, place);
          (answer as TableRecord)["expand"] = expanded[place] ?? null;
          return answer;
        });
      });
    },
  };
}

/** Returns the `expand` of each record. Errors: 413 for more than an answer may have. */
export function expandRecords(
  readable: Readable,
  steps: readonly ExpandStep[],
  records: readonly TableRecord[],
): MaybePromise<TableRecord[]> {
  const parents = records.map((record) => ({ record, times: 1 }));
  return expandAll({ readable, budget: createBudget() }, steps, parents);
}

type Budget = ReturnType<typeof createBudget>;

function createBudget() {
  let used = 0;
  return {
    get bytes(): number {
      return used;
    },
    /** Takes bytes of the budget. Errors: 413 once the answer is too large. */
    take(bytes: number): void {
      used += bytes;
      if (used > EXPANDED_BYTES_MAX) throw tooLargeAnswer();
    },
  };
}

const tooLargeAnswer = () =>
  tooLarge(
    `The expanded records of this answer are more than ${EXPANDED_RECORDS_MAX} by one path, or larger than 8 MiB; request fewer records`,
  );

interface Work {
  readable: Readable;
  budget: Budget;
}

/** Expands `steps` one after another. */
function expandAll(
  work: Work,
  steps: readonly ExpandStep[],
  parents: readonly Occurring[],
): MaybePromise<TableRecord[]> {
  const expanded: TableRecord[] = parents.map(() => ({}));
  const from = (index: number): MaybePromise<TableRecord[]> => {
    const step = steps[index];
    if (step === undefined) return expanded;
    const values = step.direction === "one" ? expandOne(work, step, parents) : expandMany(work, step, parents);
    return chain(values, (found) => {
      let times = 0;
      for (let place = 0; place < parents.length; place++) {
        const member = expanded[place];
        if (member !== undefined) member[step.name] = found[place] ?? null;
        times += parents[place]?.times ?? 0;
      }
      work.budget.take((step.name.length + NAME_BYTES) * times);
      return from(index + 1);
    });
  };
  return from(0);
}

/** Bytes of quotes, a colon, a comma, and null or the members of a page of records. */
const NAME_BYTES = 32;

/** Expands the found records by the steps that follow. */
function expandNext(work: Work, step: ExpandStep, found: readonly Occurring[]): MaybePromise<void> {
  if (step.next.length === 0 || found.length === 0) return;
  return chain(expandAll(work, step.next, found), (expanded) => {
    for (const [place, value] of expanded.entries()) {
      const record = found[place]?.record;
      if (record !== undefined) record["expand"] = value;
    }
  });
}

/** Returns the record that each parent refers to, or null; of several references those that may be read, in their order. */
function expandOne(work: Work, step: ExpandStep, parents: readonly Occurring[]): MaybePromise<JsonValue[]> {
  const { column } = step.edge;
  const valuesOf = ({ record }: Occurring): readonly JsonValue[] => {
    const value = record[column.name] ?? null;
    return Array.isArray(value) ? value : value === null ? [] : [value];
  };
  const times = new Map<JsonValue, number>();
  for (const parent of parents) {
    for (const value of valuesOf(parent)) times.set(value, (times.get(value) ?? 0) + parent.times);
  }
  if (column.links !== null && sumOf(times) > EXPANDED_RECORDS_MAX) throw tooLargeAnswer();
  if (times.size === 0) return parents.map(() => (column.links === null ? null : []));
  return chain(work.readable.referredBy(step.edge, [...times.keys()]), (byValue) => {
    let total = 0;
    const found: Occurring[] = [];
    for (const [value, { record, bytes }] of byValue) {
      const occurrences = times.get(value) ?? 0;
      total += bytes * occurrences;
      found.push({ record, times: occurrences });
    }
    work.budget.take(total);
    return chain(expandNext(work, step, found), () =>
      parents.map((parent) => {
        const records = valuesOf(parent).flatMap((value) => byValue.get(value)?.record ?? []);
        return column.links === null ? (records[0] ?? null) : records;
      }),
    );
  });
}

const sumOf = (times: ReadonlyMap<JsonValue, number>): number => {
  let sum = 0;
  for (const count of times.values()) sum += count;
  return sum;
};

/** Returns the records that refer to each parent: `{ items, hasMore }`. */
function expandMany(work: Work, step: ExpandStep, parents: readonly Occurring[]): MaybePromise<JsonValue[]> {
  const { toColumn } = step.edge;
  const values = parents.flatMap(({ record }) => record[toColumn.name] ?? []);
  const times = new Map(parents.map((parent) => [parent.record[toColumn.name] ?? null, parent.times]));
  if (values.length === 0) return parents.map(() => ({ items: [], hasMore: false }));
  return chain(work.readable.referringTo(step.edge, values), (byValue) => {
    const found: Occurring[] = [];
    for (const [value, related] of byValue) {
      const occurrences = times.get(value) ?? 1;
      for (const { record, bytes } of related.slice(0, EXPANDED_PER_RECORD_MAX)) {
        work.budget.take(bytes * occurrences);
        found.push({ record, times: occurrences });
      }
      if (found.length > EXPANDED_RECORDS_MAX) throw tooLargeAnswer();
    }
    return chain(expandNext(work, step, found), () =>
      parents.map(({ record }) => {
        const related = byValue.get(record[toColumn.name] ?? null) ?? [];
        const items = related.slice(0, EXPANDED_PER_RECORD_MAX).map((one) => one.record);
        return { items, hasMore: related.length > items.length };
      }),
    );
  });
}
