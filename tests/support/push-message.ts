import type { Message } from "../../src/server/areas/push/message.ts";

/** A message with a title and a text, and nothing else. */
export const PUSH_MESSAGE: Message = {
  title: "Hello",
  body: "You have mail",
  image: null,
  sound: null,
  badge: null,
  data: {},
  silent: false,
  collapseId: null,
  ttl: null,
  fcm: {},
};
