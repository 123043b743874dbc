import type { MaybePromise } from "../../../kernel/maybe-promise.ts";
import type { Auth } from "../identity.ts";
import type { FilterOf } from "./filters.ts";

/** A type of no value, whose name says in errors of TypeScript what a rule has to return. */
interface BooleanOrFilterOfItsTable {
  readonly "~rule": never;
}

/**
 * A function that decides about records of `R`. Of a union TypeScript explains the first function alone, and the first one here
 * ends the explanation at what is returned, in place of one line for each type that a filter is made of. [CF376]
 */
type Deciding<Arguments extends readonly unknown[], R> =
  | ((...given: Arguments) => BooleanOrFilterOfItsTable)
  | ((...given: Arguments) => MaybePromise<boolean | FilterOf<R>>);

export type TypedRule<R, Context> = boolean | Deciding<[auth: Auth | null, record: R, context: Context], R>;

export type TypedUpdateRule<R, Context> =
  | boolean
  | Deciding<[auth: Auth | null, record: R, next: R, context: Context], R>;
