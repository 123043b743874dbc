import type { PlatformConfig } from "../../config/types.ts";
import type { Answered } from "../../http/exchange/request-context.ts";

/** Returns the target of a request: a table (`shared.posts`), bucket, room type, custom route, …; empty: none that is declared. */
export type TargetOf = (answered: Pick<Answered, "params" | "request">) => string;

type Sections = Pick<PlatformConfig, "databases" | "storage" | "kv" | "d1" | "vectorize" | "rooms">;

/**
 * Creates a function from a route to the reader of its requests' target; null: they have none. Names come from clients, so only
 * those that the config declares count, which bounds their number. An instance of a namespace is not a target of its own.
 */
export function createTargets(config: Sections): (route: string | null) => TargetOf | null {
  const tables = new Map<string, ReadonlyMap<string, string>>(
    Object.entries(config.databases ?? {}).map(([namespace, { tables: declared }]) => [
      namespace,
      new Map(Object.keys(declared).map((table) => [table, `${namespace}.${table}`])),
    ]),
  );
  const among = (names: ReadonlySet<string>, parameter: string): TargetOf => {
    return ({ params }) => {
      const name = params[parameter] ?? "";
      return names.has(name) ? name : "";
    };
  };
  const namesOf = (section: object | undefined): ReadonlySet<string> => new Set(Object.keys(section ?? {}));
  const namespaces = namesOf(config.databases);
  const roomTypes = namesOf(config.rooms);

  return (route) => {
    const [, , area = "", ...rest] = route?.split("/") ?? [];
    switch (area) {
      case "db":
        if (!rest.includes(":table")) return among(namespaces, "namespace");
        return ({ params }) => tables.get(params["namespace"] ?? "")?.get(params["table"] ?? "") ?? "";
      case "storage":
        return among(namesOf(config.storage?.buckets), "bucket");
      case "files":
        return among(namesOf(config.storage?.buckets), "bucket");
      case "kv":
        return among(namesOf(config.kv), "namespace");
      case "d1":
        return among(namesOf(config.d1), "database");
      case "vectorize":
        return among(namesOf(config.vectorize), "index");
      case "room":
        return ({ request }) => roomTypeOf(request.url, roomTypes);
      case "functions": {
        // The routes themselves are declared.
        const [name = ""] = rest;
        return () => name;
      }
      default:
        return null;
    }
  };
}

function roomTypeOf(url: string, declared: ReadonlySet<string>): string {
  const start = url.indexOf("?");
  const name = start < 0 ? null : new URLSearchParams(url.slice(start + 1)).get("namespace");
  return name !== null && declared.has(name) ? name : "";
}
