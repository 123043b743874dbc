/** The largest config that is edited: parsing it takes about 20 ms. */
export const SOURCE_MAX_BYTES = 256 * 1024;
/** Edits of a request. The config is parsed once for each, in turns of the event loop. */
export const EDITS_MAX = 50;
export const BODY_MAX_BYTES = 256 * 1024;
export const NAME_MAX = 200;
export const EDIT_FIELDS_MAX = 100;
export const RULE_SOURCE_MAX = 20_000;
/** The writes that can be undone. */
export const UNDO_MAX = 20;
/** Problems that an answer names. */
export const PROBLEMS_MAX = 100;
/** Requests that wait while another one is worked on. */
export const PREVIEWS_WAITING_MAX = 10;
