import { SECOND_MS } from "../../../kernel/time/duration.ts";

/** Bytes of a message of an agent. The SDK parses it at once, so it may hold up no other request for long. */
export const MESSAGE_MAX_BYTES = 256 * 1024;
/** Bytes of the answer to a call. */
export const ANSWER_MAX_BYTES = 256 * 1024;
/** Bytes of it that are not the text of the result. */
export const ENVELOPE_BYTES = 1024;
/** Items of a page: at most, and without `limit`. */
export const PAGE_LIMIT_MAX = 100;
export const PAGE_LIMIT_DEFAULT = 20;
/** Share of the items that is asked for again where those asked for are too large. */
export const PAGE_SHRINK = 4;
/** Characters of the JSON of a call's arguments in the audit log; longer ones are named by their places alone. */
export const AUDITED_ARGUMENTS_MAX_CHARACTERS = 1_000;
/** Characters of a name or id there. */
export const AUDITED_NAME_MAX_CHARACTERS = 100;
/** Characters of an agent's name and version together. */
export const AGENT_MAX_CHARACTERS = 100;
/** Characters of a config that is tried. */
export const SOURCE_MAX_CHARACTERS = 200 * 1024;
/** Time that trying a config may take. */
export const CONFIG_TIMEOUT_MS = 5 * SECOND_MS;
/** Configs that are tried at once. */
export const CONFIGS_AT_ONCE_MAX = 2;
