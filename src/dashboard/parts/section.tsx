import { Card, Group, Title } from "@mantine/core";
import type { ReactNode } from "react";

/** A part of a page with its own heading, and what it offers on the right. */
export function Section({ title, actions, children }: { title: string; actions?: ReactNode; children: ReactNode }) {
  return (
    <Card withBorder component="section" aria-label={title} p="sm">
      <Group justify="space-between" mb="xs" gap="xs">
        <Title order={2} size="h5">
          {title}
        </Title>
        {actions}
      </Group>
      {children}
    </Card>
  );
}
