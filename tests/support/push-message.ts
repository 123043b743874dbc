import type { Message } from "../../src/server/areas/push/message.ts";

/** Message with only a title and a text. */
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
