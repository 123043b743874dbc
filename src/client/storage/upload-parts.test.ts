import { expect, test } from "bun:test";
import { leased, type Turn } from "../auth/lease.ts";
import type { ClientContext } from "../context.ts";
import { systemRuntime } from "../runtime.ts";
import { createUnfinishedUploads, type Unfinished } from "./upload-parts.ts";

test("[TC84] uploads that begin and end at the same time in two tabs are all known in a store that answers later", async () => {
  const values = new Map<string, string>();
  const later = <T>(work: () => T) => new Promise<T>((resolve) => setTimeout(() => resolve(work()), 1));
  const store = {
    get: (key: string) => later(() => values.get(key) ?? null),
    set: (key: string, value: string) => later(() => void values.set(key, value)),
    remove: (key: string) => later(() => void values.delete(key)),
  };
  const runtime = { ...systemRuntime, now: () => 0 };
  const context = {
    store,
    runtime,
    inTurn: <T>(turn: Turn<T>) => leased(store, runtime, turn),
    transport: { url: () => "http://localhost" },
  } as unknown as ClientContext;
  const upload = (of: string): Unfinished => ({ of, uploadId: of, partBytes: 1, beganAt: 0 });
  // A second import simulates another tab.
  const otherTab: { createUnfinishedUploads: typeof createUnfinishedUploads } = await import(
    "./upload-parts.ts?another-tab" as string
  );
  const [one, two, three] = [createUnfinishedUploads, createUnfinishedUploads, otherTab.createUnfinishedUploads].map(
    (create) => create(context),
  );
  await one?.set("one", upload("one"));
  await Promise.all([one?.set("one"), two?.set("two", upload("two")), three?.set("three", upload("three"))]);
  const known = await Promise.all(["one", "two", "three"].map((of) => one?.find(of)));
  expect(known.map((found) => found?.of)).toEqual([undefined, "two", "three"]);
});
