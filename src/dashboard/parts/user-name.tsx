import { Anchor, Text } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { server } from "../api/server.ts";
import { useRights } from "../api/session.tsx";

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
