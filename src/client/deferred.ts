/** What `load` gives, loaded at the first call. A load that failed is tried again by the next one. */
export function once<T>(load: () => Promise<T>): () => Promise<T> {
  let loading: Promise<T> | null = null;
  return () => {
    loading ??= load().catch((error) => {
      loading = null;
      throw error;
    });
    return loading;
  };
}

/** Methods of what `load` gives, which is loaded when one of them is called. Each gives a promise. */
export const deferred = <T, Name extends keyof T & string>(load: () => Promise<T>, ...names: Name[]): Pick<T, Name> =>
  // A method of `T` by its name, with a promise of what it gives, as its type says already.
  Object.fromEntries(
    names.map((name) => [
      name,
      async (...given: unknown[]) => ((await load())[name] as (...given: unknown[]) => unknown)(...given),
    ]),
  ) as Pick<T, Name>;

/** Runs `work` with what is being loaded. The function ends what it began, now or as soon as it has begun. */
export function whenLoaded<T>(loading: Promise<T>, work: (loaded: T) => () => void): () => void {
  let isOver = false;
  let end: () => void = () => {
    isOver = true;
  };
  loading.then(
    (loaded) => {
      if (!isOver) end = work(loaded);
    },
    // Without a network the code may not load; the caller hears of it by what it awaits.
    () => {},
  );
  return () => end();
}
