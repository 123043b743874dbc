import { useEffect, useEffectEvent, useState } from "react";
import type { ServerMessage } from "../../../client/socket/types.ts";
import { server } from "../../api/server.ts";
import { useViewAs } from "../../shell/view-as.tsx";
import { channelOf, type TableAddress } from "./address.ts";
import { type Row, reloadRows, showRecord } from "./rows.ts";

/** Throttle interval of reloads while records come and go. */
const RELOAD_EVERY_MS = 1_000;
/** Duration of the flash of a changed record. */
const FLASH_MS = 1_200;

/**
 * Follows the changes of a table, and returns the ids of records that have just changed. `isByValues`: values affect which
 * records are listed, their order, or their summary, so that a changed record also triggers a reload.
 */
export function useLive(address: TableAddress, isByValues: boolean): ReadonlySet<string> {
  const as = useViewAs();
  const [flashing, setFlashing] = useState<ReadonlySet<string>>(new Set());
  const isLoadedAgain = useEffectEvent(() => isByValues);
  useEffect(() => {
    const channel = channelOf(address);
    const timers = new Set<ReturnType<typeof setTimeout>>();
    let isWaiting = false;
    const later = (work: () => void, delayMs: number): void => {
      const timer = setTimeout(() => {
        timers.delete(timer);
        work();
      }, delayMs);
      timers.add(timer);
    };
    const reloadSoon = (): void => {
      if (isWaiting) return;
      isWaiting = true;
      later(() => {
        isWaiting = false;
        reloadRows(address);
      }, RELOAD_EVERY_MS);
    };
    const flash = (id: string): void => {
      setFlashing((before) => new Set(before).add(id));
      later(() => setFlashing((before) => new Set([...before].filter((one) => one !== id))), FLASH_MS);
    };
    const changed = (message: ServerMessage): void => {
      const { changeType, docId, data } = message;
      const isUpdate = changeType === "modified" && typeof data === "object" && data !== null;
      // The viewed-as user sees other records and fields, so they are reloaded.
      const isShown = isUpdate && as === null;
      if (isShown) showRecord(address, data as Row);
      if (!isShown || isLoadedAgain()) reloadSoon();
      if (typeof docId === "string") flash(docId);
    };
    const release = server.socket.hold();
    const ends = [
      server.socket.onConnected(() => server.socket.send({ type: "subscribe", channel })),
      // Changes before the subscription, or during a lost connection, are not sent.
      server.socket.on("subscribed", (message) => {
        if (message["channel"] === channel) reloadRows(address);
      }),
      server.socket.on("db_change", (message) => {
        if (message["channel"] === channel) changed(message);
      }),
      server.socket.on("batch_changes", (message) => {
        if (message["channel"] === channel) reloadSoon();
      }),
    ];
    return () => {
      server.socket.send({ type: "unsubscribe", channel });
      for (const end of ends) end();
      for (const timer of timers) clearTimeout(timer);
      release();
    };
  }, [address, as]);
  return flashing;
}
