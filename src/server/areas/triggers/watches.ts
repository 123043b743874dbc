import type { Clock } from "../../../kernel/clock.ts";
import { reasonOf } from "../../../kernel/errors.ts";
import type { Ids } from "../../../kernel/ids.ts";
import type { AcceptedInvitation, AnyFilter, ChangedBy, EventSource, Subject } from "../../config/types.ts";
import type { Actor, Transaction } from "../../db/index.ts";
import type { Causes } from "./causes.ts";
import { GROUP_LENGTH_MAX } from "./limits.ts";
import type { Occurrence } from "./types.ts";

/** A subscription of a trigger, webhook or hook to some changes. */
export interface Watch {
  /** Path of its declaration in the config. */
  path: string;
  /** Name of its jobs. */
  name: string;
  on: EventSource | { auth: readonly string[] };
  filter: AnyFilter | undefined;
  /** Whether jobs about one record run one after another, in the order of the changes. */
  isOrdered: boolean;
}

interface Match {
  name: string;
  events: readonly string[];
  isOrdered: boolean;
  /** Compiled filter; null: every record. */
  matches: Matches | null;
}

/** Whether a filter matches a subject; its relations are looked up in the transaction of the change. */
type Matches = (subject: Subject, tx: Transaction) => boolean;

/** Compiles filters. Errors: a filter that does not fit its table. */
export interface Filters {
  ofTable(namespace: string, table: string, filter: AnyFilter): Matches;
  ofFacts(filter: AnyFilter): Matches;
}

/** An event of a record, a file or an account. */
export interface Happening {
  /** `type` without the event. */
  source: string;
  event: string;
  /** The id of the record, the key of the file, or the id of the user. */
  subjectId: string;
  instanceId: string | null;
  before: Subject | null;
  after: Subject | null;
  by: Actor;
  invitation?: AcceptedInvitation | undefined;
}

/** The watches of one table, one bucket, or all accounts. */
export class SourceWatches {
  readonly #matches: Match[] = [];

  add(match: Match): void {
    this.#matches.push(match);
  }

  has(event: string): boolean {
    return this.#matches.some(({ events }) => events.includes(event));
  }

  /** Returns the watches that a change concerns. */
  of(event: string, subject: Subject, tx: Transaction): readonly Match[] {
    return this.#matches.filter(
      ({ events, matches }) => events.includes(event) && (matches === null || matches(subject, tx)),
    );
  }
}

const TABLE_EVENTS = ["insert", "update", "delete"];
const FILE_EVENTS = ["upload", "delete"];

/** All watches of a config, by their source. */
export type Watches = ReturnType<typeof compileWatches>;

/** Compiles the watches. Errors: a filter that does not fit its table. */
export function compileWatches(watches: readonly Watch[], filters: Filters) {
  const tables = new Map<string, Map<string, SourceWatches>>();
  const buckets = new Map<string, SourceWatches>();
  const accounts = new SourceWatches();
  for (const { path, name, on, filter, isOrdered } of watches) {
    const compiled = <Compiled>(compile: (filter: AnyFilter) => Compiled): Compiled | null => {
      try {
        return filter === undefined ? null : compile(filter);
      } catch (cause) {
        throw new Error(`${path}.${reasonOf(cause)}`, { cause });
      }
    };
    if ("table" in on) {
      // Validation of the config has checked that there are both parts.
      const [namespace = "", table = ""] = on.table.split(".");
      const matches = compiled((given) => filters.ofTable(namespace, table, given));
      const ofNamespace = entry(tables, namespace, () => new Map<string, SourceWatches>());
      entry(ofNamespace, table, () => new SourceWatches()).add({
        name,
        events: on.events ?? TABLE_EVENTS,
        isOrdered,
        matches,
      });
      continue;
    }
    const matches = compiled(filters.ofFacts);
    if ("bucket" in on) {
      const of = entry(buckets, on.bucket, () => new SourceWatches());
      of.add({ name, events: on.events ?? FILE_EVENTS, isOrdered, matches });
    } else accounts.add({ name, events: on.auth, isOrdered, matches });
  }
  return {
    table: (namespace: string, table: string): SourceWatches | undefined => tables.get(namespace)?.get(table),
    bucket: (bucket: string): SourceWatches | undefined => buckets.get(bucket),
    accounts,
  };
}

function entry<Value>(map: Map<string, Value>, key: string, make: () => Value): Value {
  const known = map.get(key);
  if (known !== undefined) return known;
  const made = make();
  map.set(key, made);
  return made;
}

/** Writes the jobs that a change triggers to the outbox, in its transaction. Errors: CauseExhausted. */
export function noteHappening(
  tx: Transaction,
  watches: SourceWatches,
  happening: Happening,
  { clock, ids, causes }: { clock: Clock; ids: Ids; causes: Causes },
): void {
  const { source, event, subjectId, instanceId, before, after, invitation } = happening;
  const subject = after ?? before;
  const matched = subject === null ? [] : watches.of(event, subject, tx);
  if (matched.length === 0) return;
  const { depth, root } = tx.cause;
  if (root !== null) causes.count(root, matched.length);
  const id = ids.uuid();
  const occurrence: Occurrence = {
    type: `${source}.${event}`,
    event,
    before,
    after,
    by: happening.by satisfies ChangedBy,
    instanceId,
    at: new Date(clock.now()).toISOString(),
    depth,
    root: root ?? id,
    ...(invitation === undefined ? {} : { invitation }),
  };
  const data = JSON.stringify(occurrence);
  const row = { key: null, dueAt: null, data, secret: null };
  const namesOf = (isOrdered: boolean) => matched.filter((one) => one.isOrdered === isOrdered).map(({ name }) => name);
  const [ordered, others] = [namesOf(true), namesOf(false)];
  const group = groupOf([source, instanceId ?? "", subjectId].join("/"));
  if (ordered.length > 0) tx.enqueue({ ...row, id, names: ordered, group });
  if (others.length > 0) {
    tx.enqueue({ ...row, id: ordered.length > 0 ? ids.uuid() : id, names: others, group: null });
  }
}

const groupOf = (subject: string): string =>
  subject.length <= GROUP_LENGTH_MAX ? subject : new Bun.CryptoHasher("sha256").update(subject).digest("hex");
