import { startFcmServer } from "../tests/support/fcm-server.ts";

// The FCM of the tests as a process of its own, so that it takes no time of whoever measures. It sends where it is and with
// what account, and then answers every message with how many notifications it has taken.

const fcm = await startFcmServer();
const { projectId, endpoint, tokenEndpoint, serviceAccount } = fcm;
process.on("message", () => process.send?.(fcm.calls.length));
process.send?.({ projectId, endpoint, tokenEndpoint, serviceAccount });
