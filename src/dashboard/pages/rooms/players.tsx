import { Anchor, Badge, Box, Button, Group, Stack, Text } from "@mantine/core";
import { Link } from "@tanstack/react-router";
import { useState } from "react";
import type { RoomState } from "../../../client/admin/live.ts";
import { useRights } from "../../api/session.tsx";
import { JsonTree } from "../../parts/code/json-tree.tsx";
import { numberText } from "../../parts/format.tsx";

/** Number of a room's players that are listed before the list is expanded. */
const PLAYERS_SHOWN = 50;

/** Players of a room, each with their own state. */
export function Players({ room, onKick }: { room: RoomState; onKick: ((userId: string) => void) | null }) {
  const [showsAll, setShowsAll] = useState(false);
  const { players, playerCount } = room;
  const shown = showsAll ? players : players.slice(0, PLAYERS_SHOWN);
  if (players.length === 0) {
    return (
      <Text size="sm" c="dimmed">
        Nobody is in the room.
      </Text>
    );
  }
  return (
    <Stack gap="xs">
      {shown.map((player) => (
        <Player key={player.userId} player={player} onKick={onKick} />
      ))}
      {shown.length < players.length ? (
        <Button size="xs" variant="default" onClick={() => setShowsAll(true)}>
          Show all {numberText(players.length)}
        </Button>
      ) : null}
      {showsAll && players.length < playerCount ? (
        <Text size="sm" c="dimmed">
          {numberText(players.length)} of {numberText(playerCount)} are listed.
        </Text>
      ) : null}
    </Stack>
  );
}

function Player({
  player: { userId, role, connections, state },
  onKick,
}: {
  player: RoomState["players"][number];
  onKick: ((userId: string) => void) | null;
}) {
  const { may } = useRights();
  const id = (
    <Text size="sm" ff="monospace" lh="24px" truncate title={userId}>
      {userId}
    </Text>
  );
  return (
    <Box>
      <Group justify="space-between" wrap="nowrap" gap="xs">
        <Group gap="xs" wrap="nowrap" miw={0}>
          {may("auth", "admin", "*", "read") ? (
            <Anchor component={Link} to={`/users/${encodeURIComponent(userId)}`} miw={0}>
              {id}
            </Anchor>
          ) : (
            id
          )}
          <Text size="xs" c="dimmed" style={{ flex: "none" }}>
            {role}
          </Text>
          {connections === 1 ? null : (
            <Badge size="sm" variant="light" color={connections === 0 ? "yellow" : "blue"} style={{ flex: "none" }}>
              {connections === 0 ? "reconnecting" : `${connections} connections`}
            </Badge>
          )}
        </Group>
        {onKick === null ? null : (
          <Button
            size="compact-sm"
            variant="default"
            aria-label={`Kick ${userId}`}
            onClick={() => onKick(userId)}
            style={{ flex: "none" }}
          >
            Kick
          </Button>
        )}
      </Group>
      {state === null || Object.keys(state).length === 0 ? null : (
        <JsonTree label={`State of ${userId}`} value={state} openLevels={0} />
      )}
    </Box>
  );
}
