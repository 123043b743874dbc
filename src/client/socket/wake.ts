/** Calls back when the browser says that the network is there again, that the page is seen again, or that the network is gone. */
export function onWake({ isBack, isLost }: { isBack: () => void; isLost: () => void }): () => void {
  // Neither exists in Node or React Native.
  if (typeof addEventListener !== "function") return () => {};
  const seen = () => {
    if (document.visibilityState === "visible") isBack();
  };
  const page = typeof document === "undefined" ? null : document;
  addEventListener("online", isBack);
  addEventListener("offline", isLost);
  page?.addEventListener("visibilitychange", seen);
  return () => {
    removeEventListener("online", isBack);
    removeEventListener("offline", isLost);
    page?.removeEventListener("visibilitychange", seen);
  };
}
