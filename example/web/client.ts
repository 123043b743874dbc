import { createClient, type RecordOf } from "platform/client";
import type config from "../../platform.config.ts";

/** Client of all pages, typed by the config. The import is type-only, so no server code is bundled. */
export const client = createClient<typeof config>({ url: location.origin });

export const shared = client.db("shared");
export const clubDatabase = (id: string) => client.db("clubs", id);

export type Film = RecordOf<typeof config, "shared", "films">;
