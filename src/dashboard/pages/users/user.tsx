import { Badge, Button, Group, SimpleGrid, Stack, Text } from "@mantine/core";
import { notifications } from "@mantine/notifications";
import { useMutation, useQuery } from "@tanstack/react-query";
import { Link, useNavigate } from "@tanstack/react-router";
import type { AdminUser } from "../../../client/admin/index.ts";
import { useResources } from "../../api/resources.ts";
import { messageOf, queries, server } from "../../api/server.ts";
import { useRights } from "../../api/session.tsx";
import { Confirm } from "../../parts/confirm.tsx";
import { download } from "../../parts/download.ts";
import { timeText } from "../../parts/format.tsx";
import { Json } from "../../parts/json.tsx";
import { Page, Section, usePathParameters } from "../../parts/page.tsx";
import { Empty, Loadable } from "../../parts/states.tsx";
import { useChange } from "./change.tsx";
import { Claims, Credentials, Profile } from "./forms.tsx";
import { Devices, Means } from "./means.tsx";
import { Merge } from "./merge.tsx";
import { Records } from "./records.tsx";

/** One user, with all editable data. */
export default function UserPage() {
  const { id } = usePathParameters<"id">();
  const { may } = useRights();
  const user = useQuery({ queryKey: ["users", id], queryFn: () => server.users.get(id) });
  return (
    <Loadable query={user}>
      {(found) =>
        found === null ? (
          <Page title="No such user">
            <Empty title="This user does not exist">
              The id is <code>{id}</code>. The user may have been deleted.
            </Empty>
          </Page>
        ) : (
          <Page
            title={found.email ?? "Anonymous user"}
            hint={
              <Text span ff="monospace" size="sm">
                {found.id}
              </Text>
            }
            actions={<Actions key={id} user={found} />}
          >
            <Group gap="xs">
              <Badge variant="light">{found.role}</Badge>
              {found.disabled ? <Badge color="red">disabled</Badge> : null}
              <Text size="sm" c="dimmed">
                {addressText(found)}Since {timeText(found.createdAt)}
              </Text>
            </Group>
            <SimpleGrid cols={{ base: 1, md: 2 }}>
              <Profile key={`profile ${id}`} user={found} />
              <Claims key={`claims ${id}`} user={found} />
              <Credentials key={`credentials ${id}`} user={found} />
            </SimpleGrid>
            <Means user={found}>
              <Records userId={found.id} />
              {may("push", "*", "*", "read") ? <Devices userId={found.id} /> : null}
              <Metadata user={found} />
            </Means>
          </Page>
        )
      }
    </Loadable>
  );
}

function addressText({ email, emailVerified }: AdminUser): string {
  if (email === null) return "";
  return emailVerified ? "The address is verified. " : "The address is not verified. ";
}

/** Says what a deletion has ended. */
function endedText({ records, ...means }: Awaited<ReturnType<typeof server.users.delete>>): string {
  const counts = [
    ...Object.entries(means),
    ...Object.entries(records).map(([at, count]) => [`records of ${at}`, count] as const),
  ];
  const ended = counts.filter(([, count]) => count > 0).map(([name, count]) => `${name}: ${count}`);
  return ended.length === 0 ? "Nothing belonged to the user" : `Ended: ${ended.join(", ")}`;
}

/** Says what becomes of a deleted user's records. */
function useLeaving(): string {
  const namespaces = Object.values(useResources().data?.namespaces ?? {});
  const hasTable = namespaces.some(({ tables }) => Object.values(tables).some(({ users }) => users === true));
  return hasTable
    ? "What refers to the user is deleted, cleared or forbids it, as its field says; other records stay."
    : "What the user wrote stays.";
}

function Actions({ user }: { user: AdminUser }) {
  const { may, isRoot } = useRights();
  const navigate = useNavigate();
  const disabling = useChange(
    user.disabled ? "The user can sign in again" : "The user is signed out, and cannot sign in",
    () => server.users.update(user.id, { disabled: !user.disabled }),
  );
  const deleting = useMutation({
    mutationFn: () => server.users.delete(user.id),
    onSuccess(report) {
      notifications.show({ color: "green", title: "Deleted", message: endedText(report) });
      queries.removeQueries({ queryKey: ["users", user.id] });
      void queries.invalidateQueries({ queryKey: ["users", "list"] });
    },
    onError: (error) => notifications.show({ color: "red", title: "Not deleted", message: messageOf(error) }),
  });
  const exporting = useMutation({
    async mutationFn() {
      const path = `/api/auth/admin/users/${encodeURIComponent(user.id)}/export`;
      const text = JSON.stringify(await server.request<unknown>("GET", path), null, 2);
      download(new Blob([text], { type: "application/json" }), `${user.id}.json`);
    },
    onError: (error) => notifications.show({ color: "red", title: "Not exported", message: messageOf(error) }),
  });
  const isWritable = may("auth", "admin", "*", "write");
  const leaving = useLeaving();
  return (
    <>
      {isRoot ? (
        <Button variant="default" component={Link} to="/tables" search={{ as: user.id } as never}>
          View as
        </Button>
      ) : null}
      <Button variant="default" loading={exporting.isPending} onClick={() => exporting.mutate()}>
        Export
      </Button>
      {isWritable ? (
        <>
          <Button variant="default" loading={disabling.isPending} onClick={() => disabling.mutate()}>
            {user.disabled ? "Enable" : "Disable"}
          </Button>
          {may("auth", "credentials", "*", "write") && !user.isAnonymous ? <Merge user={user} /> : null}
          <Confirm
            action="Delete"
            question={`Delete ${user.email ?? user.id} with all sessions and devices? ${leaving}`}
            // A response that arrives after the page was left must not navigate.
            onConfirm={() => deleting.mutate(undefined, { onSuccess: () => void navigate({ to: "/users" }) })}
          />
        </>
      ) : null}
    </>
  );
}

function Metadata({ user }: { user: AdminUser }) {
  const entries = [
    ["Written by the user", user.metadata],
    ["Written by administrators", user.appMetadata],
  ] as const;
  const shown = entries.filter(([, value]) => Object.keys(value).length > 0);
  return (
    <Section title="Metadata">
      {shown.length === 0 ? (
        <Text size="sm" c="dimmed">
          None.
        </Text>
      ) : (
        <Stack gap="xs">
          {shown.map(([name, value]) => (
            <div key={name}>
              <Text size="sm">{name}</Text>
              <Json value={value} />
            </div>
          ))}
        </Stack>
      )}
    </Section>
  );
}
