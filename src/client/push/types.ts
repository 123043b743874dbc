/** A device without Web Push, such as a phone with a token of FCM. */
export interface DeviceToken {
  token: string;
  platform: "android" | "ios" | "web";
}

export interface RegisteredDevice {
  id: string;
  token: string;
  platform: string;
  userId: string;
  createdAt: string;
}

/** Push messages to this device. All of it needs a signed-in user. Errors of all: `PlatformError`. */
export interface Push {
  /**
   * Registers this browser, or this app with the token of its provider, for the signed-in user: call it at each start. A browser
   * asks the visitor for the permission, so the first call belongs into a click. `deviceId` is made and kept in the client's
   * store if there is none. Errors: `unavailable` where the server has no `push.webPush`; what the browser throws where the visitor
   * refuses.
   */
  register(device: ServiceWorkerRegistration | DeviceToken, options?: { deviceId?: string }): Promise<RegisteredDevice>;
  /** Before signing out: messages do not reach this device any more. */
  unregister(): Promise<void>;
  /** Subscribes all devices of the user to a topic. Errors: `not_found` without devices. */
  subscribe(topic: string): Promise<void>;
  unsubscribe(topic: string): Promise<void>;
}
