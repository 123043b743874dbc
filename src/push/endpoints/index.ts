import type { Endpoint } from "../../http/endpoint.ts";
import type { PushService } from "../service.ts";
import { administrationEndpoints } from "./administration.ts";
import { clientEndpoints } from "./client.ts";
import { sendingEndpoints } from "./sending.ts";

export const pushEndpoints = (service: PushService): readonly Endpoint[] => [
  ...clientEndpoints(service),
  ...sendingEndpoints(service),
  ...administrationEndpoints(service),
];
