import { type Resources, useResources } from "../api/resources.ts";
import { useRights } from "../api/session.tsx";
import {
  type Icon,
  IconBell,
  IconBriefcase,
  IconBroadcast,
  IconChartBar,
  IconDatabase,
  IconDoor,
  IconFolder,
  IconHome,
  IconKey,
  IconListDetails,
  IconSettings,
  IconShieldCheck,
  IconTable,
  IconUsers,
  IconVectorTriangle,
} from "../parts/icons.tsx";

type Right = readonly [area: string, kind: string, name: string, action: string];

/** Section of the navigation. */
export interface Section {
  name: string;
  path: string;
  icon: Icon;
  /** Rights of which the key needs at least one. */
  rights: readonly Right[];
  /** Returns whether the config declares something for the section; absent: it is always available. */
  isDeclared?(declared: Resources, key: { isRoot: boolean }): boolean;
}

/** Sections in the order of the navigation. */
export const SECTIONS: readonly Section[] = [
  { name: "Overview", path: "/", icon: IconHome, rights: [["*", "*", "*", "*"]] },
  { name: "Tables", path: "/tables", icon: IconTable, rights: [["db", "*", "*", "read"]] },
  { name: "Users", path: "/users", icon: IconUsers, rights: [["auth", "admin", "*", "read"]] },
  {
    name: "Files",
    path: "/files",
    icon: IconFolder,
    rights: [
      ["storage", "bucket", "*", "read"],
      ["storage", "bucket", "*", "write"],
    ],
    isDeclared: ({ buckets }) => buckets.length > 0,
  },
  {
    name: "Key-value",
    path: "/key-value",
    icon: IconKey,
    rights: [["kv", "namespace", "*", "read"]],
    isDeclared: ({ kv }) => kv.length > 0,
  },
  {
    name: "SQL",
    path: "/sql",
    icon: IconDatabase,
    rights: [["d1", "database", "*", "*"]],
    isDeclared: ({ d1, namespaces }, { isRoot }) => d1.length > 0 || (isRoot && Object.keys(namespaces).length > 0),
  },
  {
    name: "Vectors",
    path: "/vectors",
    icon: IconVectorTriangle,
    rights: [
      ["vectorize", "index", "*", "read"],
      ["vectorize", "index", "*", "write"],
    ],
    isDeclared: ({ vectorize }) => vectorize.length > 0,
  },
  {
    name: "Rooms",
    path: "/rooms",
    icon: IconDoor,
    rights: [["rooms", "*", "*", "read"]],
    isDeclared: ({ rooms }) => rooms.length > 0,
  },
  { name: "Realtime", path: "/realtime", icon: IconBroadcast, rights: [["realtime", "*", "*", "read"]] },
  {
    name: "Push",
    path: "/push",
    icon: IconBell,
    rights: [
      ["push", "*", "*", "read"],
      ["push", "*", "*", "send"],
    ],
  },
  { name: "Jobs", path: "/jobs", icon: IconBriefcase, rights: [["jobs", "*", "*", "read"]] },
  { name: "Analytics", path: "/analytics", icon: IconChartBar, rights: [["analytics", "*", "*", "read"]] },
  { name: "Logs", path: "/logs", icon: IconListDetails, rights: [["system", "*", "*", "read"]] },
  { name: "Audit", path: "/audit", icon: IconShieldCheck, rights: [["audit", "*", "*", "read"]] },
  { name: "Settings", path: "/settings", icon: IconSettings, rights: [["system", "*", "*", "read"]] },
];

/** Returns the sections that the key of the session may use and the config declares. */
export function useSections(): readonly Section[] {
  const { may, isRoot } = useRights();
  const declared = useResources().data;
  return SECTIONS.filter(
    ({ rights, isDeclared }) =>
      rights.some((right) => may(...right)) && (declared === undefined || isDeclared?.(declared, { isRoot }) !== false),
  );
}
