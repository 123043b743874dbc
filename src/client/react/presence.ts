import { useEffect, useMemo, useState, useSyncExternalStore } from "react";
import type { JsonObject } from "../../kernel/json/json.ts";
import type { ChannelStatus, Presence, PresentUser } from "../channels/types.ts";
import { PlatformError } from "../transport/errors.ts";
import { keepEqual, useUserId } from "./provider.ts";

export interface PresenceResult<State> {
  users: readonly PresentUser<State>[];
  status: ChannelStatus;
  /** Reason why the channel is denied, or why this client is not shown on it; null otherwise. */
  error: PlatformError | null;
}

const NOBODY: PresenceResult<never> = { users: [], status: "loading", error: null };

/**
 * Returns the users on a channel: `usePresence(client.presence("lobby"), { mood })`. With a state this client is shown too, until
 * the component unmounts. On a server there are no users.
 */
export function usePresence<State = JsonObject>(presence: Presence<State>, state?: State): PresenceResult<State> {
  const [refusal, setRefusal] = useState<PlatformError | null>(null);
  const store = useMemo(() => {
    const keep = keepEqual<PresenceResult<State>>();
    const read = () => keep({ users: presence.users, status: presence.status, error: presence.error });
    return { read, subscribe: (listener: () => void) => presence.subscribe(listener) };
  }, [presence]);
  const result = useSyncExternalStore(store.subscribe, store.read, () => NOBODY);
  const text = state === undefined ? null : JSON.stringify(state);
  const isShown = text !== null;
  const userId = useUserId();
  // biome-ignore lint/correctness/useExhaustiveDependencies: another user, or none, ends what was tracked
  useEffect(() => {
    setRefusal(null);
    if (text === null) return;
    let isCurrent = true;
    presence.track(JSON.parse(text)).catch((error: unknown) => {
      // A lost connection shows in the status.
      if (isCurrent && error instanceof PlatformError && error.status !== 0) setRefusal(error);
    });
    return () => {
      isCurrent = false;
    };
  }, [presence, text, userId]);
  useEffect(() => {
    if (!isShown) return;
    return () => void presence.untrack().catch(() => {});
  }, [presence, isShown]);
  return refusal === null ? result : { ...result, error: result.error ?? refusal };
}
