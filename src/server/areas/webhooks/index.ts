import type { Clock } from "../../../kernel/clock.ts";
import type { Logger } from "../../../kernel/logger.ts";
import type { WebhookConfig } from "../../config/types.ts";
import type { Queue } from "../../jobs/index.ts";
import { deliveryDefinition } from "./deliveries.ts";
import { openEndings } from "./endings.ts";

/**
 * Defines the deliveries of webhooks in the queue; changes write them to outboxes (src/server/areas/triggers). Rules: SPEC.md.
 * Errors: none; an unreadable `webhooks.json` is logged.
 */
export function defineWebhooks(deps: {
  webhooks: Readonly<Record<string, WebhookConfig>>;
  dataDirectory: string;
  queue: Pick<Queue, "define">;
  clock: Clock;
  logger: Logger;
}): void {
  const declared = Object.entries(deps.webhooks);
  if (declared.length === 0) return;
  const endings = openEndings(deps);
  for (const [name, config] of declared) {
    deps.queue.define(`webhook:${name}`, deliveryDefinition(name, config, { ...deps, endings }));
  }
}
