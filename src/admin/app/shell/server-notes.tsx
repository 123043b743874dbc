import { Alert } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { useEffect, useRef } from "react";
import { PlatformError } from "../api/failure.ts";
import { queries, server } from "../api/server.ts";
import { SERVER_EVERY_MS } from "../limits.ts";

const KEY = ["server"];

/** Above every page: that the server does not answer, and that it is a drill, which must not be mistaken for the server. */
export function ServerNotes() {
  const health = useQuery({
    queryKey: KEY,
    refetchInterval: SERVER_EVERY_MS,
    refetchIntervalInBackground: true,
    retry: false,
    // A server that is up and not well answers 503: pages say what is wrong.
    queryFn: (): Promise<{ drill?: boolean }> =>
      server.request<{ drill?: boolean }>("GET", "/api/health").catch((error: unknown) => {
        if (error instanceof PlatformError && error.status !== 0) return {};
        throw error;
      }),
  });
  const isDown = health.isError;
  const wasDown = useRef(false);
  useEffect(() => {
    // What could not be loaded meanwhile is loaded now.
    if (wasDown.current && !isDown) void queries.invalidateQueries({ predicate: ({ queryKey }) => queryKey !== KEY });
    wasDown.current = isDown;
  }, [isDown]);
  return (
    <>
      {isDown ? (
        <Alert color="red" variant="light" mb="md" role="alert" title="The server does not answer">
          What is shown here may be old. This page goes on by itself when the server is back.
        </Alert>
      ) : null}
      {health.data?.drill === true ? (
        <Alert color="orange" variant="light" mb="md" title="This is a drill">
          A copy that sends no mail, push messages and webhooks, runs no jobs, and changes nothing outside its data
          directory.
        </Alert>
      ) : null}
    </>
  );
}
