import type { Endpoint } from "../../http/endpoint.ts";
import type { PushLists } from "../administration/lists.ts";
import type { PushService } from "../service.ts";
import { administrationEndpoints } from "./administration.ts";
import { clientEndpoints } from "./client.ts";
import { listEndpoints } from "./lists.ts";
import { sendingEndpoints } from "./sending.ts";

export const pushEndpoints = (service: PushService, lists: PushLists): readonly Endpoint[] => [
  ...clientEndpoints(service),
  ...sendingEndpoints(service),
  ...administrationEndpoints(service),
  ...listEndpoints(lists),
];
