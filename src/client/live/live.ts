import type { JsonObject } from "../../kernel/json/json.ts";
import type { ClientContext } from "../context.ts";
import { socketOf } from "../socket/socket.ts";
import type { Socket } from "../socket/types.ts";
import type { QueryDescription } from "../tables/description.ts";
import { type LocalWrites, recordsOf, type TableWrite } from "../tables/writes.ts";
import { Feeds } from "./feeds.ts";
import { type Holding, openHandle } from "./handle.ts";
import type { Overlay } from "./overlay.ts";
import { type Plan, planOf, tableKey } from "./plan.ts";
import type { LiveQuery } from "./types.ts";
import { createNotify, type Seen, View } from "./view.ts";

/** Cache of records from which live queries start until the server responds. */
export interface SeenQueries {
  /** Returns the cached records of a query; null: never seen. */
  read(key: string): Promise<Seen | null>;
  /** Reports that a view has other records. */
  changed(view: View): void;
}

/** Live queries of one client. */
export interface Live extends LocalWrites {
  open(query: QueryDescription): LiveQuery<JsonObject>;
  /** Installs the cache, also for live queries that already run. */
  useSeen(seen: SeenQueries): void;
}

interface Shared {
  readonly view: View;
  holders: number;
}

/** Write in flight, and the overlays that show it. */
interface OwnWrite {
  readonly write: TableWrite;
  readonly overlays: Map<View, readonly Overlay[]>;
}

const lives = new WeakMap<ClientContext, Live>();

/** Returns the client's live queries. From the first call on they observe its local writes. */
export function liveOf(context: ClientContext): Live {
  const known = lives.get(context);
  if (known !== undefined) return known;
  const live = createLive(context, socketOf(context));
  lives.set(context, live);
  context.writes = live;
  return live;
}

/** Whether a query shows a write before the server has told of it. A search does not know whether it finds the record. */
const isOf = (write: TableWrite, { query, isSearch }: Plan) => !isSearch && tableKey(write) === tableKey(query);

const show = ({ write, overlays }: OwnWrite, view: View) =>
  overlays.set(
    view,
    write.operations.map((operation) => view.begin(operation)),
  );

function createLive(context: ClientContext, socket: Socket): Live {
  const { runtime, transport } = context;
  const feeds = new Feeds(socket, runtime, transport.userId);
  const notify = createNotify(runtime);
  const shared = new Map<string, Shared>();
  const writes = new Set<OwnWrite>();
  /** End functions of the live queries that have not ended. */
  const ends = new Set<() => void>();
  let seen: SeenQueries | null = null;
  let userId = transport.userId();
  /** Counter that grows with each user: records seen by one are not shown to the next. */
  let userCount = 0;

  const viewDeps = { runtime, transport, socket, feeds, notify, loaded: (view: View) => seen?.changed(view) };

  const seedFrom = (view: View, from: SeenQueries) => {
    const seenBy = userCount;
    void from.read(view.plan.key).then((found) => {
      if (found !== null && seenBy === userCount) view.seed(found);
    });
  };
  const begin = (plan: Plan, before: View | null): Shared => {
    const view = new View(plan, viewDeps);
    const entry = { view, holders: 0 };
    shared.set(plan.key, entry);
    if (before !== null) view.seed(before.seen);
    else if (seen !== null) seedFrom(view, seen);
    for (const own of writes) if (isOf(own.write, plan)) show(own, view);
    view.start();
    return entry;
  };
  const hold = (plan: Plan, { before, end }: Holding) => {
    const entry = shared.get(plan.key) ?? begin(plan, before);
    entry.holders++;
    ends.add(end);
    const release = () => {
      ends.delete(end);
      if (--entry.holders > 0) return;
      shared.delete(plan.key);
      entry.view.end();
      for (const { overlays } of writes) overlays.delete(entry.view);
    };
    return { view: entry.view, release };
  };

  const stopListening = transport.onAuth((user) => {
    const wasVisitor = userId === null;
    userId = user?.id ?? null;
    userCount++;
    feeds.forget();
    for (const { view } of shared.values()) view.forget({ wasVisitor });
    writes.clear();
  });
  context.onClose(() => {
    stopListening();
    for (const end of [...ends]) end();
  });

  return {
    needsIds: true,
    open(query) {
      const plan = planOf(query);
      return openHandle({
        runtime,
        hold: (held) => hold(plan, held),
        blank: () => new View(plan, viewDeps),
        userCount: () => userCount,
      });
    },
    begin(write) {
      const own: OwnWrite = { write, overlays: new Map() };
      writes.add(own);
      for (const { view } of shared.values()) if (isOf(write, view.plan)) show(own, view);
      const end = (each: (view: View, overlay: Overlay, index: number) => void) => {
        writes.delete(own);
        for (const [view, overlays] of own.overlays) {
          for (const [index, overlay] of overlays.entries()) each(view, overlay, index);
        }
      };
      return {
        confirm(answer) {
          const records = recordsOf(write, answer);
          end((view, overlay, index) => view.confirm(overlay, records[index] ?? null));
        },
        undo: () => end((view, overlay) => view.undo(overlay)),
      };
    },
    useSeen(given) {
      seen = given;
      for (const { view } of shared.values()) view.status === "live" ? given.changed(view) : seedFrom(view, given);
    },
  };
}
