import { Alert, Button, Center, Skeleton, Stack, Text, Title } from "@mantine/core";
import type { ReactNode } from "react";
import { messageOf, PlatformError } from "../api/server.ts";
import { RequestLink } from "./name.tsx";

/** Error in the server's words, with a retry button. */
export function Failure({ error, onRetry }: { error: unknown; onRetry?: () => void }) {
  const requestId = error instanceof PlatformError ? error.requestId : null;
  return (
    <Alert color="red" variant="light" role="alert" title="This did not work">
      <Stack gap="xs" align="flex-start">
        <Text size="sm">{messageOf(error)}</Text>
        {requestId === null ? null : <RequestLink id={requestId} />}
        {onRetry === undefined ? null : (
          <Button size="xs" variant="default" onClick={onRetry}>
            Retry
          </Button>
        )}
      </Stack>
    </Alert>
  );
}

/** Reason of a refusal, beside its input: an error, or a text. Nothing without one. */
export function Problem({ of }: { of: unknown }) {
  if (of === null) return null;
  return (
    <Alert color="red" role="alert">
      {messageOf(of)}
    </Alert>
  );
}

/** Placeholder of an empty list, which tells what would fill it. */
export function Empty({ title, children }: { title: string; children?: ReactNode }) {
  return (
    <Center py={48}>
      <Stack gap={4} align="center" maw={440}>
        <Title order={2} size="h5">
          {title}
        </Title>
        <Text size="sm" c="dimmed" ta="center" component="div">
          {children}
        </Text>
      </Stack>
    </Center>
  );
}

/** Placeholder of a list that is loading. */
export function Loading({ rows = 6 }: { rows?: number }) {
  return (
    <Stack gap={8} role="status" aria-busy="true" aria-label="Loading">
      {Array.from({ length: rows }, (_, index) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: they are all the same
        <Skeleton key={index} height={28} radius="sm" />
      ))}
    </Stack>
  );
}

interface Loaded<T> {
  data: T | undefined;
  error: unknown;
  refetch(): unknown;
}

/** Content of a query once loaded. Old content stays during a reload. */
export function Loadable<T>({
  query,
  children,
  rows,
}: {
  query: Loaded<T>;
  children: (data: T) => ReactNode;
  rows?: number;
}) {
  if (query.data !== undefined) return <>{children(query.data)}</>;
  if (query.error !== null && query.error !== undefined) {
    return <Failure error={query.error} onRetry={() => void query.refetch()} />;
  }
  return <Loading {...(rows === undefined ? {} : { rows })} />;
}
