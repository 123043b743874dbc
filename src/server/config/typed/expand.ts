import type { NamespacesAround } from "./declared.ts";
import type { RecordOf } from "./records.ts";

/**
 * Member of a schema by name, as `F extends { references: … }` fails for inferred schemas before TypeScript 6: see
 * `config/typed/records.ts`.
 */
type PartOf<F, Name extends string> = Name extends keyof F ? F[Name] : never;

/** Table that a field refers to; never if it refers to none. */
type TargetOf<Field> =
  PartOf<Field, "references"> extends infer Reference
    ? Reference extends string
      ? Reference
      : Extract<PartOf<Reference, "table">, string>
    : never;

type OutgoingOf<Schema> = {
  [Name in keyof Schema & string]: [TargetOf<Schema[Name]>] extends [never] ? never : Name;
}[keyof Schema & string];

type IncomingOf<Tables, Name> = {
  [Table in keyof Tables & string]: {
    [Field in keyof Tables[Table] & string]: [TargetOf<Tables[Table][Field]>] extends [never]
      ? never
      : TargetOf<Tables[Table][Field]> extends Name
        ? `${Table}(${Field})`
        : never;
  }[keyof Tables[Table] & string];
}[keyof Tables & string];

type At<Members, Name> = Name extends keyof Members ? Members[Name] : unknown;

/** The tables of another namespace of the config. */
type TablesOf<Tables, Namespace> = At<NamespacesAround<Tables>, Namespace>;

/** The schema of a table; `shared/users` is one of another namespace. `unknown`: it is not known. */
type SchemaAt<Tables, Name> = Name extends keyof Tables
  ? Tables[Name]
  : Name extends `${infer Namespace}/${infer Table}`
    ? At<TablesOf<Tables, Namespace>, Table>
    : unknown;

type IncomingAt<Tables, Name> = Name extends `${infer Namespace}/${infer Table}`
  ? IncomingOf<TablesOf<Tables, Namespace>, Table>
  : IncomingOf<Tables, Name>;

/** Table that one names from its own namespace. */
type FromOf<Name, To> = To extends `${string}/${string}`
  ? To
  : Name extends `${infer Namespace}/${string}`
    ? `${Namespace}/${To & string}`
    : To;

/** Step of a path: a field with `references`, or `table(field)` for the records that refer back. */
type StepOf<Tables, Name> = string extends keyof SchemaAt<Tables, Name>
  ? string
  : unknown extends SchemaAt<Tables, Name>
    ? string
    : OutgoingOf<SchemaAt<Tables, Name>> | IncomingAt<Tables, Name>;

/** Table to which a step leads. */
type EndOf<Tables, Name, Step> = Step extends `${infer Table}(${string})`
  ? FromOf<Name, Table>
  : Step extends keyof SchemaAt<Tables, Name>
    ? FromOf<Name, TargetOf<SchemaAt<Tables, Name>[Step]>>
    : never;

/** The path itself if it is valid; else the possible completions. */
export type CheckedPath<
  Tables,
  Name,
  Path extends string,
  Before extends string = "",
> = Path extends `${infer Step}.${infer Rest}`
  ? Step extends StepOf<Tables, Name>
    ? CheckedPath<Tables, EndOf<Tables, Name, Step>, Rest, `${Before}${Step}.`>
    : `${Before}${StepOf<Tables, Name>}`
  : Path extends StepOf<Tables, Name>
    ? `${Before}${Path}`
    : `${Before}${StepOf<Tables, Name>}`;

type FirstOf<Path> = Path extends `${infer Step}.${string}` ? Step : Path;
type RestOf<Path, Step extends string> = Path extends `${Step}.${infer Rest}` ? Rest : never;

type RelatedOf<Tables, Name, Path> = WithRelated<Tables, Name, RecordOf<SchemaAt<Tables, Name>>, Path>;

/** Whether a step is a field of several references. */
type IsSeveral<Tables, Name, Step> = Step extends keyof SchemaAt<Tables, Name>
  ? "references" extends PartOf<SchemaAt<Tables, Name>[Step], "type">
    ? true
    : false
  : false;

type Expanded<Tables, Name, Path> = {
  [Step in FirstOf<Path> & string]: Step extends `${infer Table}(${string})`
    ? { items: RelatedOf<Tables, FromOf<Name, Table>, RestOf<Path, Step>>[]; hasMore: boolean }
    : IsSeveral<Tables, Name, Step> extends true
      ? RelatedOf<Tables, EndOf<Tables, Name, Step>, RestOf<Path, Step>>[]
      : RelatedOf<Tables, EndOf<Tables, Name, Step>, RestOf<Path, Step>> | null;
};

/** Record with the `expand` of these paths; the record itself without any. */
export type WithRelated<Tables, Name, Row, Path> = [Path] extends [never]
  ? Row
  : Row & { expand: Expanded<Tables, Name, Path> };
