import { Button, Group, Modal, Stack, Text, TextInput } from "@mantine/core";
import { notifications } from "@mantine/notifications";
import { useMutation } from "@tanstack/react-query";
import { type SyntheticEvent, useState } from "react";
import { messageOf, server } from "../../api/server.ts";
import { CodeEditor, jsonCode } from "../../parts/code/code-editor.tsx";
import { parseJson } from "../../parts/json.tsx";
import { Problem } from "../../parts/states.tsx";

type Payload = Parameters<ReturnType<typeof server.broadcast>["send"]>[1];

const PREFIX = "broadcast:";

/** Form that sends a message to the listeners of a broadcast channel. */
export function BroadcastForm({ channel: first, onClose }: { channel: string; onClose(): void }) {
  const [channel, setChannel] = useState(first.slice(PREFIX.length));
  const [event, setEvent] = useState("");
  const [payload, setPayload] = useState("{}");
  const [problem, setProblem] = useState<string | null>(null);
  const send = useMutation({
    mutationFn: (parsed: Payload) => server.broadcast(channel).send(event, parsed),
    onSuccess: () => void notifications.show({ message: `Sent on ${PREFIX}${channel}` }),
  });
  const submit = (submitted?: SyntheticEvent): void => {
    submitted?.preventDefault();
    try {
      setProblem(null);
      // The server rejects anything but an object.
      send.mutate(parseJson(payload, "The payload") as Payload, { onSuccess: onClose });
    } catch (error) {
      setProblem(messageOf(error));
    }
  };
  const failure = problem ?? (send.error === null ? null : messageOf(send.error));
  return (
    <Modal opened onClose={onClose} title="Broadcast" size="lg">
      <form onSubmit={submit}>
        <Stack gap="sm">
          <TextInput
            label="Channel"
            required
            leftSection={
              <Text size="sm" c="dimmed" ff="monospace">
                {PREFIX}
              </Text>
            }
            leftSectionWidth={96}
            value={channel}
            onChange={(changed) => setChannel(changed.currentTarget.value)}
          />
          <TextInput
            label="Event"
            required
            value={event}
            onChange={(changed) => setEvent(changed.currentTarget.value)}
            data-autofocus
          />
          <div>
            <Text size="sm" fw={600} mb={2}>
              Payload
            </Text>
            <CodeEditor
              label="Payload"
              value={payload}
              onChange={setPayload}
              extensions={jsonCode}
              onSubmit={() => submit()}
            />
          </div>
          <Problem of={failure} />
          <Group gap="xs">
            <Button type="submit" loading={send.isPending}>
              Send
            </Button>
            <Button variant="default" onClick={onClose}>
              Cancel
            </Button>
          </Group>
        </Stack>
      </form>
    </Modal>
  );
}
