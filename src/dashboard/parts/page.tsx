import { Box, Group, Stack, Text, Title } from "@mantine/core";
import { type ReactNode, useEffect } from "react";

/** A page: its title in the document and as the one heading of first order, what it offers on the right, and its content. */
export function Page({
  title,
  hint,
  actions,
  fills = false,
  children,
}: {
  title: string;
  hint?: ReactNode;
  actions?: ReactNode;
  /** The content takes the height of the window, and scrolls by itself. */
  fills?: boolean;
  children: ReactNode;
}) {
  useEffect(() => {
    document.title = title;
  }, [title]);
  return (
    <Stack gap="md" className={fills ? "page page-fills" : "page"}>
      <Group justify="space-between" align="flex-end" wrap="wrap" gap="sm">
        <Box miw={0}>
          <Title order={1} size="h3" className="page-title">
            {title}
          </Title>
          {hint === undefined ? null : (
            <Text size="sm" c="dimmed">
              {hint}
            </Text>
          )}
        </Box>
        {actions === undefined ? null : <Group gap="xs">{actions}</Group>}
      </Group>
      {children}
    </Stack>
  );
}
