import { Alert } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { useEffect, useRef } from "react";
import { PlatformError, queries, server } from "../api/server.ts";
import { Failure } from "../parts/states.tsx";

/** Polling interval of the server's health. */
const SERVER_EVERY_MS = 4_000;

const KEY = ["server"];

const useServer = () =>
  useQuery({
    queryKey: KEY,
    refetchInterval: SERVER_EVERY_MS,
    refetchIntervalInBackground: true,
    retry: false,
    // An unhealthy server answers 503. Pages then show what is wrong.
    queryFn: (): Promise<{ drill?: boolean }> =>
      server.request<{ drill?: boolean }>("GET", "/api/health").catch((error: unknown) => {
        if (error instanceof PlatformError && error.status !== 0) return {};
        throw error;
      }),
  });

/** Calls `onBack` when the server is back after a failure. */
function useReturn(isDown: boolean, onBack: () => void): void {
  const wasDown = useRef(false);
  useEffect(() => {
    if (wasDown.current && !isDown) onBack();
    wasDown.current = isDown;
  }, [isDown, onBack]);
}

/** Reloads whatever failed meanwhile. */
const loadAgain = (): void => void queries.invalidateQueries({ predicate: ({ queryKey }) => queryKey !== KEY });
const reload = (): void => location.reload();

/** Notes above every page: the server is unreachable, or is a drill, which must not be mistaken for production. */
export function ServerNotes() {
  const { data, isError: isDown } = useServer();
  useReturn(isDown, loadAgain);
  return (
    <>
      {isDown ? (
        <Alert color="red" variant="light" mb="md" role="alert" title="The server does not answer">
          What is shown here may be old. This page goes on by itself when the server is back.
        </Alert>
      ) : null}
      {data?.drill === true ? (
        <Alert color="orange" variant="light" mb="md" title="This is a drill">
          A copy that sends no mail, push messages and webhooks, runs no jobs, and changes nothing outside its data
          directory.
        </Alert>
      ) : null}
    </>
  );
}

/** Replaces a page that failed, for example because its code could not be loaded while the server was down. */
export function PageFailure({ error }: { error: unknown }) {
  useReturn(useServer().isError, reload);
  return <Failure error={error} onRetry={reload} />;
}
