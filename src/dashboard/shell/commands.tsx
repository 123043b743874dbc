import { notifications } from "@mantine/notifications";
import type { SpotlightActionData } from "@mantine/spotlight";
import { useResources } from "../api/resources.ts";
import { messageOf, queries, server } from "../api/server.ts";
import { useRights } from "../api/session.tsx";
import { IconBan, IconDownload, IconPlayerPlay } from "../parts/icons.tsx";

/** A user that the search has found. */
export interface FoundUser {
  id: string;
  email: string | null;
  displayName: string | null;
  disabled: boolean;
}

/** Returns the commands of the search, as far as the key may run them. `users` are those that the words have found. */
export function useCommands(words: string, users: readonly FoundUser[]): readonly SpotlightActionData[] {
  const { may } = useRights();
  const schedules = useResources().data?.cron ?? [];
  const runs = schedules.flatMap(({ name }): SpotlightActionData[] =>
    may("jobs", "*", `cron:${name}`, "write")
      ? [
          {
            id: `run ${name}`,
            label: `Run ${name} now`,
            description: "The schedule, once, beside its times",
            leftSection: <IconPlayerPlay size={18} />,
            onClick: () => run(server.jobs.runSchedule(`cron:${name}`), `${name} runs`),
          },
        ]
      : [],
  );
  const backup: SpotlightActionData = {
    id: "back up",
    label: "Back up now",
    leftSection: <IconDownload size={18} />,
    onClick: () => run(server.backups.create(), "The backup is made"),
  };
  const ofUsers = users.map(
    ({ id, email, displayName, disabled }): SpotlightActionData => ({
      id: `access ${id}`,
      label: `${disabled ? "Enable" : "Disable"} ${displayName ?? email ?? id}`,
      description: disabled ? "The user can sign in again" : "The user is signed out, and cannot sign in",
      // The server has found the user, also by fields that are not shown here.
      keywords: words,
      leftSection: <IconBan size={18} />,
      onClick: () => run(server.users.update(id, { disabled: !disabled }), disabled ? "Enabled" : "Disabled"),
    }),
  );
  return [
    ...runs,
    ...(may("backups", "*", "*", "write") ? [backup] : []),
    ...(may("auth", "admin", "*", "write") ? ofUsers : []),
  ];
}

/** Runs a command, and says how it ended. */
function run(work: Promise<unknown>, done: string): void {
  work
    .then(
      () => notifications.show({ message: done }),
      (error: unknown) => notifications.show({ color: "red", title: "This did not work", message: messageOf(error) }),
    )
    .finally(() => void queries.invalidateQueries());
}
