import type { ClientContext } from "../context.ts";
import { statusError } from "../transport/errors.ts";
import { lostError, socketError } from "./errors.ts";
import { ANSWER_TIMEOUT_MS } from "./limits.ts";

/**
 * Sends a message once there is a connection, and resolves when the server has done it. It is not sent again: where the
 * connection is lost before the answer, nobody knows whether it was done. Errors: `PlatformError`.
 */
export async function ask(context: ClientContext, message: { type: string; channel: string }): Promise<void> {
  const { runtime } = context;
  const socket = await context.socket();
  await context.session.ready;
  const requestId = runtime.uuid();
  const ends = [socket.hold()];
  let isSent = false;
  try {
    await new Promise<void>((resolve, reject) => {
      ends.push(
        socket.on("done", (answer) => {
          if (answer["requestId"] === requestId) resolve();
        }),
        socket.on("error", (answer) => {
          if (answer["requestId"] === requestId) reject(socketError(answer, context.transport.userId()));
        }),
        socket.subscribe((status) => {
          if (socket.error !== null) reject(socket.error);
          else if (isSent && status !== "connected") reject(lostError("The connection was lost before the answer"));
        }),
        // What one user began is not sent as another one.
        context.transport.onAuth(() => reject(statusError(401, "Another user"))),
        runtime.after(ANSWER_TIMEOUT_MS, () => reject(lostError("The server cannot be reached"))),
        socket.onConnected(() => {
          if (isSent) return;
          isSent = true;
          socket.send({ ...message, requestId });
        }),
      );
    });
  } finally {
    for (const end of ends) end();
  }
}
