import type { User } from "../app/index.ts";
import type { AnyFilter } from "../records.ts";
import type { AccountSource, FileEvent, TableEvent } from "../sections/functions/sources.ts";
import type { TriggerConfig, TriggerRun } from "../sections/functions/triggers.ts";
import type { WebhookConfig } from "../sections/functions/webhooks.ts";
import type { FileFacts } from "../sections/storage.ts";
import type { AppOf } from "./access.ts";
import type { FilterOf } from "./filters.ts";
import type { RecordOf } from "./records.ts";

/** The address `NAMESPACE.TABLE` of every table. */
type TableNames<Namespaces> = string extends keyof Namespaces
  ? string
  : { [Name in keyof Namespaces & string]: `${Name}.${keyof Namespaces[Name] & string}` }[keyof Namespaces & string];

type SourceOf<Namespaces, Buckets> =
  | { table: TableNames<Namespaces>; events?: readonly TableEvent[] }
  | { bucket: keyof Buckets & string; events?: readonly FileEvent[] }
  | AccountSource;

type SchemaOf<Namespaces, Namespace, Table> = Namespace extends keyof Namespaces
  ? Table extends keyof Namespaces[Namespace]
    ? Namespaces[Namespace][Table]
    : unknown
  : unknown;

/** The record, file or user that an event is about. */
type SubjectOf<On, Namespaces> = On extends { table: `${infer Namespace}.${infer Table}` }
  ? RecordOf<SchemaOf<Namespaces, Namespace, Table>>
  : On extends { bucket: string }
    ? FileFacts
    : User;

type SubjectFilter<On, Namespaces> = On extends { table: string } ? FilterOf<SubjectOf<On, Namespaces>> : AnyFilter;

type EventOf<On> = On extends { events: readonly (infer Event)[] }
  ? Event
  : On extends { table: string }
    ? TableEvent
    : On extends { bucket: string }
      ? FileEvent
      : On extends { auth: readonly (infer Event)[] }
        ? Event
        : never;

/** The types of `before` and `after` for an event. */
type Happened<Event, Subject> = Event extends "insert" | "signup"
  ? { event: Event; before: null; after: Subject }
  : Event extends "delete"
    ? { event: Event; before: Subject; after: null }
    : Event extends "upload"
      ? { event: Event; before: Subject | null; after: Subject }
      : { event: Event; before: Subject; after: Subject };

/** The members of a run. TypeScript before 6 does not infer `on` beside a function: the records are of any table then. */
type TypedRun<On, Namespaces, Jobs> = Omit<TriggerRun, "event" | "before" | "after" | "app"> & {
  app: AppOf<Namespaces, Jobs>;
} & ([EventOf<On>] extends [never]
    ? Pick<TriggerRun, "event" | "before" | "after">
    : Happened<EventOf<On>, SubjectOf<On, Namespaces>>);

/** A trigger whose run knows the records of its table. */
export interface TypedTrigger<On, Namespaces, Buckets, Jobs> extends Omit<TriggerConfig, "on" | "filter" | "run"> {
  on: On & SourceOf<NoInfer<Namespaces>, NoInfer<Buckets>>;
  filter?: SubjectFilter<NoInfer<On>, NoInfer<Namespaces>>;
  run: (run: TypedRun<NoInfer<On>, NoInfer<Namespaces>, NoInfer<Jobs>>) => unknown;
}

export interface TypedWebhook<On, Namespaces, Buckets> extends Omit<WebhookConfig, "on" | "filter"> {
  on: On & SourceOf<NoInfer<Namespaces>, NoInfer<Buckets>>;
  filter?: SubjectFilter<NoInfer<On>, NoInfer<Namespaces>>;
}
