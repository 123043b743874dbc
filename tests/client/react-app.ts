import { createElement, type ReactNode, StrictMode, Suspense, useState } from "react";
import { createRoot } from "react-dom/client";
import { createClient } from "../../src/client/index.ts";
import {
  PlatformProvider,
  useAuth,
  useClient,
  useLive,
  usePresence,
  useRecord,
  useRoom,
  useSave,
  useSearch,
  useUpload,
} from "../../src/client/react/index.ts";
import type config from "./react-config.ts";

// The page of react.test.ts: each part of it is behind a button, so that it can be shown and taken away.

const client = createClient<typeof config>({ url: location.origin });

const show = (id: string, value: unknown): ReactNode => createElement("pre", { id }, JSON.stringify(value));
const button = (id: string, onClick: () => unknown): ReactNode =>
  createElement("button", { id, onClick, type: "button" }, id);

function Who(): ReactNode {
  const { user, auth } = useAuth();
  return createElement(
    "div",
    null,
    show("user", user?.id ?? null),
    button("sign-in", () => auth.signInAnonymously()),
    button("sign-out", () => auth.signOut()),
  );
}

/** The objects that each record has been. */
const seen = new Map<string, Set<object>>();
function Films(): ReactNode {
  const own = useClient<typeof config>();
  const [limit, setLimit] = useState(2);
  const films = own.db("shared").table("films");
  const { items, status, hasMore, isPending } = useLive(films.sort("title").limit(limit));
  const [title, setTitle] = useState("");
  const versions = items.map((film) => {
    const objects = seen.get(film.id) ?? new Set();
    seen.set(film.id, objects.add(film));
    return objects.size;
  });
  return createElement(
    "div",
    null,
    show("films", {
      titles: items.map((film) => film.title),
      created: items.filter((film) => film.title === title).map(({ createdAt }) => createdAt),
      pending: items.filter(({ id }) => isPending(id)).map((film) => film.title),
      ...{ status, hasMore, versions },
    }),
    createElement("input", {
      ...{ id: "title", value: title },
      onChange: ({ target }: { target: HTMLInputElement }) => setTitle(target.value),
    }),
    button("insert", () => films.insert({ title })),
    button("more", () => {
      seen.clear();
      setLimit(3);
    }),
  );
}

/** Shows a page that changes to another server. */
function Servers(): ReactNode {
  const [own, setOwn] = useState(() => createClient<typeof config>({ url: location.origin }));
  const change = () => {
    own.close();
    setOwn(createClient<typeof config>({ url: `${location.origin}/` }));
  };
  return createElement(PlatformProvider, { client: own }, createElement(Films), button("change-server", change));
}

function Found(): ReactNode {
  const [text, setText] = useState("");
  const { items, status, hasMore } = useSearch(client.db("shared").table("films").limit(5), text);
  return createElement(
    "div",
    null,
    show("found", {
      // Without a mark the search has found nothing in the title, whose type is that of the table.
      marked: items.map(({ title, highlights }) => highlights["title"] ?? title.length),
      ...{ status, hasMore },
    }),
    createElement("input", {
      ...{ id: "text", value: text },
      onChange: ({ target }: { target: HTMLInputElement }) => setText(target.value),
    }),
  );
}

function Film({ id }: { id: string | null }): ReactNode {
  const { record, status } = useRecord(client.db("shared").table("films"), id);
  return show("film", { title: record?.title ?? null, status });
}

function Quiz({ id }: { id: string | null }): ReactNode {
  const { shared, status, players, error, act } = useRoom(client.rooms("quiz"), id);
  return createElement(
    "div",
    null,
    show("room", { ...shared, status, players: players.length, error: error?.code ?? null }),
    button("add", () => act("add", { by: 1 })),
  );
}

function People({ channel }: { channel: string }): ReactNode {
  const [mood, setMood] = useState("fine");
  const { users, status, error } = usePresence(client.presence<{ mood: string }>(channel), { mood });
  const moods = users.map(({ state }) => state.mood).sort();
  return createElement(
    "div",
    null,
    show("people", { moods, status, error: error?.code ?? null }),
    button("better", () => setMood("better")),
  );
}

function Save(): ReactNode {
  const { insert, update, cancel, status, progress, record, error } = useSave(client.db("shared").table("posters"));
  const send = (given: FileList | null) => {
    const [image] = given ?? [];
    if (image === undefined) return;
    const write = record === null ? insert({ image }) : update(record.id, { image, back: image });
    write.catch(() => {});
  };
  return createElement(
    "div",
    null,
    show("save", {
      ...{ status, ...progress, image: record?.image.name ?? null, back: record?.back?.name ?? null },
      error: error?.code ?? null,
    }),
    createElement("input", {
      type: "file",
      onChange: ({ target }: { target: HTMLInputElement }) => send(target.files),
    }),
    button("cancel", cancel),
  );
}

function Upload(): ReactNode {
  const { upload, cancel, status, progress, file, error } = useUpload(client.storage("files"));
  const send = (given: FileList | null) => {
    const [chosen] = given ?? [];
    if (chosen !== undefined) upload(chosen.name, chosen).catch(() => {});
  };
  return createElement(
    "div",
    null,
    show("upload", { status, ...progress, stored: file?.size ?? null, error: error?.code ?? null }),
    createElement("input", {
      type: "file",
      onChange: ({ target }: { target: HTMLInputElement }) => send(target.files),
    }),
    button("cancel", cancel),
  );
}

/** Suspends once, below the hooks. */
let waiting: Promise<void> | null = null;
let isReady = false;
function Slow(): ReactNode {
  waiting ??= new Promise((resolve) =>
    setTimeout(() => {
      isReady = true;
      resolve();
    }, 50),
  );
  if (!isReady) throw waiting;
  return show("slow", "ready");
}
function Suspended(): ReactNode {
  const { status } = useLive(client.db("shared").table("films").sort("title"));
  return createElement("div", null, show("suspended", status), createElement(Slow));
}

const PARTS: Record<string, () => ReactNode> = {
  Films: () => createElement(Films),
  Servers: () => createElement(Servers),
  Found: () => createElement(Found),
  Film: () => createElement(Film, { id: new URLSearchParams(location.search).get("film") }),
  Quiz: () => createElement(Quiz, { id: new URLSearchParams(location.search).get("room") }),
  People: () => createElement(People, { channel: new URLSearchParams(location.search).get("channel") ?? "lobby" }),
  Save: () => createElement(Save),
  Upload: () => createElement(Upload),
  Suspended: () => createElement(Suspense, { fallback: show("fallback", "waiting") }, createElement(Suspended)),
};

function App(): ReactNode {
  const [shown, setShown] = useState<readonly string[]>([]);
  const toggle = (name: string) =>
    setShown((names) => (names.includes(name) ? names.filter((one) => one !== name) : [...names, name]));
  return createElement(
    "main",
    null,
    createElement(Who),
    ...Object.keys(PARTS).map((name) => button(`show-${name}`, () => toggle(name))),
    ...shown.map((name) => createElement("section", { key: name }, PARTS[name]?.())),
  );
}

const root = document.getElementById("root");
if (root !== null) {
  createRoot(root).render(
    createElement(StrictMode, null, createElement(PlatformProvider, { client }, createElement(App))),
  );
}
