import type { JsonObject } from "../../kernel/json/json.ts";
import type { ClientContext } from "../context.ts";
import { later } from "../later.ts";
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
import type { Repeats } from "./special-queries.ts";
import type { LiveQuery, LiveStatus } from "./types.ts";
import { type Page, RecordWindow } from "./window.ts";

/** Throttle interval of listeners: about one frame. */
const NOTIFY_EVERY_MS = 16;

/**
 * Creates a throttle that calls the listeners of all live queries together: at once after a pause, else once per frame. A
 * listener scheduled several times is called once.
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

/** Number of records left out of one message that are reread one by one; with more the list is reloaded. */
const REREADS_MAX = 20;

interface ViewDeps extends Pick<ClientContext, "runtime" | "transport"> {
  socket: Socket;
  feeds: Feeds;
  notify: ReturnType<typeof createNotify>;
  /** Reports that a view has other records of the server. */
  loaded(view: View): void;
}

/** Records of a query as last seen, with their `expand`. */
export interface Seen {
  readonly records: readonly JsonObject[];
  readonly hasMore: boolean;
}

const NONE: readonly never[] = [];

/** State of one query that is kept up to date, shared by all equal live queries. */
export class View implements FeedMember {
  readonly plan: Plan;
  readonly #deps: ViewDeps;
  readonly #window: RecordWindow;
  readonly #local: LocalState;
  readonly #loading: Loading;
  /** Whether the code that few queries need is loaded, if this one needs it. */
  #isReady: boolean;
  /** Expansions of a query with `expand`, once their code is loaded. */
  #expansions: Expansions | null = null;
  /** Repetitions of a search, once their code is loaded. */
  #repeats: Repeats | null = null;
  readonly #retries: Retries;
  readonly #listeners = createListeners();
  /** Large records that are being reread one by one. */
  readonly #rereads = new Map<string, object>();
  #leave: (() => void) | null = null;
  #hasEnded = false;
  #isSubscribed = false;
  /** Cached records to show once the code is loaded. */
  #seed: Seen | null = null;
  #failure: Failure | null = null;
  /** Whether the items have ever been loaded from the server. */
  #hasLoaded = false;
  /** Whether the items match the server, and changes keep them so. */
  #isCurrent = false;
  #needsList = true;
  /** Writes that were completed when the list was requested. */
  #inList: readonly Overlay[] = [];
  #items: readonly JsonObject[] = NONE;
  #isStale = false;

  constructor(plan: Plan, deps: ViewDeps) {
    this.plan = plan;
    this.#deps = deps;
    this.#isReady = plan.isComplete && plan.query.expand.length === 0;
    this.#retries = createRetries(deps.runtime);
    this.#window = new RecordWindow(plan);
    this.#local = new LocalState(plan, this.#window);
    this.#loading = createLoading(deps, plan, {
      take: (page, about) => this.#take(page, about),
      failed: (failure) => this.#fail(failure),
      wanted: () => (this.#window.isShort && !plan.isSearch ? this.#window.wanted : null),
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
    return this.#asShown(this.#local.over(this.#window.records));
  }

  #asShown(records: readonly JsonObject[]): JsonObject[] {
    return records
      .slice(0, this.plan.limit)
      .map((record) => this.#shownRecord(record))
      .filter((record) => record !== null);
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
      // The code may fail to load without a network.
      this.#fail({ status: "offline", error: null });
      if (!this.#hasEnded) this.#retries.later(() => this.start());
    };
    if (this.#isReady) join();
    else this.#prepare().then(join, failed);
  }

  end(): void {
    this.#hasEnded = true;
    this.#leave?.();
    this.#repeats?.stop();
    this.#stop();
    this.#retries.stop();
    this.#expansions?.stop();
  }

  async #prepare(): Promise<void> {
    const { createExpansions, createRepeats, completePlan } = await later();
    const { plan } = this;
    if (!plan.isComplete) completePlan(plan);
    if (plan.query.expand.length > 0) {
      this.#expansions?.stop();
      this.#expansions = createExpansions({
        transport: this.#deps.transport,
        plan,
        retries: this.#retries,
        window: this.#window,
        changed: () => this.#changed(),
      });
    }
    if (plan.isSearch) {
      this.#repeats ??= createRepeats(this.#deps.runtime, this.#loading, () => {
        if (this.#isSubscribed) this.#load();
      });
    }
    this.#isReady = true;
    // Own writes may show now.
    this.#changed();
    if (this.#seed !== null) this.seed(this.#seed);
  }

  /** Resets the view when the user changes. Records that an anonymous visitor saw stay until the user's are loaded. */
  forget({ wasVisitor }: { wasVisitor: boolean }): void {
    this.#stop();
    this.#failure = null;
    this.#local.clear();
    if (!wasVisitor) {
      this.#hasLoaded = false;
      this.#window.clear();
      this.#seed = null;
      // The new user's expansions start empty.
      if (this.#expansions !== null) void this.#prepare();
    }
    this.#changed();
  }

  /** Shows cached records until the server responds. */
  seed({ records, hasMore }: Seen): void {
    if (this.#hasLoaded || this.#window.records.length > 0) return;
    if (!this.#isReady) {
      this.#seed = { records, hasMore };
      return;
    }
    this.#window.replace({ records: this.#expansions?.learn(records) ?? records, cursor: null });
    if (hasMore) this.#window.leaveOpen();
    this.#changed();
  }

  /** Returns the records of the server, to be cached for the next start. */
  get seen(): Seen {
    const { records } = this.#window;
    const seen = this.#expansions === null ? records.slice(0, this.plan.limit) : this.#asShown(records);
    return { records: seen, hasMore: this.#window.hasMore };
  }

  #stop(): void {
    this.#leaveBehind();
    this.#needsList = true;
    this.#loading.stop();
    this.#rereads.clear();
  }

  /** Marks the view as no longer following the server. */
  #leaveBehind(): void {
    this.#isSubscribed = false;
    this.#isCurrent = false;
  }

  // What the server says

  subscribed(isWhole: boolean): void {
    this.#isSubscribed = true;
    // A search that was to be repeated may have missed its time.
    if (!isWhole || this.plan.isSearch) this.#needsList = true;
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
    if (this.#repeats !== null) {
      this.#repeats.changed();
      return;
    }
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
    // Writes made while the list was loading may be missing from it.
    this.#settle();
    this.#changed();
    this.#deps.loaded(this);
    this.#repeats?.loaded();
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

  /** Rereads a large record. A change that arrives meanwhile is newer than the response, or is followed by one that is. */
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
   * Ends completed writes once all changes up to now have arrived: those still without a change are not visible in the
   * subscription, or have been superseded.
   */
  #settle(writes = this.#local.expecting()): void {
    if (!this.#isCurrent || writes.length === 0) return;
    this.#deps.feeds.flush(this.plan.subscription, () => {
      // A large record is still being reread.
      for (const overlay of writes) if (!this.#rereads.has(overlay.id)) this.#local.drop(overlay);
      this.#changed();
    });
  }
}

/** Returns the state of a record in the query; null: not in it. */
function stateOf(plan: Plan, change: Exclude<Change, { kind: "reread" }>): JsonObject | null {
  return change.kind === "put" && plan.belongs(change.record) ? plan.kept(change.record) : null;
}
