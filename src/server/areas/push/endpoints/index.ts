import type { RecordChange } from "../../../db/index.ts";
import type { Endpoint } from "../../../http/endpoint.ts";
import type { PushLists } from "../administration/lists.ts";
import type { PushService } from "../service.ts";
import { administrationEndpoints } from "./administration.ts";
import { clientEndpoints } from "./client.ts";
import { listEndpoints } from "./lists.ts";
import { sendingEndpoints } from "./sending.ts";

/** `audit` writes down what service keys send; what they change has its entry in the transaction of the change. */
export const pushEndpoints = (service: PushService, lists: PushLists, audit: RecordChange): readonly Endpoint[] => [
  ...clientEndpoints(service),
  ...sendingEndpoints(service, audit),
  ...administrationEndpoints(service),
  ...listEndpoints(lists),
];
