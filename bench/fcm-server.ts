import { startFcmServer } from "../tests/support/fcm-server.ts";

// FCM of the tests as a separate process, so that it does not use the time of the measuring one. It sends its address and
// account, then answers every message with the number of notifications accepted.

const fcm = await startFcmServer();
const { projectId, endpoint, tokenEndpoint, serviceAccount } = fcm;
process.on("message", () => process.send?.(fcm.calls.length));
process.send?.({ projectId, endpoint, tokenEndpoint, serviceAccount });
