import { Button, Code, Group, Stack, Text, TextInput } from "@mantine/core";
import { useState } from "react";
import { Section } from "../../parts/page.tsx";

/** Commands that restore everything into a new directory. A running server is not replaced by a click. */
export function RestoreAll() {
  const [moment, setMoment] = useState("");
  const [isCopied, setIsCopied] = useState(false);
  const time = new Date(moment);
  const at = Number.isNaN(time.getTime()) ? "" : ` --at ${time.toISOString()}`;
  const commands = [
    `platform restore --config platform.config.ts --data ./restored${at}`,
    "platform start --drill --data ./restored",
  ].join("\n");
  return (
    <Section title="Restore the server">
      <Stack gap="sm" align="stretch">
        <Text size="sm" c="dimmed">
          The whole server is restored by commands, into a new directory: these make it, and start a server that looks
          at it and changes and sends nothing. If it is the right one, start it without --drill in place of this server.
        </Text>
        <TextInput
          label="Moment, in your time zone"
          description="The newest one without"
          type="datetime-local"
          step={1}
          w={240}
          value={moment}
          onChange={({ currentTarget: { value } }) => {
            setMoment(value);
            setIsCopied(false);
          }}
        />
        <Code block className="wrapped" aria-label="Commands of a restore" role="region" tabIndex={0}>
          {commands}
        </Code>
        <Group>
          <Button
            variant="default"
            onClick={() => void navigator.clipboard.writeText(commands).then(() => setIsCopied(true))}
          >
            {isCopied ? "Copied" : "Copy"}
          </Button>
        </Group>
      </Stack>
    </Section>
  );
}
