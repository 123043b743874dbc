import { createRootRoute, createRoute, createRouter, lazyRouteComponent } from "@tanstack/react-router";
import { Layout } from "./shell/layout.tsx";
import { NotFound } from "./shell/not-found.tsx";
import { PageFailure } from "./shell/server-notes.tsx";

/** The state of pages is in the address; each page reads the parameters that it knows. */
export interface PageSearch {
  /** Whose view it is. */
  as?: string;
  [parameter: string]: unknown;
}

const root = createRootRoute({
  component: Layout,
  validateSearch: (search: Record<string, unknown>): PageSearch => search,
});

const page = <Path extends string>(path: Path, load: () => Promise<{ default: () => React.ReactNode }>) =>
  createRoute({ getParentRoute: () => root, path, component: lazyRouteComponent(() => load().catch(notLoaded)) });

/** The router would reload the whole page for the browser's own error, which leaves nothing while the server is away. */
function notLoaded(cause: unknown): never {
  throw new Error("The code of this page could not be loaded", { cause });
}

const routeTree = root.addChildren([
  page("/", () => import("./pages/overview/overview.tsx")),
  page("/tables", () => import("./pages/tables/tables.tsx")),
  page("/tables/$namespace", () => import("./pages/tables/namespace.tsx")),
  page("/tables/$namespace/$instance/$table", () => import("./pages/tables/table.tsx")),
  page("/users", () => import("./pages/users/users.tsx")),
  page("/users/$id", () => import("./pages/users/user.tsx")),
  page("/files", () => import("./pages/files/files.tsx")),
  page("/key-value", () => import("./pages/key-value/key-value.tsx")),
  page("/sql", () => import("./pages/sql/sql.tsx")),
  page("/vectors", () => import("./pages/vectors/vectors.tsx")),
  page("/rooms", () => import("./pages/rooms/rooms.tsx")),
  page("/rooms/$namespace/$id", () => import("./pages/rooms/room.tsx")),
  page("/realtime", () => import("./pages/realtime/realtime.tsx")),
  page("/push", () => import("./pages/push/push.tsx")),
  page("/jobs", () => import("./pages/jobs/jobs.tsx")),
  page("/analytics", () => import("./pages/analytics/analytics.tsx")),
  page("/logs", () => import("./pages/logs/logs.tsx")),
  page("/audit", () => import("./pages/audit/audit.tsx")),
  page("/settings", () => import("./pages/settings/settings.tsx")),
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
