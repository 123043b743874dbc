/** What React reads: the same object until one of its members has changed. */
export function keepEqual<Result extends object>(): (next: Result) => Result {
  let last: Result | null = null;
  return (next) => {
    const names = Object.keys(next) as (keyof Result)[];
    const present = last;
    if (present === null || names.some((name) => !Object.is(present[name], next[name]))) last = next;
    return last ?? next;
  };
}
