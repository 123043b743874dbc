import { createRootRoute, createRoute, createRouter, lazyRouteComponent } from "@tanstack/react-router";
import { PAGES } from "./pages.ts";
import { Page } from "./parts/page.tsx";
import { Empty } from "./parts/states.tsx";
import { Layout } from "./shell/layout.tsx";
import { PageFailure } from "./shell/server-notes.tsx";

/** Page of an unknown address. */
function NotFound() {
  return (
    <Page title="Not found">
      <Empty title="There is no page at this address">Choose one of the pages, or press / to search.</Empty>
    </Page>
  );
}

/** State of pages, kept in the address. Each page reads the parameters that it knows. */
interface PageSearch {
  /** User of View as. */
  as?: string;
  [parameter: string]: unknown;
}

/** Boolean parameters, true or absent. All parameters besides these and lists are texts. */
const SWITCHES: readonly string[] = ["insert", "uploads"];
const LISTS: readonly string[] = ["filter", "orFilter", "steps"];

const isKnown = (name: string, value: unknown): boolean =>
  (LISTS.includes(name) && Array.isArray(value)) || (SWITCHES.includes(name) && value === true);

/** Restores texts that the router parsed: in hand-written addresses, `?q=5` is a number and `?near=[1,2]` a list. */
const pageSearch = (search: Record<string, unknown>): PageSearch =>
  Object.fromEntries(
    Object.entries(search).map(([name, value]) => [
      name,
      isKnown(name, value) || value === undefined || typeof value === "string" ? value : JSON.stringify(value),
    ]),
  );

const root = createRootRoute({ component: Layout, validateSearch: pageSearch });

const page = <Path extends keyof typeof PAGES>(path: Path) => {
  const load: () => Promise<{ default: () => React.ReactNode }> = PAGES[path];
  return createRoute({
    getParentRoute: () => root,
    path,
    component: lazyRouteComponent(() => load().catch(notLoaded)),
  });
};

/** Throws an error of our own: the router would reload the page, which leaves the browser's error page while the server is down. */
function notLoaded(cause: unknown): never {
  throw new Error("The code of this page could not be loaded", { cause });
}

const routeTree = root.addChildren([
  page("/"),
  page("/tables"),
  page("/tables/$namespace"),
  page("/tables/$namespace/$instance/$table"),
  page("/users"),
  page("/users/$id"),
  page("/files"),
  page("/key-value"),
  page("/sql"),
  page("/vectors"),
  page("/rooms"),
  page("/rooms/$namespace/$id"),
  page("/realtime"),
  page("/push"),
  page("/jobs"),
  page("/analytics"),
  page("/analytics/$id"),
  page("/logs"),
  page("/audit"),
  page("/settings"),
]);

export const router = createRouter({
  routeTree,
  basepath: "/admin",
  defaultPreload: "intent",
  defaultErrorComponent: PageFailure,
  defaultNotFoundComponent: NotFound,
});

declare module "@tanstack/react-router" {
  interface Register {
    router: typeof router;
  }
}
