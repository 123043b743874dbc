import type { FileFacts } from "../config/types.ts";

/** A file that notes whether anybody looks at it. */
export interface ProbingFile {
  file: FileFacts;
  /** Whether anything of it was asked for, in whatever way: a member, `in`, its names, its JSON. */
  readonly isSeen: boolean;
}

/** Every member is there, so that a rule runs through as it would with a stored file. */
export function createProbingFile(): ProbingFile {
  let isSeen = false;
  const facts: FileFacts = {
    ...{ key: "", size: 0, contentType: "", uploadedBy: null },
    ...{ customMetadata: {}, uploaded: new Date(0).toISOString() },
  };
  // Whatever is done with a proxy, its handler is asked first how: here for nothing of its own, but it has been asked.
  const handler = new Proxy<ProxyHandler<FileFacts>>(
    {},
    {
      get() {
        isSeen = true;
      },
    },
  );
  return {
    file: new Proxy(facts, handler),
    get isSeen() {
      return isSeen;
    },
  };
}
