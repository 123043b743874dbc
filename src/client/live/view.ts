import type { JsonObject } from "../../kernel/json/json.ts";
import type { ClientContext } from "../context.ts";
import { createListeners } from "../listeners.ts";
import type { Runtime } from "../runtime.ts";
import type { Socket } from "../socket/types.ts";
import type { WriteOperation } from "../tables/writes.ts";
import type { PlatformError } from "../transport/errors.ts";
import type { Expansions } from "./expansions.ts";
import { createRetries, type Failure, failureOf, type Retries } from "./failures.ts";
import type { Change, FeedMember, Feeds } from "./feeds.ts";
import { createLoading, type Loading } from "./loading.ts";
import { LocalState } from "./local-state.ts";
import type { Overlay } from "./overlay.ts";
import { idOf, type Plan } from "./plan.ts";
import type { LiveQuery, LiveStatus } from "./types.ts";
import { type Page, RecordWindow } from "./window.ts";

/** Listeners are called at once after a pause, else this long after the last time: once in a frame. */
const NOTIFY_EVERY_MS = 16;

/**
 * Returns what calls listeners of all live queries together: at once after a pause, else once in a frame. One that is given several
 * times is called once.
 */
export function createNotify(runtime: Runtime): (work: () => void) => void {
  const due = new Set<() => void>();
  let isScheduled = false;
  let isPausing = false;

  const pause = () => {
    isPausing = true;
    runtime.after(NOTIFY_EVERY_MS, () => {
      isPausing = false;
      if (due.size > 0) run();
    });
  };
  const run = () => {
    isScheduled = false;
    const now = [...due];
    due.clear();
    pause();
    for (const work of now) work();
  };
  return (work) => {
    due.add(work);
    if (isPausing || isScheduled) return;
    isScheduled = true;
    queueMicrotask(run);
  };
}

/** Records of one message that are read one by one where it left them out; with more the list is asked for again. */
const REREADS_MAX = 20;

interface ViewDeps extends Pick<ClientContext, "runtime" | "transport"> {
  socket: Socket;
  feeds: Feeds;
  notify: ReturnType<typeof createNotify>;
  /** It has other records of the server. */
  loaded(view: View): void;
}

/** The records of a query as they were seen, with their `expand`. */
export interface Seen {
  readonly records: readonly JsonObject[];
  readonly hasMore: boolean;
}

const NONE: readonly never[] = [];

/** One query that is kept up to date, for all live queries that are equal. */
export class View implements FeedMember {
  readonly plan: Plan;
  readonly #deps: ViewDeps;
  readonly #window: RecordWindow;
  readonly #local: LocalState;
  readonly #loading: Loading;
  /** Of a query with `expand`, once they are loaded. */
  #expansions: Expansions | null = null;
  readonly #retries: Retries;
  readonly #listeners = createListeners();
  /** Large records that are being read one by one. */
  readonly #rereads = new Map<string, object>();
  #leave: (() => void) | null = null;
  #hasEnded = false;
  #isSubscribed = false;
  /** What is shown when the expansions are loaded. */
  #seed: Seen | null = null;
  #failure: Failure | null = null;
  /** The items have been those of the server. */
  #hasLoaded = false;
  /** They are, and changes keep them so. */
  #isCurrent = false;
  #needsList = true;
  /** Writes that were done when the list was asked for. */
  #inList: readonly Overlay[] = [];
  #items: readonly JsonObject[] = NONE;
  #isStale = false;

  constructor(plan: Plan, deps: ViewDeps) {
    this.plan = plan;
    this.#deps = deps;
    this.#retries = createRetries(deps.runtime);
    this.#window = new RecordWindow(plan);
    this.#local = new LocalState(plan, this.#window);
    this.#loading = createLoading(deps, plan, {
      take: (page, about) => this.#take(page, about),
      failed: (failure) => this.#fail(failure),
      wanted: () => (this.#window.isShort ? this.#window.wanted : null),
    });
  }

  // What it shows

  get items(): readonly JsonObject[] {
    if (!this.#isStale) return this.#items;
    this.#isStale = false;
    const next = this.status === "denied" ? NONE : this.#shown();
    const isSame = next.length === this.#items.length && next.every((record, index) => record === this.#items[index]);
    if (!isSame) this.#items = next;
    return this.#items;
  }

  get hasMore(): boolean {
    if (this.status === "denied") return false;
    if (this.#local.isEmpty) return this.#window.hasMore;
    return this.#window.hasMore || this.#local.over(this.#window.records).length > this.plan.limit;
  }

  get status(): LiveStatus {
    const { socket } = this.#deps;
    if (socket.error?.code === "invalid") return "error";
    if (this.#failure !== null) return this.#failure.status;
    if (this.#isCurrent) return "live";
    return this.#hasLoaded || socket.status === "waiting" ? "offline" : "loading";
  }

  get error(): PlatformError | null {
    const { error } = this.#deps.socket;
    return error?.code === "invalid" ? error : (this.#failure?.error ?? null);
  }

  get isPending(): LiveQuery<JsonObject>["isPending"] {
    return this.#local.isPending;
  }

  subscribe(listener: () => void): () => void {
    return this.#listeners.add(listener);
  }

  #shown(): readonly JsonObject[] {
    const { plan } = this;
    const records = this.#local.over(this.#window.records).slice(0, plan.limit);
    if (plan.query.fields === null && this.#expansions === null) return records;
    return this.#asShown(records);
  }

  #asShown(records: readonly JsonObject[]): JsonObject[] {
    return records.map((record) => this.#shownRecord(record)).filter((record) => record !== null);
  }

  #shownRecord(record: JsonObject): JsonObject | null {
    const isOwn = this.#window.get(idOf(record)) !== record;
    return this.#expansions === null ? this.plan.shown(record) : this.#expansions.shown(record, isOwn);
  }

  #changed(): void {
    this.#isStale = true;
    if (this.#listeners.size > 0) this.#deps.notify(this.#listeners.tell);
  }

  // Its life

  start(): void {
    const join = () => {
      if (!this.#hasEnded) this.#leave = this.#deps.feeds.join(this.plan.subscription, this);
    };
    const failed = () => {
      // Without a network the code may not load.
      this.#fail({ status: "offline", error: null });
      if (!this.#hasEnded) this.#retries.later(() => this.start());
    };
    if (this.plan.query.expand.length === 0) join();
    else this.#expand().then(join, failed);
  }

  end(): void {
    this.#hasEnded = true;
    this.#leave?.();
    this.#stop();
    this.#retries.stop();
    this.#expansions?.stop();
  }

  async #expand(): Promise<void> {
    const { createExpansions } = await import("../small-features.ts");
    this.#expansions?.stop();
    this.#expansions = createExpansions({
      transport: this.#deps.transport,
      plan: this.plan,
      retries: this.#retries,
      window: this.#window,
      changed: () => this.#changed(),
    });
    if (this.#seed !== null) this.seed(this.#seed);
  }

  /** Another user may see other records. Those that a visitor saw stay until the user's are known. */
  forget({ wasVisitor }: { wasVisitor: boolean }): void {
    this.#stop();
    this.#failure = null;
    this.#local.clear();
    if (!wasVisitor) {
      this.#hasLoaded = false;
      this.#window.clear();
      this.#seed = null;
      // Others, which know nothing.
      if (this.#expansions !== null) void this.#expand();
    }
    this.#changed();
  }

  /** Shows what was seen last, until the server says more. */
  seed({ records, hasMore }: Seen): void {
    if (this.#hasLoaded || this.#window.records.length > 0) return;
    if (this.plan.query.expand.length > 0 && this.#expansions === null) {
      this.#seed = { records, hasMore };
      return;
    }
    this.#window.replace({ records: this.#expansions?.learn(records) ?? records, cursor: null });
    if (hasMore) this.#window.leaveOpen();
    this.#changed();
  }

  /** The records of the server, to be seen at the next start. */
  get seen(): Seen {
    const records = this.#window.records.slice(0, this.plan.limit);
    const seen = this.#expansions === null ? records : this.#asShown(records);
    return { records: seen, hasMore: this.#window.hasMore };
  }

  #stop(): void {
    this.#leaveBehind();
    this.#needsList = true;
    this.#loading.stop();
    this.#rereads.clear();
  }

  /** Nothing follows the server any more. */
  #leaveBehind(): void {
    this.#isSubscribed = false;
    this.#isCurrent = false;
  }

  // What the server says

  subscribed(isWhole: boolean): void {
    this.#isSubscribed = true;
    if (!isWhole) this.#needsList = true;
    this.#failure = null;
    if (this.#needsList) {
      this.#load();
    } else {
      this.#isCurrent = true;
      this.#settle();
      this.#changed();
    }
  }

  changed(changes: readonly Change[]): void {
    this.#loading.note(changes);
    this.#apply(changes);
    this.#loading.continue();
  }

  lost(): void {
    this.#leaveBehind();
    this.#changed();
  }

  refused(error: PlatformError): void {
    this.#stop();
    this.#fail(failureOf(error));
  }

  #load(): void {
    this.#needsList = true;
    this.#rereads.clear();
    this.#inList = this.#local.expecting();
    this.#loading.begin();
  }

  #take({ records, cursor }: Page, { isFirst, changes }: { isFirst: boolean; changes: readonly Change[] }): void {
    const page = { records: this.#expansions?.learn(records) ?? records, cursor };
    if (isFirst) this.#window.replace(page);
    else this.#window.extend(page);
    if (isFirst) for (const overlay of this.#inList) this.#local.drop(overlay);
    this.#failure = null;
    this.#needsList = false;
    this.#hasLoaded = true;
    this.#isCurrent = this.#isSubscribed;
    this.#apply(changes);
    // What was written while the list was under way may be missing in it.
    this.#settle();
    this.#changed();
    this.#deps.loaded(this);
  }

  #fail(failure: Failure): void {
    this.#failure = failure;
    this.#isCurrent = false;
    if (failure.status === "denied") {
      this.#window.clear();
      this.#hasLoaded = false;
    }
    this.#changed();
  }

  #apply(changes: readonly Change[]): void {
    const rereads = changes.filter(({ kind }) => kind === "reread").length;
    let hasChanged = false;
    for (const change of changes) {
      this.#rereads.delete(change.id);
      if (change.kind !== "reread") hasChanged = this.#applyState(change.id, stateOf(this.plan, change)) || hasChanged;
      else if (rereads <= REREADS_MAX) void this.#reread(change.id);
    }
    if (rereads > REREADS_MAX) this.#load();
    if (!hasChanged) return;
    this.#changed();
    this.#deps.loaded(this);
  }

  #applyState(id: string, state: JsonObject | null): boolean {
    const hadWrites = !this.#local.isEmpty;
    const kept = this.#local.note(id, state);
    const hasChanged = kept === null ? this.#window.remove(id) : this.#window.put(kept);
    return hasChanged || hadWrites;
  }

  /** A change that arrives meanwhile is newer than what was asked for, or is followed by what makes it so. */
  async #reread(id: string): Promise<void> {
    const token = {};
    this.#rereads.set(id, token);
    const query = { fields: this.plan.parameters.fields };
    const path = `${this.plan.path}/${encodeURIComponent(id)}`;
    const read = this.#deps.transport.request<JsonObject>("GET", path, { query });
    const record = await read.catch(({ status }) => (status === 404 || status === 403 ? null : undefined));
    if (this.#rereads.get(id) === token) {
      this.#rereads.delete(id);
      if (record === undefined) this.#load();
      else this.#apply([record === null ? { id, kind: "remove" } : { id, kind: "put", record }]);
      this.#loading.continue();
    }
    this.#settle();
  }

  // What this client writes

  begin(operation: WriteOperation): Overlay {
    const { runtime } = this.#deps;
    const overlay = this.#local.add(operation, { newId: runtime.uuid(), now: runtime.now() });
    this.#changed();
    return overlay;
  }

  confirm(overlay: Overlay, result: JsonObject | null): void {
    if (this.#local.done(overlay, result)) this.#settle([overlay]);
    this.#changed();
  }

  undo(overlay: Overlay): void {
    this.#local.drop(overlay);
    this.#changed();
  }

  /**
   * Ends writes that are done as soon as all changes up to now are here: what has not come by then is not shown by the
   * subscription, or has been overtaken.
   */
  #settle(writes = this.#local.expecting()): void {
    if (!this.#isCurrent || writes.length === 0) return;
    this.#deps.feeds.flush(this.plan.subscription, () => {
      // A large record is still being read.
      for (const overlay of writes) if (!this.#rereads.has(overlay.id)) this.#local.drop(overlay);
      this.#changed();
    });
  }
}

/** The state of a record in the query; null: it is not in it. */
function stateOf(plan: Plan, change: Exclude<Change, { kind: "reread" }>): JsonObject | null {
  return change.kind === "put" && plan.belongs(change.record) ? plan.kept(change.record) : null;
}
