import { notFound } from "../../../../kernel/errors.ts";
import type { AuthConfig } from "../../../config/types.ts";
import type { ProviderClient } from "../providers/requests.ts";

/** The clients of the declared providers, each made by its first sign-in. */
export class OAuthProviders {
  readonly #declared: NonNullable<AuthConfig["oauth"]>;
  readonly #now: () => number;
  readonly #clients = new Map<string, ProviderClient>();

  constructor(declared: NonNullable<AuthConfig["oauth"]>, now: () => number) {
    this.#declared = declared;
    this.#now = now;
  }

  /** Returns the client of a provider. Errors: 404. */
  async named(name: string): Promise<ProviderClient> {
    const config = Object.hasOwn(this.#declared, name) ? this.#declared[name] : undefined;
    if (config === undefined) throw notFound(`There is no OAuth provider "${name}"`);
    // Loaded by the first sign-in: a start without the OpenID library is faster.
    const { createProviderClient } = await import("../providers/client.ts");
    const client = this.#clients.get(name) ?? createProviderClient(name, config, this.#now);
    this.#clients.set(name, client);
    return client;
  }
}
