import type { PlatformConfig } from "../../config/types.ts";
import type { Endpoint } from "../../http/endpoint.ts";
import { describePublicConfig } from "./config.ts";
import { describingEndpoints } from "./endpoints.ts";
import { describeSchema } from "./schema.ts";

/** Returns what the config alone decides of the answers. */
export const describedBy = (config: PlatformConfig): Parameters<typeof describingEndpoints>[0] => ({
  schemaJson: JSON.stringify(describeSchema(config.databases ?? {})),
  configJson: JSON.stringify(describePublicConfig(config)),
  schemaEndpoint: config.api?.schemaEndpoint ?? false,
});

/** Returns the endpoints whose answers the config decides alone, for a process that does not write. */
export const configEndpoints = (config: PlatformConfig): readonly Endpoint[] =>
  describingEndpoints(describedBy(config));
