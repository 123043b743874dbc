import { expect, test } from "bun:test";
import { PUSH_MESSAGE } from "../../../../../tests/support/push-message.ts";
import type { JsonObject } from "../../../../kernel/json/json.ts";
import type { Message, Target } from "../message.ts";
import { createFcmBodies, webPushTopic } from "./fcm-message.ts";

const NOW_MS = Date.UTC(2026, 0, 1);
const bodyOf = createFcmBodies();
const fcmMessage = (...about: Parameters<typeof bodyOf>) =>
  (JSON.parse(bodyOf(...about)) as { message: JsonObject }).message;
const target = (platform: Target["platform"]): Target => ({ userId: "u", token: "the-token", platform });
const full: Message = {
  ...PUSH_MESSAGE,
  image: "https://a.example/i.png",
  sound: "ding.caf",
  badge: 3,
  data: { id: "7" },
  collapseId: "mail",
  ttl: 60,
};

test("[PU20] an Android device gets the notification, priority, sound, collapse key and time to live", () => {
  expect(fcmMessage(target("android"), full, NOW_MS)).toEqual({
    token: "the-token",
    notification: { title: "Hello", body: "You have mail", image: "https://a.example/i.png" },
    data: { id: "7" },
    android: { priority: "high", collapse_key: "mail", ttl: "60s", notification: { sound: "ding.caf" } },
  });
});

test("[PU20] an iOS device gets sound, badge and picture by APNs, and when the message expires", () => {
  expect(fcmMessage(target("ios"), full, NOW_MS)).toEqual({
    token: "the-token",
    notification: { title: "Hello", body: "You have mail", image: "https://a.example/i.png" },
    data: { id: "7" },
    apns: {
      headers: {
        "apns-push-type": "alert",
        "apns-priority": "10",
        "apns-collapse-id": "mail",
        "apns-expiration": String(NOW_MS / 1000 + 60),
      },
      payload: { aps: { "mutable-content": 1, sound: "ding.caf", badge: 3 } },
      fcm_options: { image: "https://a.example/i.png" },
    },
  });
  const now = fcmMessage(target("ios"), { ...PUSH_MESSAGE, ttl: 0 }, NOW_MS);
  expect(now["apns"]).toMatchObject({ headers: { "apns-expiration": "0" }, payload: { aps: {} } });
});

test("[PU20] a browser gets urgency, time to live and topic as headers", () => {
  const { token, notification, data, ...rest } = fcmMessage(target("web"), full, NOW_MS);
  expect(rest).toEqual({ webpush: { headers: { Urgency: "high", TTL: "60", Topic: webPushTopic("mail") } } });
  expect(webPushTopic("any text: é/?")).toMatch(/^[A-Za-z0-9_-]{32}$/);
  expect(webPushTopic("mail")).not.toBe(webPushTopic("male"));
});

test("[PU20] absent members are not sent", () => {
  expect(fcmMessage(target("android"), PUSH_MESSAGE, NOW_MS)).toEqual({
    token: "the-token",
    notification: { title: "Hello", body: "You have mail" },
    android: { priority: "high" },
  });
});

test("[PU21] a silent message shows nothing on any platform", () => {
  const silent: Message = { ...full, silent: true };
  for (const platform of ["android", "ios", "web"] as const) {
    const sent = fcmMessage(target(platform), silent, NOW_MS);
    expect(sent["notification"]).toBeUndefined();
    expect(sent["data"]).toEqual({ id: "7" });
    expect(JSON.stringify(sent)).not.toContain("ding.caf");
  }
  expect(fcmMessage(target("ios"), silent, NOW_MS)["apns"]).toMatchObject({
    headers: { "apns-push-type": "background", "apns-priority": "5" },
    payload: { aps: { "content-available": 1 } },
  });
});

test("[PU22] raw overrides replace every member except the recipient", () => {
  const fcm = JSON.parse(`{
    "notification": {"title": "Other"}, "android": {"priority": "normal", "direct_boot_ok": true},
    "fcm_options": {"analytics_label": "x"}, "__proto__": {"polluted": true}
  }`);
  const sent = fcmMessage(target("android"), { ...full, fcm }, NOW_MS);
  expect(sent).toMatchObject({
    token: "the-token",
    notification: { title: "Other", body: "You have mail" },
    android: { priority: "normal", direct_boot_ok: true, collapse_key: "mail" },
    fcm_options: { analytics_label: "x" },
  });
  expect(Object.hasOwn(Object.prototype, "polluted")).toBe(false);
  expect(fcmMessage(target("web"), { ...full, fcm: { token: "stolen" } }, NOW_MS)["token"]).toBe("the-token");
});

test("[PU20] each device gets its own token and what is for its platform, and the same message later its later end", () => {
  const devices = (["android", "android", "ios", "web", "ios"] as const).map((platform, index) => ({
    userId: "u",
    token: `token "${index}"`,
    platform,
  }));
  const sent = devices.map((device) => fcmMessage(device, full, NOW_MS));
  expect(sent.map(({ token }) => token)).toEqual(devices.map(({ token }) => token));
  expect(sent.map((message) => Object.keys(message).at(-2))).toEqual(["android", "android", "apns", "webpush", "apns"]);
  const expiry = (nowMs: number) => fcmMessage(target("ios"), full, nowMs)["apns"];
  expect(expiry(NOW_MS + 5_000)).toMatchObject({ headers: { "apns-expiration": String(NOW_MS / 1000 + 65) } });
  expect(fcmMessage(target("ios"), { ...full, ttl: 0 }, NOW_MS)["apns"]).toMatchObject({
    headers: { "apns-expiration": "0" },
  });
});
