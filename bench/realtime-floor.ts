/** Floor of realtime: what is posted is published natively to every socket. */
const TOPIC = "all";

const server = Bun.serve({
  hostname: "127.0.0.1",
  port: 0,
  async fetch(request, self) {
    if (self.upgrade(request)) return undefined;
    self.publish(TOPIC, await request.text());
    return new Response("{}");
  },
  websocket: {
    open: (socket) => void socket.subscribe(TOPIC),
    message: () => {},
  },
});
process.stdout.write(`${server.url.href}\n`);
