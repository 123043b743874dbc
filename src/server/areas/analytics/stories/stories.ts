import { relative } from "node:path";
import { BoundedMap } from "../../../../kernel/bounded-map.ts";
import type { QueryStep, RequestStep } from "../../../../kernel/observing/request-steps.ts";
import type { RequestTrace } from "../../../../kernel/observing/request-trace.ts";
import { tokenizeSql } from "../../../../kernel/sql/tokens.ts";
import type { Answered } from "../../../http/exchange/request-context.ts";
import type { SlowRequest } from "../model.ts";
import {
  ENQUEUED_MAX,
  ENQUEUING_MAX,
  PLANS_PER_REQUEST_MAX,
  SLOW_QUERIES_MAX,
  SLOW_QUERY_MS,
  SLOW_QUERY_REQUESTS_MAX,
  SQL_LENGTH_MAX,
  STORIES_MAX,
  STORIES_MAX_BYTES,
} from "./limits.ts";
import type { EnqueuedJob, ProposedIndex, SlowQuery, Story, StoryStep } from "./model.ts";
import { Plans } from "./plans.ts";

interface StoriesDeps {
  /** Whether every story is kept, as in development. */
  isAll: boolean;
  /** Milliseconds from which a request is slow. */
  fromMs: number;
  dataDirectory: string;
  /** Returns what a story says of the request itself. */
  describe: (answered: Answered) => SlowRequest;
}

interface Kept {
  request: SlowRequest;
  /** The story's steps as JSON. */
  steps: string;
  further: number;
}

/** Status from which a request has failed. */
const FAILED = 500;

/**
 * Keeps the stories of requests in memory: of slow and failed ones, and of all in development. The newest, bounded in number and
 * bytes. Of others, only the ids of their jobs. [AN120]
 */
export class Stories {
  readonly #deps: StoriesDeps;
  readonly #plans = new Plans();
  /** Stories by the request's id, the oldest first. */
  readonly #kept = new Map<string, Kept>();
  #bytes = 0;
  readonly #jobs = new BoundedMap<string, EnqueuedJob[]>(ENQUEUING_MAX);
  readonly #slow = new BoundedMap<string, SlowQuery>(SLOW_QUERIES_MAX);

  constructor(deps: StoriesDeps) {
    this.#deps = deps;
  }

  get isAll(): boolean {
    return this.#deps.isAll;
  }

  /** Keeps the story of an answered request, after the answer. */
  note(answered: Answered): void {
    const { trace, requestId, status, durationMs } = answered;
    if (trace === null) return;
    if (trace.hasJobs) this.#noteJobs(requestId, trace);
    const isWanted = status >= FAILED || durationMs >= this.#deps.fromMs || (this.#deps.isAll && !isWatching(answered));
    if (!isWanted) return;
    // The phases end now; plans can wait.
    const request = this.#deps.describe(answered);
    setImmediate(() => this.#keep(request, trace));
  }

  /** Returns the story of a request; null: it is not kept. */
  story(requestId: string): Story | null {
    const kept = this.#kept.get(requestId);
    if (kept === undefined) return null;
    const { request, steps, further } = kept;
    // Written by `#keep`.
    return { ...request, steps: JSON.parse(steps) as StoryStep[], further };
  }

  /** Returns the jobs that a request has enqueued. */
  jobs(requestId: string): readonly EnqueuedJob[] {
    return this.#jobs.peek(requestId) ?? [];
  }

  /** Returns the requests whose stories are kept, newest first. Times are in milliseconds since 1970; `to` is exclusive. */
  list({ from, to, limit }: { from: number | null; to: number | null; limit: number }): SlowRequest[] {
    const found: SlowRequest[] = [];
    for (const { request } of [...this.#kept.values()].reverse()) {
      const at = Date.parse(request.at);
      if ((from !== null && at < from) || (to !== null && at >= to)) continue;
      found.push(request);
      if (found.length === limit) break;
    }
    return found;
  }

  /** Returns the slow statements of kept stories, those that took longest in total first. */
  slowQueries(): SlowQuery[] {
    return [...this.#slow.values()].toSorted((a, b) => b.ms - a.ms);
  }

  #noteJobs(requestId: string, { steps }: RequestTrace): void {
    const jobs = steps.list.flatMap((step) => (step.kind === "job" ? { name: step.name, id: step.id } : []));
    this.#jobs.set(requestId, jobs.slice(0, ENQUEUED_MAX));
  }

  #keep(request: SlowRequest, { steps: { list, further } }: RequestTrace): void {
    let plansLeft = PLANS_PER_REQUEST_MAX;
    const shown = list.map((step) => {
      if (step.kind !== "query") return this.#shown(step);
      plansLeft -= 1;
      return this.#query(request, step, plansLeft >= 0);
    });
    const steps = JSON.stringify(shown);
    this.#kept.set(request.requestId, { request, steps, further });
    this.#bytes += 2 * steps.length;
    for (const [oldest, { steps: text }] of this.#kept) {
      if (this.#kept.size <= STORIES_MAX && this.#bytes <= STORIES_MAX_BYTES) break;
      this.#kept.delete(oldest);
      this.#bytes -= 2 * text.length;
    }
  }

  #shown(step: Exclude<RequestStep, QueryStep>): StoryStep {
    const at = rounded(step.at);
    switch (step.kind) {
      case "rule":
      case "hook":
        return { ...step, at, ms: rounded(step.ms) };
      case "job":
        return { ...step, at };
      case "write": {
        const { kind, path, changes, count } = step;
        return { kind, at, place: this.#placeOf(path), changes, count };
      }
    }
  }

  #query(request: SlowRequest, step: QueryStep, isPlanned: boolean): StoryStep {
    const { kind, path, file, isElsewhere } = step;
    const isSlow = step.ms >= SLOW_QUERY_MS;
    const found = isPlanned && file !== null ? this.#plans.of(file, path, step.sql, isSlow) : null;
    const place = this.#placeOf(path);
    const plan = found?.plan ?? null;
    const index = found?.index == null ? null : indexAt(place, found.index);
    const [sql, ms] = [shownSql(step), rounded(step.ms)];
    if (isSlow) this.#noteSlow({ place, sql, plan, index }, ms, request);
    return { kind, at: rounded(step.at), ms, place, sql, plan, index, isElsewhere };
  }

  #noteSlow(about: Pick<SlowQuery, "place" | "sql" | "plan" | "index">, ms: number, { requestId, at }: SlowRequest) {
    const key = `${about.place} ${about.sql}`;
    const known = this.#slow.get(key) ?? { ...about, times: 0, ms: 0, slowestMs: 0, lastAt: at, requests: [] };
    const requests = [requestId, ...known.requests.filter((id) => id !== requestId)].slice(0, SLOW_QUERY_REQUESTS_MAX);
    this.#slow.set(key, {
      ...known,
      plan: about.plan ?? known.plan,
      index: about.index ?? known.index,
      times: known.times + 1,
      ms: rounded(known.ms + ms),
      slowestMs: Math.max(known.slowestMs, ms),
      lastAt: at,
      requests,
    });
  }

  /** Returns the path of a database file below the data directory, without its ending; those of records as the audit log names them. */
  #placeOf(path: string): string {
    const place = relative(this.#deps.dataDirectory, path).replace(/\.db$/, "");
    return place.replace(/^databases\//, "db/");
  }
}

const rounded = (ms: number): number => Math.max(0, Math.round(ms * 1000) / 1000);

/** Whether a request only watches the server, as the pages of the dashboard do all the time: their stories would displace all others. */
const isWatching = ({ request, route }: Answered): boolean =>
  request.method === "GET" && /^\/(api\/(admin|analytics|health|config|schema)|admin|metrics)(\/|$)/.test(route ?? "");

/**
 * Returns a statement without comments and without the texts in it, which may be secrets; paths into JSON are none. In one that
 * somebody has written, numbers are hidden too, and names in double quotes: where there is no such column, SQLite takes them for
 * texts.
 */
function shownSql({ sql, file }: QueryStep): string {
  // Before the tokens are cut: a literal that ends behind it is illegal, and hidden like the others.
  const kept = sql.slice(0, SQL_LENGTH_MAX);
  const isWritten = file === null;
  let shown = "";
  let endedAt = 0;
  for (const { kind, start, end } of tokenizeSql(kept)) {
    if (start > endedAt && shown !== "") shown += " ";
    endedAt = end;
    const text = kept.slice(start, end);
    // SQLite refuses it: where its texts begin and end is not what its writer meant.
    if (isWritten && kind === "illegal" && (end < kept.length || kept === sql)) return HIDDEN;
    if (kind === "string") shown += JSON_PATH.test(text) ? text : HIDDEN;
    else if (kind === "blob" || kind === "illegal" || (isWritten && kind === "number")) shown += HIDDEN;
    else shown += isWritten && text.startsWith('"') ? '"…"' : text;
  }
  return kept === sql ? shown : `${shown}…`;
}

const HIDDEN = "'…'";
const JSON_PATH = /^'\$(?:\.\w+|\[\d+\])*'$/;

/** Returns the index as the config would declare it; null for a file that is no namespace of the config. */
function indexAt(place: string, { table, fields }: { table: string; fields: string[] }): ProposedIndex | null {
  const [, namespace] = /^db\/([^/]+)/.exec(place) ?? [];
  return namespace === undefined ? null : { namespace, table, fields };
}
