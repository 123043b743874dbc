import { Button, Group, Select, Stack, Text, TextInput, Title } from "@mantine/core";
import { useClipboard } from "@mantine/hooks";
import { useMutation } from "@tanstack/react-query";
import { useState } from "react";
import { IconLink } from "../../../parts/icons.tsx";
import { Problem } from "../../../parts/states.tsx";
import { useServer } from "../../../shell/view-as.tsx";

const HOUR_SECONDS = 3_600;
const LIFETIMES = [
  { value: String(HOUR_SECONDS), label: "1 hour" },
  { value: String(24 * HOUR_SECONDS), label: "1 day" },
  { value: String(7 * 24 * HOUR_SECONDS), label: "7 days" },
];

/** A link with which everybody may read the file for a time. */
export function SignedLink({ bucket, file }: { bucket: string; file: string }) {
  const server = useServer();
  const clipboard = useClipboard();
  const [seconds, setSeconds] = useState(LIFETIMES[0]?.value ?? "");
  const sign = useMutation({
    mutationFn: () => server.storage(bucket).signedUrl(file, { expiresIn: Number(seconds) }),
    // Browsers have a clipboard for secure pages only; elsewhere the link is there to be copied by hand.
    onSuccess: (link) => clipboard.copy(link),
  });
  return (
    <Stack gap="xs" component="section" aria-label="Link">
      <Title order={3} size="h6">
        Link
      </Title>
      <Group gap="xs" align="flex-end">
        <Select
          aria-label="Good for"
          data={LIFETIMES}
          value={seconds}
          allowDeselect={false}
          w={110}
          onChange={(next) => setSeconds(next ?? seconds)}
        />
        <Button
          variant="default"
          leftSection={<IconLink size={16} aria-hidden />}
          loading={sign.isPending}
          onClick={() => sign.mutate()}
        >
          Copy link
        </Button>
      </Group>
      <Problem of={sign.error} />
      {sign.data === undefined ? (
        <Text size="sm" c="dimmed">
          Everybody who has the link may read the file until it ends.
        </Text>
      ) : (
        <TextInput
          aria-label="Signed link"
          readOnly
          value={sign.data}
          description={clipboard.copied ? "Copied" : undefined}
          onFocus={(event) => event.currentTarget.select()}
        />
      )}
    </Stack>
  );
}
