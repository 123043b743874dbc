/** Loaders of the pages by path. Each page is a separate chunk. */
export const PAGES = {
  "/": () => import("./pages/overview/overview.tsx"),
  "/tables": () => import("./pages/tables/tables.tsx"),
  "/tables/$namespace": () => import("./pages/tables/namespace.tsx"),
  "/tables/$namespace/$instance/$table": () => import("./pages/tables/table.tsx"),
  "/users": () => import("./pages/users/users.tsx"),
  "/users/$id": () => import("./pages/users/user.tsx"),
  "/files": () => import("./pages/files/files.tsx"),
  "/key-value": () => import("./pages/key-value/key-value.tsx"),
  "/sql": () => import("./pages/sql/sql.tsx"),
  "/vectors": () => import("./pages/vectors/vectors.tsx"),
  "/rooms": () => import("./pages/rooms/rooms.tsx"),
  "/rooms/$namespace/$id": () => import("./pages/rooms/room.tsx"),
  "/realtime": () => import("./pages/realtime/realtime.tsx"),
  "/push": () => import("./pages/push/push.tsx"),
  "/jobs": () => import("./pages/jobs/jobs.tsx"),
  "/analytics": () => import("./pages/analytics/analytics.tsx"),
  "/analytics/$id": () => import("./pages/analytics/story/story.tsx"),
  "/logs": () => import("./pages/logs/logs.tsx"),
  "/audit": () => import("./pages/audit/audit.tsx"),
  "/settings": () => import("./pages/settings/settings.tsx"),
} as const;

/** Returns the loaders of a section: its own page, and the pages below it. */
export const loadersBelow = (section: string): (() => Promise<unknown>)[] =>
  Object.entries(PAGES).flatMap(([path, load]) => (`/${path.split("/")[1]}` === section ? load : []));
