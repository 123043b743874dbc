import { Button, Group, SimpleGrid, Stack, Table, Text } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import type { ReactNode } from "react";
import type { AdminUser, SignInMeans } from "../../../client/admin/index.ts";
import { server } from "../../api/server.ts";
import { useRights } from "../../api/session.tsx";
import { Confirm } from "../../parts/confirm.tsx";
import { Ago } from "../../parts/format.tsx";
import { DataTable } from "../../parts/list/data-table.tsx";
import { Section } from "../../parts/page.tsx";
import { Loadable } from "../../parts/states.tsx";
import { useChange } from "./change.tsx";

/** Browsers by User-Agent token. Those that also contain another browser's token come first. */
const PROGRAMS: readonly (readonly [token: string, name: string])[] = [
  ["Edg", "Edge"],
  ["OPR", "Opera"],
  ["Firefox", "Firefox"],
  ["Chrome", "Chrome"],
  ["Safari", "Safari"],
];
const SYSTEMS = ["Android", "iPhone", "iPad", "Windows", "Mac OS X", "Linux"];

/** Formats a User-Agent as `Firefox 140, Linux`; unknown ones stay unchanged. */
function browserText(userAgent: string): string {
  const program = PROGRAMS.find(([token]) => userAgent.includes(`${token}/`));
  if (program === undefined) return userAgent;
  const [token, name] = program;
  const version = userAgent.split(`${token}/`)[1]?.match(/^\d+/)?.[0];
  const system = SYSTEMS.find((one) => userAgent.includes(one));
  return [version === undefined ? name : `${name} ${version}`, system].filter((part) => part !== undefined).join(", ");
}

/** Sessions and ways to sign in of a user; `children` are below the latter. */
export function Means({ user, children }: { user: AdminUser; children: ReactNode }) {
  const means = useQuery({ queryKey: ["users", user.id, "means"], queryFn: () => server.users.signInMeans(user.id) });
  return (
    <Loadable query={means} rows={3}>
      {({ sessions, ...others }) => (
        <SimpleGrid cols={{ base: 1, md: 2 }}>
          <Sessions user={user} sessions={sessions} />
          <Stack gap="md">
            <WaysIn user={user} means={others} />
            {children}
          </Stack>
        </SimpleGrid>
      )}
    </Loadable>
  );
}

const useMayWrite = (): boolean => useRights().may("auth", "admin", "*", "write");

function Sessions({ user, sessions }: { user: AdminUser; sessions: SignInMeans["sessions"] }) {
  const mayWrite = useMayWrite();
  const endingAll = useChange("All sessions of the user have ended", () => server.users.revokeSessions(user.id));
  const ending = useChange("The session has ended", (id: string) =>
    server.users.removeSignInMeans(user.id, "session", id),
  );
  return (
    <Section
      title="Sessions"
      actions={
        mayWrite && sessions.length > 0 ? (
          <Button size="compact-sm" variant="default" loading={endingAll.isPending} onClick={() => endingAll.mutate()}>
            End sessions
          </Button>
        ) : null
      }
    >
      {sessions.length === 0 ? (
        <Nothing>The user is signed in nowhere.</Nothing>
      ) : (
        <DataTable
          label="Sessions"
          minWidth={420}
          verticalSpacing={4}
          items={sessions}
          keyOf={({ id }) => id}
          columns={[
            {
              title: "Browser",
              maxWidth: 200,
              show: ({ userAgent, ip }) => (
                <>
                  <Text size="sm" truncate title={userAgent ?? undefined}>
                    {userAgent === null ? "unknown" : browserText(userAgent)}
                  </Text>
                  <Text size="xs" c="dimmed">
                    {ip ?? "unknown address"}
                  </Text>
                </>
              ),
            },
            { title: "Last used", show: ({ lastUsedAt }) => <Ago time={lastUsedAt} /> },
            { title: "Began", show: ({ createdAt }) => <Ago time={createdAt} /> },
            {
              align: "right",
              show: ({ id }) =>
                mayWrite ? (
                  <Button
                    size="compact-sm"
                    variant="default"
                    loading={ending.isPending && ending.variables === id}
                    onClick={() => ending.mutate(id)}
                  >
                    End
                  </Button>
                ) : null,
            },
          ]}
        />
      )}
    </Section>
  );
}

function WaysIn({ user, means }: { user: AdminUser; means: Omit<SignInMeans, "sessions"> }) {
  const { factors, identities, passkeys } = means;
  const removing = useChange("Removed", ({ kind, id }: { kind: "identity" | "passkey"; id: string }) =>
    server.users.removeSignInMeans(user.id, kind, id),
  );
  const unfactoring = useChange("The user signs in without a second factor", () => server.users.removeFactors(user.id));
  const lines = [
    ...identities.map(({ id, provider, email, lastSignInAt }) => ({
      ...{ key: `identity ${id}`, name: provider, detail: email ?? "without an address", at: lastSignInAt },
      question: `Remove the account at ${provider}? The user cannot sign in with it any more.`,
      remove: () => removing.mutate({ kind: "identity", id }),
    })),
    ...passkeys.map(({ id, name, deviceType, lastUsedAt, createdAt }) => ({
      ...{ key: `passkey ${id}`, name: name ?? "Passkey", at: lastUsedAt ?? createdAt },
      detail: deviceType === "multiDevice" ? "passkey, synchronised" : "passkey of one device",
      question: "Remove the passkey? The user cannot sign in with it any more.",
      remove: () => removing.mutate({ kind: "passkey", id }),
    })),
    ...factors.map(({ id, type, verified, createdAt }) => ({
      ...{ key: `factor ${id}`, name: "Second factor", at: createdAt },
      detail: `${type}${verified ? "" : ", not confirmed yet"}`,
      question: "Remove all second factors and recovery codes? The user signs in without them.",
      remove: () => unfactoring.mutate(),
    })),
  ];
  return (
    <Section title="Ways to sign in">
      {lines.length === 0 ? (
        <Nothing>{user.email === null ? "None." : "The address alone: a password, or what is mailed to it."}</Nothing>
      ) : (
        <ul className="plain-list lines">
          {lines.map(({ key, ...line }) => (
            <Way key={key} {...line} />
          ))}
        </ul>
      )}
    </Section>
  );
}

function Way({
  name,
  detail,
  at,
  question,
  remove,
}: {
  name: string;
  detail: string;
  at: string;
  question: string;
  remove(): void;
}) {
  const mayWrite = useMayWrite();
  return (
    <Group component="li" justify="space-between" wrap="nowrap" py={6}>
      <div className="shrinks">
        <Text size="sm" truncate>
          {name}
        </Text>
        <Text size="xs" c="dimmed" truncate component="div">
          {detail}, <Ago time={at} />
        </Text>
      </div>
      {mayWrite ? <Confirm action="Remove" size="compact-sm" question={question} onConfirm={remove} /> : null}
    </Group>
  );
}

const Nothing = ({ children }: { children: ReactNode }) => (
  <Text size="sm" c="dimmed">
    {children}
  </Text>
);

/** Devices that receive the user's push messages. */
export function Devices({ userId }: { userId: string }) {
  const devices = useQuery({ queryKey: ["users", userId, "devices"], queryFn: () => server.push.devices(userId) });
  return (
    <Section title="Devices">
      <Loadable query={devices} rows={2}>
        {(found) =>
          found.length === 0 ? (
            <Text size="sm" c="dimmed">
              None is registered for push messages.
            </Text>
          ) : (
            <Table verticalSpacing={4} layout="fixed" aria-label="Devices">
              <Table.Tbody>
                {found.map(({ id, platform, token, createdAt }) => (
                  <Table.Tr key={id}>
                    <Table.Td w={90}>{platform}</Table.Td>
                    <Table.Td>
                      <Text size="sm" ff="monospace" truncate title={token}>
                        {token}
                      </Text>
                    </Table.Td>
                    <Table.Td w={130} ta="right">
                      <Ago time={createdAt} />
                    </Table.Td>
                  </Table.Tr>
                ))}
              </Table.Tbody>
            </Table>
          )
        }
      </Loadable>
    </Section>
  );
}
