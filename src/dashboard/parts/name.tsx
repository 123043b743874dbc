import "./name.css";
import { Anchor, Text } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import type { ReactNode } from "react";
import { server } from "../api/server.ts";
import { useRights } from "../api/session.tsx";

/** Characters that change the direction of what follows, or are not seen. */
const UNSEEN = /[\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]/g;

/** A name that strangers may have chosen: `gnp.exe` is not shown as `exe.png` by a character that turns it around. */
export const plainName = (name: string): string => name.replace(UNSEEN, "\ufffd");

/** The same, apart from the direction of what is around it. */
export const Name = ({ children, className }: { children: string; className?: string }) => (
  <bdi className={className} title={plainName(children)}>
    {plainName(children)}
  </bdi>
);

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

/** The address of a user, or the name of one without an address, and the way to the user's page; nothing for who is unknown. */
export function UserName({ id }: { id: string }) {
  const mayRead = useRights().may("auth", "admin", "*", "read");
  const user = useQuery({
    queryKey: ["users", id],
    enabled: mayRead,
    staleTime: 60_000,
    queryFn: () => server.users.get(id),
  });
  const name = user.data?.email ?? user.data?.displayName;
  if (name === undefined || name === null) return null;
  return (
    <Anchor size="xs" component={Link} to={`/users/${encodeURIComponent(id)}`}>
      <Text span inherit className="wrapped">
        {name}
      </Text>
    </Anchor>
  );
}
