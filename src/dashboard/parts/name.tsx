import "./name.css";
import { Anchor, Text } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { Link, useRouter } from "@tanstack/react-router";
import type { ReactNode } from "react";
import { server } from "../api/server.ts";
import { useRights } from "../api/session.tsx";

/** Characters that change the text direction, or are invisible. */
const UNSEEN = /[\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]/g;

/** Makes an untrusted name safe to show: without this, a direction character could make `gnp.exe` look like `exe.png`. */
export const plainName = (name: string): string => name.replace(UNSEEN, "\ufffd");

/** Untrusted name, isolated from the text direction around it. */
export const Name = ({ children, className }: { children: string; className?: string }) => (
  <bdi className={className} title={plainName(children)}>
    {plainName(children)}
  </bdi>
);

/** Link to this page in another state: members not in `change` stay, undefined ones are removed. */
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

/** Link to a user's page, by address, or by name for a user without one; nothing for an unknown user. */
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

/** Link to the page of a request, which has its story; its id alone where there are no pages yet, as before the session is known. */
export function RequestLink({ id }: { id: string }) {
  // The type promises a router, which is absent outside its provider.
  const router = useRouter({ warn: false }) as unknown;
  if (router === undefined || router === null)
    return (
      <Text size="xs" c="dimmed">
        Request {id}
      </Text>
    );
  return (
    <Anchor component={Link} size="xs" to={`/analytics/${encodeURIComponent(id)}`} style={{ alignSelf: "start" }}>
      Request {id}
    </Anchor>
  );
}
