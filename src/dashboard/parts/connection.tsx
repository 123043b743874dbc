import { Badge } from "@mantine/core";
import { useSyncExternalStore } from "react";
import type { Socket, SocketStatus } from "../../client/socket/types.ts";

const SHOWN: Readonly<Record<SocketStatus, { color: string; text: string }>> = {
  closed: { color: "gray", text: "closed" },
  connecting: { color: "gray", text: "connecting" },
  connected: { color: "green", text: "live" },
  waiting: { color: "yellow", text: "reconnecting" },
};

/** Badge that shows whether the page is live. A lost connection reconnects automatically. */
export function ConnectionBadge({ socket }: { socket: Socket }) {
  const status = useSyncExternalStore(socket.subscribe.bind(socket), () => socket.status);
  const { color, text } = SHOWN[status];
  return (
    <Badge color={color} variant="light" role="status">
      {text}
    </Badge>
  );
}
