import { listen, together } from "../listeners.ts";

/** Calls back when the browser says that the network is there again, that the page is seen again, or that the network is gone. */
export function onWake({ isBack, isLost }: { isBack: () => void; isLost: () => void }): () => void {
  return together([
    listen(globalThis, "online", isBack),
    listen(globalThis, "offline", isLost),
    listen(globalThis.document, "visibilitychange", () => {
      if (document.visibilityState === "visible") isBack();
    }),
  ]);
}
