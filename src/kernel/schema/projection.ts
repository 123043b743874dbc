import type { Static, TObject } from "typebox";
import type { Millis } from "../clock.ts";
import { isoTime } from "../time/iso-datetime.ts";

/** A row from which an answer is made: times, whose names end in `At`, are milliseconds. */
export type RowOf<Shown> = {
  readonly [Name in keyof Shown]: Name extends `${string}At` ? Millis | Extract<Shown[Name], null> : Shown[Name];
};

/**
 * Returns the members of a row that the schema names, and nothing else: what a table gains later stays private until the schema
 * has it. Times become ISO 8601.
 */
export function projection<Shape extends TObject>(shape: Shape): (row: RowOf<Static<Shape>>) => Static<Shape> {
  const names = Object.keys(shape.properties);
  return (row) => {
    const values = row as Readonly<Record<string, unknown>>;
    const shown = names.map((name) => {
      const value = values[name];
      return [name, name.endsWith("At") && typeof value === "number" ? isoTime(value) : value] as const;
    });
    // A row has all of these members, by its type.
    return Object.fromEntries(shown) as Static<Shape>;
  };
}
