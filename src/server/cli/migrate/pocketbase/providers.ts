import { isJsonObject } from "../../../../kernel/json/json.ts";
import { KNOWN_PROVIDERS } from "../../../config/sections/oauth-providers.ts";
import type { Remarks } from "../remarks.ts";
import { type PbCollection, textOption } from "./collections.ts";

/** A provider that the config names. */
export interface MovedProvider {
  /** Name of the provider in the source. */
  source: string;
  name: string;
  /** Variables of the environment, which the config reads. */
  id: { variable: string; value: string };
  secret: { variable: string; value: string };
}

const RENAMED: Readonly<Record<string, string>> = { twitter: "x" };
/** Providers that need more than an id and a secret. */
const UNMOVABLE: ReadonlySet<string> = new Set(["apple", "salesforce"]);

/** Returns the providers of the accounts that this server knows. */
export function providersOf({ name, options }: PbCollection, remarks: Remarks): MovedProvider[] {
  const { oauth2 } = options;
  if (!isJsonObject(oauth2) || oauth2["enabled"] !== true || !Array.isArray(oauth2["providers"])) return [];
  return oauth2["providers"].filter(isJsonObject).flatMap((provider) => {
    const source = textOption(provider, "name");
    const here = RENAMED[source] ?? source;
    const [id, secret] = [textOption(provider, "clientId"), textOption(provider, "clientSecret")];
    const isKnown = KNOWN_PROVIDERS.some((known) => known === here) && !UNMOVABLE.has(here);
    if (!isKnown || id === "" || secret === "") {
      remarks.lost(name, `the provider ${source}: add it to auth.oauth, and its accounts are found by their address`);
      return [];
    }
    const prefix = here.toUpperCase();
    return [
      {
        source,
        name: here,
        id: { variable: `${prefix}_CLIENT_ID`, value: id },
        secret: { variable: `${prefix}_CLIENT_SECRET`, value: secret },
      },
    ];
  });
}
