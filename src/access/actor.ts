import type { Actor } from "../db/index.ts";
import { SERVER_ACTOR } from "../db/index.ts";
import type { Principal } from "./principal.ts";

/** The caller, as triggers and webhooks name who caused a change. */
export function actorOf(principal: Principal): Actor {
  switch (principal.kind) {
    case "user":
      return { user: principal.auth.id };
    case "serviceKey":
      return { key: principal.name };
    case "server":
      return SERVER_ACTOR;
    case "anonymous":
      return null;
  }
}
