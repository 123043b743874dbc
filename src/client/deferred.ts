/** Memoizes `load`. A failed load is retried by the next call. */
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

/** Returns lazy methods of an object that is loaded on the first call. Each returns a promise. */
export const deferred = <T, Name extends keyof T & string>(load: () => Promise<T>, ...names: Name[]): Pick<T, Name> =>
  // Each method of `T` returns a promise already, as its type says.
  Object.fromEntries(
    names.map((name) => [
      name,
      async (...given: unknown[]) => ((await load())[name] as (...given: unknown[]) => unknown)(...given),
    ]),
  ) as Pick<T, Name>;

/** Runs `work` once loaded. Returns a function that ends what `work` started, or will start. */
export function whenLoaded<T>(loading: Promise<T>, work: (loaded: T) => () => void): () => void {
  let isOver = false;
  let end: () => void = () => {
    isOver = true;
  };
  loading.then(
    (loaded) => {
      if (!isOver) end = work(loaded);
    },
    // The code may fail to load without a network; the caller sees the failure in the promise it awaits.
    () => {},
  );
  return () => end();
}
