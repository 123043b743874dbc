import type { ClientContext } from "../context.ts";
import { PlatformError } from "../transport/errors.ts";
import { createRetries, type Failure, failureOf } from "./failures.ts";
import type { Change } from "./feeds.ts";
import { type ListAnswer, type Plan, RECORDS_MAX } from "./plan.ts";
import type { Page } from "./window.ts";

/** Bound of the changes buffered while a list is loading. Beyond it the list is reloaded. */
const QUEUED_CHANGES_MAX = 10_000;

/** Receiver of the pages. */
interface Target {
  /** Takes a page, then the changes that came since it was requested, in order. */
  take(page: Page, about: { isFirst: boolean; changes: readonly Change[] }): void;
  failed(failure: Failure): void;
  /** Returns what is still to be loaded; null: nothing. */
  wanted(): { count: number; after: string | null } | null;
}

/**
 * Loads the pages of a query. A list may be newer than the changes that have arrived, but never older than those that had arrived
 * when it was requested. So changes that arrive from then on are applied to it, in order.
 */
export interface Loading {
  /** Whether a request is in flight. */
  readonly isBusy: boolean;
  /** Reloads everything, and cancels the current request. */
  begin(): void;
  /** Loads what is wanted, unless a request is in flight. */
  continue(): void;
  /** Buffers changes that have arrived. */
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
    const paging = plan.isSearch ? {} : { total: false, after };
    const query = { ...plan.parameters, limit: Math.min(count, RECORDS_MAX), ...paging };
    try {
      const answer = await transport.request<ListAnswer>("GET", plan.path, { query, signal: own.signal });
      if (current !== own) return;
      current = null;
      const arrived = changes;
      changes = [];
      retries.succeeded();
      const page = { records: answer.items, cursor: plan.cursorOf(answer) };
      target.take(page, { isFirst: after === null, changes: arrived });
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
    get isBusy() {
      return current !== null;
    },
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
