import { InvalidArgumentError, Option } from "@commander-js/extra-typings";
import { ownProduct } from "../config/loading/product.ts";

export const CONFIG_DEFAULT = "./platform.config.ts";
export const DATA_DEFAULT = "./data";

/** Declares an option with a value. */
export const option = <const Flags extends string>(flags: Flags, description: string) =>
  new Option(flags, description).argParser(requireValue);

/**
 * Requires a value. A script passes an empty one where its variable is not set, and `--data --drill` would create a directory.
 * Errors: no value.
 */
function requireValue(text: string): string {
  if (text === "") throw new InvalidArgumentError("It must not be empty.");
  if (text.startsWith("--")) throw new InvalidArgumentError("It needs a value.");
  return text;
}

/** The option of all commands that load a config; hidden, and refused, in an executable with an embedded config. */
export const configOption =
  ownProduct() === null
    ? option("--config <FILE>", "The config file").env("PLATFORM_CONFIG").default(CONFIG_DEFAULT)
    : new Option("--config <FILE>")
        .hideHelp()
        .default(CONFIG_DEFAULT)
        .argParser((): string => {
          throw new InvalidArgumentError("This executable contains its config.");
        });

export const dataOption = option("--data <DIR>", "The directory with all data")
  .env("PLATFORM_DATA")
  .default(DATA_DEFAULT);

/** The option, with `keyOption`, of commands that ask a running server or open the data directory. */
export const urlOption = option("--url <URL>", "A running server; by default the data directory is opened");
export const keyOption = option("--key <KEY>", "The service key for --url; PLATFORM_SERVICE_KEY by default");

export const isHttpUrl = (text: string): boolean => /^https?:$/.test(URL.parse(text)?.protocol ?? "");
