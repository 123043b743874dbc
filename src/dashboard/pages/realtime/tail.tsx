import "./realtime.css";
import { Badge, Button, Drawer, Group, Stack, Text } from "@mantine/core";
import { useState } from "react";
import { server } from "../../api/server.ts";
import { JsonTree } from "../../parts/code/json-tree.tsx";
import { ConnectionBadge } from "../../parts/connection.tsx";
import { numberText } from "../../parts/format.tsx";
import { IconPlayerPause, IconPlayerPlay } from "../../parts/icons.tsx";
import { Empty, Problem } from "../../parts/states.tsx";
import { type Heard, useTail } from "./messages.ts";

const TAIL_LINE_CHARACTERS = 300;

const times = new Intl.DateTimeFormat("en-GB", {
  hour: "2-digit",
  minute: "2-digit",
  second: "2-digit",
  fractionalSecondDigits: 3,
});

/** Live messages of one channel. */
export function TailDrawer({
  channel,
  onBroadcast,
  onClose,
}: {
  channel: string;
  /** Opens the broadcast form; null: the key may not send, or the channel takes no broadcasts. */
  onBroadcast: (() => void) | null;
  onClose(): void;
}) {
  const tail = useTail(channel);
  const { messages, count, refused, isListening, isPaused } = tail;
  return (
    <Drawer
      opened
      onClose={onClose}
      position="right"
      size="xl"
      title={
        <Text ff="monospace" size="sm" fw={600} style={{ overflowWrap: "anywhere" }}>
          {channel}
        </Text>
      }
    >
      <Stack gap="sm">
        <Group gap="xs">
          <ConnectionBadge socket={server.socket} />
          <Button
            size="xs"
            variant="default"
            leftSection={
              isPaused ? <IconPlayerPlay size={14} aria-hidden /> : <IconPlayerPause size={14} aria-hidden />
            }
            onClick={isPaused ? tail.resume : tail.pause}
          >
            {isPaused ? "Resume" : "Pause"}
          </Button>
          <Button size="xs" variant="default" disabled={messages.length === 0} onClick={tail.clear}>
            Clear
          </Button>
          {onBroadcast === null ? null : (
            <Button size="xs" variant="default" onClick={onBroadcast}>
              Broadcast
            </Button>
          )}
          <Text size="xs" c="dimmed" className="number">
            {count === 1 ? "One message" : `${numberText(count)} messages`}
          </Text>
        </Group>
        <Problem of={refused} />
        {messages.length > 0 || refused !== null ? null : (
          <Empty title={isListening ? "Nothing has been sent yet" : "Subscribing …"}>
            What is sent on the channel from now on appears here.
          </Empty>
        )}
        <Stack gap={4} component="ol" className="tail" aria-label="Messages">
          {messages.map((message) => (
            <li key={message.number}>
              <Message message={message} />
            </li>
          ))}
        </Stack>
      </Stack>
    </Drawer>
  );
}

const COLOURS: Readonly<Record<string, string>> = {
  broadcast_event: "orange",
  db_change: "blue",
  batch_changes: "blue",
};

/** Message in one line until expanded. */
function Message({ message: { at, type, content } }: { message: Heard }) {
  const [isOpen, setIsOpen] = useState(false);
  const { event, changeType } = content;
  const what = typeof event === "string" ? event : typeof changeType === "string" ? changeType : type.replace("_", " ");
  return (
    <div className="tail-message">
      <button type="button" className="tail-line" aria-expanded={isOpen} onClick={() => setIsOpen(!isOpen)}>
        <time dateTime={new Date(at).toISOString()}>{times.format(at)}</time>
        <Badge size="sm" variant="light" tt="none" maw={160} color={COLOURS[type] ?? "green"}>
          {what}
        </Badge>
        {isOpen ? null : <span className="tail-text">{lineOf(content)}</span>}
      </button>
      {isOpen ? <JsonTree label={what} value={content} /> : null}
    </div>
  );
}

/** Returns the payload, if any; the badge shows the rest. */
function lineOf(content: Heard["content"]): string {
  const text = JSON.stringify(content["data"] ?? content["state"] ?? content) ?? "";
  return text.length > TAIL_LINE_CHARACTERS ? `${text.slice(0, TAIL_LINE_CHARACTERS)}…` : text;
}
