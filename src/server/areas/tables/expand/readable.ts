import { tooLarge } from "../../../../kernel/errors.ts";
import type { JsonValue } from "../../../../kernel/json/json.ts";
import { chain, isPromise, type MaybePromise } from "../../../../kernel/maybe-promise.ts";
import { compareText } from "../../../../kernel/records/text-match.ts";
import type { TableRecord } from "../../../config/types.ts";
import type { DatabaseFile, ReadCaller } from "../../../db/index.ts";
import { EXPANDED_PER_RECORD_MAX, RULE_RECORDS_MAX } from "../limits.ts";
import type { ReferenceEdge, TableModel } from "../model/model.ts";
import type { Table } from "../records/namespaces.ts";
import { seenBy, withOwnAddress } from "../records/users-view.ts";
import type { Asker, Grant, RecordRights } from "../rules/access.ts";
import { type Referred, type RelatedPage, type RelatedRecord, relatedOf } from "./related-store.ts";

/** Records that a caller may read, by the value of a reference. An unreadable one is treated as missing. */
export interface Readable {
  /** Returns the records that `values` refer to. */
  referredBy(edge: ReferenceEdge, values: readonly JsonValue[]): MaybePromise<Map<JsonValue, RelatedRecord>>;
  /** Returns, for each of `values`, the first records by id that refer to it: one more than are expanded, if there are more. */
  referringTo(edge: ReferenceEdge, values: readonly JsonValue[]): MaybePromise<Map<JsonValue, RelatedRecord[]>>;
}

const tooManyToAsk = () =>
  tooLarge(
    `The read rules of the expanded tables check each record, and more than ${RULE_RECORDS_MAX} would have to be checked; request fewer records, or return a filter from the rules`,
  );

interface ReadableDeps {
  tableOf(model: TableModel): Table;
  rights: RecordRights;
  asker: Asker;
  /** The namespace of `file`. */
  namespace: string;
  file: DatabaseFile;
  /** Returns the file of another namespace, which has no instances. */
  fileOf(namespace: string): DatabaseFile;
  caller: ReadCaller | undefined;
}

/** Returns a function that finds the file of a table, and who asks its rules. */
const createPlaces =
  ({ asker, namespace: own, file, fileOf }: ReadableDeps) =>
  ({ namespace }: TableModel): { file: DatabaseFile; asker: Asker } => {
    if (namespace === own) return { file, asker };
    return { file: fileOf(namespace), asker: { principal: asker.principal, rules: asker.rules.at(namespace) } };
  };

export function createReadable(deps: ReadableDeps): Readable {
  const { tableOf, rights, caller } = deps;
  const { principal } = deps.asker;
  const placeOf = createPlaces(deps);
  const grants = new Map<TableModel, Grant>();
  let askedCount = 0;

  const grantOf = (model: TableModel): MaybePromise<Grant> => {
    const known = grants.get(model);
    if (known !== undefined) return known;
    const { file, asker } = placeOf(model);
    const opening = file === deps.file ? undefined : file.ready();
    return chain(
      chain(opening, () => rights.grant(asker, model, "read")),
      (grant) => {
        grants.set(model, grant);
        return grant;
      },
    );
  };

  const shown =
    (model: TableModel) =>
    (one: RelatedRecord): RelatedRecord =>
      model.isUsers ? { ...one, record: withOwnAddress(principal, model, one.record) } : one;

  /** Removes the records hidden by a rule that looks at each record. */
  const allowed = (grant: Grant, model: TableModel, found: RelatedRecord[]): MaybePromise<RelatedRecord[]> => {
    // The statement has only records that match a rule's filter.
    if (grant.kind !== "record") return found.map(shown(model));
    askedCount += found.length;
    if (askedCount > RULE_RECORDS_MAX) throw tooManyToAsk();
    const { asker } = placeOf(model);
    const answers = found.map(({ record }) => rights.coversRead(grant, asker, model, record));
    const those = (settled: readonly unknown[]) =>
      found.filter((_, place) => settled[place] === true).map(shown(model));
    return answers.some(isPromise) ? Promise.all(answers).then(those) : those(answers);
  };
  const ruleOf = (grant: Grant) => (grant.kind === "filter" ? grant.filter : null);
  const checkCut = (grant: Grant, { isCut }: RelatedPage): void => {
    if (isCut && grant.kind !== "record") throw tooLarge(TOO_LARGE);
  };

  return {
    referredBy: ({ to, toColumn }, values) =>
      chain(grantOf(to), (grant) => {
        const readable = new Map<JsonValue, RelatedRecord>();
        if (grant.kind === "none") return readable;
        const related = relatedOf(seenBy(principal, tableOf(to)));
        const { file } = placeOf(to);
        const query = { column: toColumn, rule: ruleOf(grant), caller };
        const read = (wanted: readonly JsonValue[]): MaybePromise<Map<JsonValue, RelatedRecord>> => {
          return chain(related.byValue(file, wanted, query), (page) => {
            checkCut(grant, page);
            return chain(allowed(grant, to, page.found), (found) => {
              for (const one of found) readable.set(one.record[toColumn.name] ?? null, one);
              if (!page.isCut) return readable;
              const seen = new Set(page.found.map(({ record }) => record[toColumn.name] ?? null));
              return read(wanted.filter((value) => !seen.has(value)));
            });
          });
        };
        return read(values);
      }),

    referringTo: (edge, values) =>
      chain(grantOf(edge.from), (grant) => {
        const lists = new Map(values.map((value) => [value, newList()]));
        const readable = (): Map<JsonValue, RelatedRecord[]> =>
          new Map([...lists].map(([value, { found }]) => [value, found]));
        if (grant.kind === "none") return readable();
        const related = relatedOf(seenBy(principal, tableOf(edge.from)));
        const { file } = placeOf(edge.from);
        const query = { column: edge.column, rule: ruleOf(grant), caller };
        const read = (): MaybePromise<Map<JsonValue, RelatedRecord[]>> => {
          const open = [...lists].filter(([, list]) => !list.isComplete);
          if (open.length === 0) return readable();
          const referred: Referred[] = open.map(([value, { after }]) => ({ value, after }));
          return chain(related.referringTo(file, referred, query), (page) => {
            checkCut(grant, page);
            markRead(lists, open, page, edge.column.name);
            return chain(allowed(grant, edge.from, page.found), (found) => {
              addTo(lists, found, edge.column.name);
              return read();
            });
          });
        };
        return read();
      }),
  };
}

const TOO_LARGE = "The expanded records of this answer are too many, or larger than 8 MiB; request fewer records";

/** Records found so far that refer to one value. */
interface ReferringList {
  found: RelatedRecord[];
  /** Last id that was read. */
  after: string;
  isComplete: boolean;
}

const newList = (): ReferringList => ({ found: [], after: "", isComplete: false });

/** Returns the value by which a record refers. */
const referringValue = ({ record, of }: RelatedRecord, field: string): JsonValue => of ?? record[field] ?? null;

/** Records how far each value was read. A cut page may contain only a part of its last value. */
function markRead(
  lists: ReadonlyMap<JsonValue, ReferringList>,
  open: readonly [JsonValue, ReferringList][],
  page: RelatedPage,
  field: string,
): void {
  const counts = new Map<JsonValue, number>();
  const end = page.found.at(-1);
  const last = end === undefined ? null : referringValue(end, field);
  for (const one of page.found) {
    const { record } = one;
    const value = referringValue(one, field);
    counts.set(value, (counts.get(value) ?? 0) + 1);
    const list = lists.get(value);
    const id = String(record["id"]);
    if (list !== undefined && (list.after === "" || compareText(id, list.after) > 0)) list.after = id;
  }
  for (const [value, list] of open) {
    // The values come in the order of `open`.
    if (page.isCut && value === last) return;
    list.isComplete = (counts.get(value) ?? 0) <= EXPANDED_PER_RECORD_MAX;
  }
}

function addTo(lists: ReadonlyMap<JsonValue, ReferringList>, found: readonly RelatedRecord[], field: string): void {
  const order = (a: TableRecord, b: TableRecord) => compareText(String(a["id"]), String(b["id"]));
  for (const one of found) lists.get(referringValue(one, field))?.found.push(one);
  for (const list of lists.values()) {
    // SQLite reads them by id, and sorting sorted records costs one comparison each.
    list.found.sort((a, b) => order(a.record, b.record));
    if (list.found.length <= EXPANDED_PER_RECORD_MAX) continue;
    list.found.length = EXPANDED_PER_RECORD_MAX + 1;
    list.isComplete = true;
  }
}
