import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { isJsonObject } from "../../../kernel/json/json.ts";
import type { Logger } from "../../../kernel/logger.ts";
import type { WebhookConfig } from "../../config/types.ts";
import { replaceSmallFile } from "../../disk/small-file.ts";

const FILE = "webhooks.json";

/**
 * The webhooks whose receiver has answered 410, in `webhooks.json`. A change is durable when the call returns; when it throws, as
 * on a full disk, nothing has changed.
 */
export type Endings = ReturnType<typeof openEndings>;

export function openEndings(deps: {
  webhooks: Readonly<Record<string, WebhookConfig>>;
  dataDirectory: string;
  logger: Logger;
}) {
  const { webhooks, dataDirectory, logger } = deps;
  const path = join(dataDirectory, FILE);
  const identities = new Map(Object.entries(webhooks).map(([name, config]) => [name, identityOf(config)]));
  /** Content of the file, by name: the identity of the config that was ended. */
  let ended: ReadonlyMap<string, string> = read(path, logger);
  const replace = (changed: ReadonlyMap<string, string>): void => {
    replaceSmallFile(path, `${JSON.stringify(Object.fromEntries(changed))}\n`);
    ended = changed;
  };
  return {
    /** Reports whether deliveries have ended. A webhook whose config has changed since counts as not ended. */
    isEnded: (name: string): boolean => ended.has(name) && ended.get(name) === identities.get(name),
    end: (name: string): void => replace(new Map(ended).set(name, identities.get(name) ?? "")),
    resume(name: string): void {
      const others = new Map(ended);
      if (others.delete(name)) replace(others);
    },
  };
}

/** Returns a hash that changes with every member of the config. The secret is random, so its hash reveals nothing of it. */
function identityOf({ url, secret, on, filter, headers }: WebhookConfig): string {
  const text = JSON.stringify([url, secret, on, filter ?? null, headers ?? null]);
  return new Bun.CryptoHasher("sha256").update(text).digest("hex");
}

/** Reads the file. Without a readable one nothing has ended: the next delivery finds out. */
function read(path: string, logger: Logger): Map<string, string> {
  if (!existsSync(path)) return new Map();
  try {
    const value: unknown = JSON.parse(readFileSync(path, "utf8"));
    const entries = isJsonObject(value) ? Object.entries(value) : [];
    return new Map(entries.flatMap(([name, identity]) => (typeof identity === "string" ? [[name, identity]] : [])));
  } catch (cause) {
    logger.warn("webhooks: webhooks.json cannot be read; ended webhooks are tried again", { cause });
    return new Map();
  }
}
