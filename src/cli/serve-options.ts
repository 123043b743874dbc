import { HOST_DEFAULT, PORT_DEFAULT } from "../http/listener.ts";
import { configOption, dataOption } from "./options.ts";

/** What `start` and `dev` take. */
export const serveOptions = {
  config: configOption,
  data: dataOption,
  host: { type: "string", description: "The address to listen on", default: HOST_DEFAULT, valueHint: "HOST" },
  port: {
    type: "string",
    description: "The port to listen on; 0 picks a free one",
    default: String(PORT_DEFAULT),
    valueHint: "PORT",
  },
} as const;
