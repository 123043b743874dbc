import type { MeterLimits } from "../../sockets/clients.ts";

/** The default of a route's `timeout`. */
export const TIMEOUT_SECONDS = 60;
/**
 * Handlers that run concurrently, including those answered with 503 after their timeout: a route that never ends would otherwise
 * fill the memory.
 */
export const RUNNING_MAX = 10_000;
/** The size up to which a body is read and parsed at once. */
export const SMALL_BODY_MAX_BYTES = 64 * 1024;
/** The maximum index in names such as `items[7].title` of a form. */
export const FORM_INDEX_MAX = 999;
/** Entries of all lists that such names create, including those that no field names. */
export const FORM_ENTRIES_MAX = 10_000;
/** Fields of a form. */
export const FORM_FIELDS_MAX = 1_000;
/** Characters of a field's name. */
export const FORM_NAME_MAX_LENGTH = 1_000;
/** Bytes of a form that are split, or characters that are scanned, in one turn of the event loop. */
export const FORM_PIECE_BYTES = 64 * 1024;
/** Characters of JSON within a text, such as a parameter, that are parsed at once. A form's field may be longer. */
export const JSON_TEXT_MAX_CHARACTERS = 64 * 1024;
/** Values of a message to a WebSocket, which is parsed at once: commas and opening brackets outside strings. */
export const MESSAGE_VALUES_MAX = 25_000;
/** Cookies of a request. Browsers keep some 180 for a site. */
export const COOKIES_MAX = 200;
/** Invalid fields that an answer names. */
export const FAULTS_MAX = 100;
/** Unknown members of one object that an answer names. */
export const UNKNOWN_NAMED_MAX = 20;
/** The timeout from which a handler exempts its connection from the server's idle timeout. */
export const HELD_OPEN_FROM_SECONDS = 100;
/** The delay after a publication before the sockets' unsent bytes are checked. */
export const PUBLISHED_LOOK_MS = 250;
/** The message rates of one WebSocket: those of realtime. */
export const METER_LIMITS: MeterLimits = {
  messagesPerSecond: 100,
  charsPerSecond: 256 * 1024,
  charsAtOnce: 2 * 1024 * 1024,
};
