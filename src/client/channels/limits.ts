/** How long a message waits for a connection and its answer. */
export const ANSWER_TIMEOUT_MS = 15_000;
