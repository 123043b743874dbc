import {
  Alert,
  Badge,
  Button,
  Card,
  Code,
  Group,
  JsonInput,
  SimpleGrid,
  Stack,
  Table,
  Text,
  TextInput,
  Title,
} from "@mantine/core";
import { notifications } from "@mantine/notifications";
import { useMutation, useQuery } from "@tanstack/react-query";
import { Link, useNavigate } from "@tanstack/react-router";
import { type SyntheticEvent, useState } from "react";
import { messageOf } from "../../api/failure.ts";
import { queries, server } from "../../api/server.ts";
import { useRights } from "../../api/session.tsx";
import { usePathParameters } from "../../parts/address.ts";
import { Confirm } from "../../parts/confirm.tsx";
import { timeText } from "../../parts/format.ts";
import { Page } from "../../parts/page.tsx";
import { Loadable } from "../../parts/states.tsx";

interface UserDetail {
  id: string;
  email: string | null;
  emailVerified: boolean;
  displayName: string | null;
  role: string;
  isAnonymous: boolean;
  disabled: boolean;
  createdAt: string;
  metadata: object;
  appMetadata: object;
  customClaims: object;
}

const pathOf = (id: string): string => `/api/auth/admin/users/${encodeURIComponent(id)}`;

/** One user, with everything that an administrator may change. */
export default function UserPage() {
  const { id } = usePathParameters<"id">();
  const user = useQuery({ queryKey: ["users", id], queryFn: () => server.request<UserDetail>("GET", pathOf(id)) });
  return (
    <Loadable query={user}>
      {(found) => (
        <Page
          title={found.email ?? "Anonymous user"}
          hint={
            <Text span ff="monospace" size="sm">
              {found.id}
            </Text>
          }
          actions={<Actions user={found} />}
        >
          <Group gap="xs">
            <Badge variant="light">{found.role}</Badge>
            {found.disabled ? <Badge color="red">disabled</Badge> : null}
            <Text size="sm" c="dimmed">
              {found.email === null
                ? ""
                : found.emailVerified
                  ? "The address is verified. "
                  : "The address is not verified. "}
              Since {timeText(found.createdAt)}
            </Text>
          </Group>
          <SimpleGrid cols={{ base: 1, md: 2 }}>
            <Profile key={JSON.stringify([found.displayName, found.role])} user={found} />
            <Claims key={JSON.stringify(found.customClaims)} user={found} />
          </SimpleGrid>
          <Metadata user={found} />
        </Page>
      )}
    </Loadable>
  );
}

/** Carries out one change of the user, and loads the user again. */
function useChange(user: UserDetail, done: string) {
  return useMutation({
    mutationFn: ({
      method,
      path = "",
      body,
    }: {
      method: "POST" | "PATCH" | "PUT" | "DELETE";
      path?: string;
      body?: object;
    }) => server.request(method, `${pathOf(user.id)}${path}`, body === undefined ? {} : { body }),
    onSuccess() {
      notifications.show({ message: done });
      void queries.invalidateQueries({ queryKey: ["users"] });
    },
    onError: (error) => notifications.show({ color: "red", title: "This did not work", message: messageOf(error) }),
  });
}

function Actions({ user }: { user: UserDetail }) {
  const { may, isRoot } = useRights();
  const navigate = useNavigate();
  const disabling = useChange(
    user,
    user.disabled ? "The user can sign in again" : "The user is signed out, and cannot sign in",
  );
  const revoking = useChange(user, "All sessions of the user have ended");
  const unfactoring = useChange(user, "The user signs in without a second factor");
  const deleting = useMutation({
    mutationFn: () => server.request("DELETE", pathOf(user.id)),
    onSuccess() {
      void navigate({ to: "/users" });
      queries.removeQueries({ queryKey: ["users"] });
    },
    onError: (error) => notifications.show({ color: "red", title: "Not deleted", message: messageOf(error) }),
  });
  const isWritable = may("auth", "admin", "*", "write");
  return (
    <>
      {isRoot ? (
        <Button variant="default" component={Link} to="/tables" search={{ as: user.id } as never}>
          View as
        </Button>
      ) : null}
      {isWritable ? (
        <>
          <Button
            variant="default"
            loading={revoking.isPending}
            onClick={() => revoking.mutate({ method: "POST", path: "/revoke" })}
          >
            End sessions
          </Button>
          <Button
            variant="default"
            loading={unfactoring.isPending}
            onClick={() => unfactoring.mutate({ method: "DELETE", path: "/mfa" })}
          >
            Remove factors
          </Button>
          <Button
            variant="default"
            loading={disabling.isPending}
            onClick={() => disabling.mutate({ method: "PATCH", body: { disabled: !user.disabled } })}
          >
            {user.disabled ? "Enable" : "Disable"}
          </Button>
          <Confirm
            action="Delete"
            question={`Delete ${user.email ?? user.id} with all sessions and devices? What the user wrote stays.`}
            onConfirm={() => deleting.mutate()}
          />
        </>
      ) : null}
    </>
  );
}

function Profile({ user }: { user: UserDetail }) {
  const { may } = useRights();
  const [name, setName] = useState(user.displayName ?? "");
  const [role, setRole] = useState(user.role);
  const change = useChange(user, "Saved");
  const isReadOnly = !may("auth", "admin", "*", "write");
  const submit = (event: SyntheticEvent): void => {
    event.preventDefault();
    change.mutate({ method: "PATCH", body: { displayName: name === "" ? null : name, role } });
  };
  return (
    <Card withBorder component="section" aria-label="Profile">
      <form onSubmit={submit}>
        <Stack gap="sm">
          <Title order={2} size="h5">
            Profile
          </Title>
          <TextInput
            label="Name"
            value={name}
            readOnly={isReadOnly}
            onChange={(event) => setName(event.currentTarget.value)}
          />
          <TextInput
            label="Role"
            value={role}
            readOnly={isReadOnly}
            onChange={(event) => setRole(event.currentTarget.value)}
          />
          {isReadOnly ? null : (
            <Button type="submit" w="fit-content" loading={change.isPending}>
              Save
            </Button>
          )}
        </Stack>
      </form>
    </Card>
  );
}

/** Claims are in the user's next token: rules read them as `auth.custom`. */
function Claims({ user }: { user: UserDetail }) {
  const { may } = useRights();
  const [text, setText] = useState(JSON.stringify(user.customClaims, null, 2));
  const [problem, setProblem] = useState<string | null>(null);
  const change = useChange(user, "Saved; they count from the user's next token");
  const isReadOnly = !may("auth", "admin", "*", "write");
  const submit = (event: SyntheticEvent): void => {
    event.preventDefault();
    try {
      change.mutate({ method: "PUT", path: "/claims", body: JSON.parse(text) });
      setProblem(null);
    } catch {
      setProblem("This is no JSON");
    }
  };
  return (
    <Card withBorder component="section" aria-label="Claims">
      <form onSubmit={submit}>
        <Stack gap="sm">
          <Title order={2} size="h5">
            Claims
          </Title>
          <JsonInput
            validationError="This is no JSON"
            aria-label="Claims"
            autosize
            minRows={5}
            value={text}
            readOnly={isReadOnly}
            onChange={setText}
            error={problem}
          />
          {isReadOnly ? null : (
            <Button type="submit" w="fit-content" loading={change.isPending}>
              Save
            </Button>
          )}
        </Stack>
      </form>
    </Card>
  );
}

function Metadata({ user }: { user: UserDetail }) {
  const entries = [
    ["Written by the user", user.metadata],
    ["Written by administrators", user.appMetadata],
  ] as const;
  if (entries.every(([, value]) => Object.keys(value).length === 0)) {
    return <Alert variant="light">The user has no metadata.</Alert>;
  }
  return (
    <Table>
      <Table.Tbody>
        {entries.map(([name, value]) => (
          <Table.Tr key={name}>
            <Table.Td w={220}>{name}</Table.Td>
            <Table.Td>
              <Code block>{JSON.stringify(value, null, 2)}</Code>
            </Table.Td>
          </Table.Tr>
        ))}
      </Table.Tbody>
    </Table>
  );
}
