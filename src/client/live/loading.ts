import type { JsonObject } from "../../kernel/json/json.ts";
import type { ClientContext } from "../context.ts";
import { PlatformError } from "../transport/errors.ts";
import { createRetries, type Failure, failureOf } from "./failures.ts";
import type { Change } from "./feeds.ts";
import { type Plan, RECORDS_MAX } from "./plan.ts";
import type { Page } from "./window.ts";

/** Changes that are kept while a list is under way. Beyond it the list is asked for again. */
const QUEUED_CHANGES_MAX = 10_000;

interface ListAnswer {
  items: JsonObject[];
  hasMore: boolean;
  cursor: string | null;
}

/** Where the pages go. */
interface Target {
  /** `after` null: the first page; then the changes that came since it was asked for, in order. */
  take(page: Page, about: { isFirst: boolean; changes: readonly Change[] }): void;
  failed(failure: Failure): void;
  /** What is still to be loaded; null: nothing. */
  wanted(): { count: number; after: string | null } | null;
}

/**
 * Reads the pages of a query. A list may be newer than the changes that have arrived, but never older than those that had
 * arrived when it was asked for. So those that arrive from then on are applied to it, in order.
 */
export interface Loading {
  /** Loads everything anew; what is under way is given up. */
  begin(): void;
  /** Loads what is wanted, unless something is under way. */
  continue(): void;
  /** Changes that have arrived. */
  note(changes: readonly Change[]): void;
  stop(): void;
}

export function createLoading(
  { runtime, transport }: Pick<ClientContext, "runtime" | "transport">,
  plan: Plan,
  target: Target,
): Loading {
  const retries = createRetries(runtime);
  let current: AbortController | null = null;
  let changes: Change[] = [];
  let isWaiting = false;

  const stop = () => {
    current?.abort();
    current = null;
    changes = [];
    retries.stop();
    isWaiting = false;
  };
  const read = async (count: number, after: string | null) => {
    const own = new AbortController();
    current = own;
    const query = { ...plan.parameters, limit: Math.min(count, RECORDS_MAX), total: false, after };
    try {
      const answer = await transport.request<ListAnswer>("GET", plan.path, { query, signal: own.signal });
      if (current !== own) return;
      current = null;
      const arrived = changes;
      changes = [];
      retries.succeeded();
      target.take({ records: answer.items, cursor: answer.cursor }, { isFirst: after === null, changes: arrived });
      next();
    } catch (error) {
      if (current !== own) return;
      current = null;
      changes = [];
      if (!(error instanceof PlatformError)) throw error;
      const failure = failureOf(error);
      target.failed(failure);
      if (failure.status !== "error" || error.status >= 500) again(after === null);
    }
  };
  const again = (isWhole: boolean) => {
    isWaiting = true;
    retries.later(() => {
      isWaiting = false;
      if (isWhole) begin();
      else next();
    });
  };
  const begin = () => {
    stop();
    void read(plan.limit + plan.spare, null);
  };
  const next = () => {
    const wanted = current !== null || isWaiting ? null : target.wanted();
    if (wanted !== null) void read(wanted.count, wanted.after);
  };
  return {
    begin,
    continue: next,
    note(more) {
      if (current === null) return;
      changes.push(...more);
      if (changes.length <= QUEUED_CHANGES_MAX) return;
      stop();
      again(true);
    },
    stop,
  };
}
