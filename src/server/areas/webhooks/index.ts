import type { Clock } from "../../../kernel/clock.ts";
import type { Logger } from "../../../kernel/logger.ts";
import type { WebhookConfig } from "../../config/types.ts";
import { type DeliveryDefinition, deliveryDefinition } from "./deliveries.ts";
import { openEndings } from "./endings.ts";

/**
 * Defines the deliveries of webhooks in the queue; changes write them to outboxes (src/server/areas/triggers). Rules: SPEC.md.
 * Errors: none; an unreadable `webhooks.json` is logged.
 */
export function defineWebhooks(deps: {
  webhooks: Readonly<Record<string, WebhookConfig>>;
  dataDirectory: string;
  define(name: string, definition: DeliveryDefinition): void;
  finalFailure(message: string): Error;
  clock: Clock;
  logger: Logger;
}): void {
  const declared = Object.entries(deps.webhooks);
  if (declared.length === 0) return;
  const endings = openEndings(deps);
  for (const [name, config] of declared) {
    deps.define(`webhook:${name}`, deliveryDefinition(name, config, { ...deps, endings }));
  }
}
