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

type Methods<T> = { [Name in keyof T]: T[Name] extends (...given: infer Given) => unknown ? Given : never };

/** Methods of what `loaded` gives, by name: each loads it when it is called. */
export const deferred =
  <T>(loaded: () => Promise<T>) =>
  <Name extends keyof T>(name: Name) =>
    // A method of such an object gives a promise in any case, so that its type stays what it is.
    (async (...given: Methods<T>[Name]) =>
      ((await loaded())[name] as (...given: Methods<T>[Name]) => unknown)(...given)) as T[Name];

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
