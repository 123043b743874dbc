import { Box, Card, Group, Stack, Text, Title } from "@mantine/core";
import { useNavigate, useParams, useSearch } from "@tanstack/react-router";
import { type ReactNode, useCallback, useEffect } from "react";

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

/** A page does not know its own route: its module is loaded by it. */
const ANY = { strict: false } as never;

/** The parameters of the page's path, which the page names. */
export const usePathParameters = <Names extends string>(): Readonly<Record<Names, string>> =>
  useParams(ANY) as unknown as Record<Names, string>;

/** The state of a page, which is in its address so that a link shows the same. `change` keeps what it does not name. */
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
