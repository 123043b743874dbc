import { type MouseEvent, type ReactNode, useSyncExternalStore } from "react";

function subscribe(listener: () => void): () => void {
  addEventListener("popstate", listener);
  return () => removeEventListener("popstate", listener);
}

/** Returns the path's segments: `/films/film-0001` is `["films", "film-0001"]`. */
export function usePath(): string[] {
  const path = useSyncExternalStore(subscribe, () => location.pathname);
  return path.split("/").filter(Boolean).map(decodeURIComponent);
}

export function navigate(to: string): void {
  history.pushState(null, "", to);
  dispatchEvent(new PopStateEvent("popstate"));
  scrollTo(0, 0);
}

interface LinkProps {
  to: string;
  className?: string;
  isCurrent?: boolean;
  children: ReactNode;
}

export function Link({ to, className, isCurrent = false, children }: LinkProps) {
  const follow = (event: MouseEvent) => {
    // The browser opens new tabs itself.
    if (event.metaKey || event.ctrlKey || event.shiftKey) return;
    event.preventDefault();
    navigate(to);
  };
  return (
    <a href={to} className={className} aria-current={isCurrent ? "page" : undefined} onClick={follow}>
      {children}
    </a>
  );
}
