import { Box, Card, Group, Stack, Text, Title } from "@mantine/core";
import { useNavigate, useParams, useSearch } from "@tanstack/react-router";
import { type ReactNode, useCallback, useEffect } from "react";

/** Page with its title in the document and as the only first-level heading, its actions on the right, and its content. */
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
  /** Whether the content fills the window and scrolls on its own. */
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

/** Section of a page with its heading, and its actions on the right. */
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

/** Pages do not know their own route, which loads their module. */
const ANY = { strict: false } as never;

/** Returns the named parameters of the page's path. */
export const usePathParameters = <Names extends string>(): Readonly<Record<Names, string>> =>
  useParams(ANY) as unknown as Record<Names, string>;

/** Returns the state of a page, which is kept in its address so that links restore it. `change` merges. */
export function usePageState<State extends object>() {
  const state = useSearch(ANY) as unknown as Partial<State>;
  const navigate = useNavigate();
  const change = useCallback(
    (next: { [Name in keyof State]?: State[Name] | undefined }, options: { replace?: boolean } = {}) =>
      void navigate({ to: ".", search: ((before: object) => ({ ...before, ...next })) as never, ...options }),
    [navigate],
  );
  return { state, change };
}
