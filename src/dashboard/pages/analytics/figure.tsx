import { Stack, Text } from "@mantine/core";
import type { ReactNode } from "react";

/** A number with its name. */
export function Figure({ name, children }: { name: string; children: ReactNode }) {
  return (
    <Stack gap={0}>
      <Text size="sm" c="dimmed">
        {name}
      </Text>
      <Text size="xl" fw={600} className="number" component="div">
        {children}
      </Text>
    </Stack>
  );
}
