import "./name.css";
import { Link } from "@tanstack/react-router";
import type { ReactNode } from "react";

/** A link to this page in another state: what `change` does not name stays, and what is undefined in it goes. */
export function PageLink({
  change,
  children,
  className,
  label,
}: {
  change: object;
  children: ReactNode;
  className?: string;
  label?: string;
}) {
  return (
    <Link
      to="."
      search={((before: object) => ({ ...before, ...change })) as never}
      className={className}
      {...(label === undefined ? {} : { "aria-label": label })}
    >
      {children}
    </Link>
  );
}
