import { createElement, type ReactNode, StrictMode } from "react";
import { createRoot } from "react-dom/client";
import { createClient, PlatformError } from "../../src/client/index.ts";
import {
  PlatformProvider,
  useAuth,
  useLive,
  usePresence,
  useRecord,
  useRoom,
  useSearch,
  useUpload,
} from "../../src/client/react/index.ts";

// The page of react-states.test.ts: what each hook follows is an object of the page, of which one member changes at a time.

interface Source {
  [member: string]: unknown;
  subscribe(listener: () => void): () => void;
}

/** `tell`: calls the listeners, which do not learn what has changed. */
function sourceOf(members: object): { source: Source; tell(): void } {
  const listeners = new Set<() => void>();
  const subscribe = (listener: () => void) => {
    listeners.add(listener);
    return () => void listeners.delete(listener);
  };
  return {
    source: { ...members, subscribe },
    tell: () => {
      for (const listener of [...listeners]) listener();
    },
  };
}

const error = new PlatformError({ status: 403, code: "forbidden", message: "no" });

interface Case {
  hook: string;
  /** Calls the hook, and gives what it returns. */
  use(): Record<string, unknown>;
  /** Changes for each member of the result: each makes it another one, and returns its value then. */
  changes: Record<string, () => unknown>;
}

const useLiveQuery = (query: never) => useLive(query);
const useLiveSearch = (query: never) => useSearch({ search: () => query } as never, "a");

function liveCase(hook: "useLive" | "useSearch"): Case {
  const { source, tell } = sourceOf({
    items: [],
    status: "loading",
    error: null,
    hasMore: false,
    isPending: () => false,
  });
  const query = { description: { own: hook }, live: () => source };
  const use = hook === "useLive" ? useLiveQuery : useLiveSearch;
  const become = (member: string, value: unknown) => () => {
    source[member] = value;
    tell();
    return value;
  };
  return {
    hook,
    use: () => ({ ...use(query as never) }),
    changes: {
      items: become("items", [{ id: "a" }]),
      status: become("status", "live"),
      error: become("error", error),
      hasMore: become("hasMore", true),
      isPending: become("isPending", () => true),
    },
  };
}

function recordCase(): Case {
  const { source, tell } = sourceOf({
    items: [],
    status: "loading",
    error: null,
    hasMore: false,
    isPending: () => false,
  });
  const table = { where: () => ({ limit: () => ({ description: { own: "record" }, live: () => source }) }) };
  const become = (member: string, value: unknown, shown: unknown) => () => {
    source[member] = value;
    tell();
    return shown;
  };
  const record = { id: "a" };
  return {
    hook: "useRecord",
    use: () => ({ ...useRecord(table as never, "a") }),
    changes: {
      record: become("items", [record], record),
      status: become("status", "live", "live"),
      error: become("error", error, error),
    },
  };
}

function presenceCase(): Case {
  const { source, tell } = sourceOf({
    ...{ users: [], status: "loading", error: null },
    track: async () => {},
    untrack: async () => {},
  });
  const become = (member: string, value: unknown) => () => {
    source[member] = value;
    tell();
    return value;
  };
  return {
    hook: "usePresence",
    use: () => ({ ...usePresence(source as never) }),
    changes: {
      users: become("users", [{ userId: "u", connectionId: "c", state: {} }]),
      status: become("status", "live"),
      error: become("error", error),
    },
  };
}

/** A state that is refused is told by nothing but the promise of `track`. */
function refusedCase(): Case {
  const refused = Promise.withResolvers<void>();
  const { source } = sourceOf({
    ...{ users: [], status: "live", error: null },
    track: () => refused.promise,
    untrack: async () => {},
  });
  return {
    hook: "usePresence, whose state is refused",
    use: () => ({ error: usePresence(source as never, {}).error }),
    changes: {
      error: () => {
        refused.reject(error);
        return error;
      },
    },
  };
}

function roomCase(): Case {
  const { source, tell } = sourceOf({
    ...{ status: "joined", error: null, shared: {}, mine: {}, players: [] },
    on: () => () => {},
    leave: () => {},
    act: async () => null,
  });
  const rooms = { join: async () => source };
  const become = (member: string, value: unknown) => () => {
    source[member] = value;
    tell();
    return value;
  };
  return {
    hook: "useRoom",
    use: () => ({ ...useRoom(rooms as never, "one") }),
    changes: {
      status: become("status", "offline"),
      error: become("error", error),
      shared: become("shared", { count: 1 }),
      mine: become("mine", { count: 2 }),
      players: become("players", [{ userId: "u" }]),
    },
  };
}

function uploadCase(): Case {
  const answers: PromiseWithResolvers<unknown>[] = [];
  let progress: (next: object) => void = () => {};
  const bucket = {
    upload(_key: string, _file: unknown, { onProgress }: { onProgress: typeof progress }) {
      progress = onProgress;
      const answer = Promise.withResolvers<unknown>();
      answers.push(answer);
      return answer.promise;
    },
  };
  let upload: (key: string, file: string) => Promise<unknown> = async () => {};
  const noted = (result: { upload: typeof upload }) => {
    upload = result.upload;
    return { ...result };
  };
  const begin = () => void upload("key", "text").catch(() => {});
  return {
    hook: "useUpload",
    use: () => noted(useUpload(bucket as never)),
    changes: {
      status: () => {
        begin();
        return "uploading";
      },
      progress: () => {
        const next = { loaded: 1, total: 4 };
        progress(next);
        return next;
      },
      file: () => {
        const file = { key: "key" };
        answers.at(-1)?.resolve(file);
        return file;
      },
      error: () => {
        begin();
        answers.at(-1)?.reject(error);
        return error;
      },
    },
  };
}

function authCase(): Case {
  const { source, tell } = sourceOf({ user: null });
  return {
    hook: "useAuth",
    use: () => ({ user: useAuth().user }),
    changes: {
      user: () => {
        source["user"] = { id: "u" };
        tell();
        return source["user"];
      },
    },
    ...{ client: { auth: source } },
  };
}

/** Latest results of the hooks. */
const shown = new Map<string, Record<string, unknown>>();
function Shown({ one }: { one: Case }): ReactNode {
  shown.set(one.hook, one.use());
  return null;
}

const rendered = async (): Promise<void> => {
  for (let frame = 0; frame < 3; frame++)
    await new Promise((resolve) => requestAnimationFrame(() => setTimeout(resolve)));
};

async function run(): Promise<string[]> {
  const problems: string[] = [];
  const own = createClient({ url: location.origin });
  for (const one of [
    liveCase("useLive"),
    liveCase("useSearch"),
    recordCase(),
    presenceCase(),
    refusedCase(),
    roomCase(),
    uploadCase(),
    authCase(),
  ]) {
    const client = (one as { client?: typeof own }).client ?? own;
    const root = createRoot(document.createElement("div"));
    root.render(
      createElement(StrictMode, null, createElement(PlatformProvider, { client }, createElement(Shown, { one }))),
    );
    await rendered();
    // Functions that do something are no state. A new state of a hook needs a case here.
    const does = new Set(["act", "on", "join", "upload", "cancel"]);
    const states = Object.keys(shown.get(one.hook) ?? {}).filter((name) => !does.has(name));
    if (String(states.sort()) !== String(Object.keys(one.changes).sort()))
      problems.push(`${one.hook} returns ${states}`);
    for (const [member, change] of Object.entries(one.changes)) {
      const expected = change();
      await rendered();
      if (shown.get(one.hook)?.[member] !== expected)
        problems.push(`${one.hook}: ${member} has changed alone, and is not shown`);
    }
    root.unmount();
  }
  return problems;
}

const problems = await run();
const result = document.createElement("pre");
result.id = "result";
result.textContent = JSON.stringify(problems);
document.body.append(result);
