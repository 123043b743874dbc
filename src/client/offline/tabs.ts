import { inTurn } from "../auth/lease.ts";
import type { ClientContext } from "../context.ts";
import type { ErrorFacts } from "../transport/errors.ts";

/** How a write has ended in the tab that sent it. */
export interface Outcome {
  readonly type: "ended";
  readonly serial: number;
  readonly answer: unknown;
  readonly error: ErrorFacts | null;
}

export type News = Outcome | { readonly type: "added" };

/** The other pages of this browser that have the same storage. */
export interface Tabs {
  tell(news: News): void;
  /** Runs `work` while no other tab runs its own. */
  inTurn<T>(work: () => Promise<T>): Promise<T>;
  close(): void;
}

interface Parts extends Pick<ClientContext, "runtime" | "store"> {
  name: string;
  hear(news: News): void;
}

export function joinTabs({ runtime, store, name, hear }: Parts): Tabs {
  const key = `platform.offline.${name}`;
  const channel = typeof BroadcastChannel === "undefined" ? null : new BroadcastChannel(key);
  if (channel !== null) channel.onmessage = ({ data }) => hear(data);
  return {
    tell: (news) => channel?.postMessage(news),
    inTurn: (work) => inTurn({ store, runtime, key, work }),
    close: () => channel?.close(),
  };
}
