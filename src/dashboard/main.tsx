import "@mantine/core/styles.css";
import "@mantine/notifications/styles.css";
import "@mantine/spotlight/styles.css";
import "./app.css";
import { Center, Loader, MantineProvider } from "@mantine/core";
import { Notifications } from "@mantine/notifications";
import { QueryClientProvider } from "@tanstack/react-query";
import { RouterProvider } from "@tanstack/react-router";
import { StrictMode } from "react";
import { createRoot } from "react-dom/client";
import { queries } from "./api/server.ts";
import { RightsProvider, useLinks, useOtherTabs, useSession } from "./api/session.tsx";
import { Failure } from "./parts/states.tsx";
import { router } from "./router.tsx";
import { SignInPage } from "./shell/sign-in.tsx";
import { theme } from "./theme.ts";

function App() {
  const session = useSession();
  useLinks();
  useOtherTabs();
  if (session.data === undefined) {
    return (
      <Center mih="100dvh" p="md">
        {session.error === null ? <Loader /> : <Failure error={session.error} onRetry={() => void session.refetch()} />}
      </Center>
    );
  }
  if (session.data === null) return <SignInPage />;
  const { key } = session.data;
  return (
    <RightsProvider key={key.name} signedIn={key}>
      <RouterProvider router={router} />
    </RightsProvider>
  );
}

const container = document.getElementById("root");
if (container === null) throw new Error("the page has no element for the app");
createRoot(container).render(
  <StrictMode>
    <MantineProvider theme={theme} defaultColorScheme="auto">
      <Notifications position="bottom-right" />
      <QueryClientProvider client={queries}>
        <App />
      </QueryClientProvider>
    </MantineProvider>
  </StrictMode>,
);
