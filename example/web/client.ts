import { createClient, type RecordOf } from "platform/client";
import type config from "../../platform.config.ts";

/** Everything that the pages read and write. It is typed by the config; none of the server's code comes along. */
export const client = createClient<typeof config>({ url: location.origin });

export const shared = client.db("shared");
export const clubDatabase = (id: string) => client.db("clubs", id);

export type Film = RecordOf<typeof config, "shared", "films">;
